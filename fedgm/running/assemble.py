"""From a configuration to the parts of a run: data, module, trainer."""

import logging
import math
import os
from collections.abc import Mapping, Sequence
from functools import partial
from inspect import isabstract
from typing import Any

import torch

from fedgm.client.rules import ClientRule
from fedgm.client.store import Store
from fedgm.config import RunConfig
from fedgm.config.limits import require_model_fits
from fedgm.config.parts import build, check_part, target_of
from fedgm.data.clients import ClientData, Evaluation, Source, local_steps
from fedgm.data.federation import Federation
from fedgm.data.own import client_evaluation
from fedgm.draws import derive
from fedgm.errors import ClashError, require, require_fits
from fedgm.federated.cohort import ClientParts, RoundSettings
from fedgm.federated.loop import FederatedLoop
from fedgm.federated.ranks import world
from fedgm.federated.workers import FederatedDDP
from fedgm.lightning import Checkpoint, LightningEnvironment, Logger, MisconfigurationException, pl
from fedgm.models.build import build_net, fit_batches, require_weights
from fedgm.models.size import parameters
from fedgm.participation import ClientFacts, Participation
from fedgm.participation.local_work import NEEDS_UNIFORM_MEAN, effective_steps
from fedgm.running.checkpoint import AtomicCheckpointIO
from fedgm.running.worker_share import WorkerShare
from fedgm.schedule import Plan, Schedule
from fedgm.schedule.every_round import require_its_schedule
from fedgm.server import ServerRule
from fedgm.server.rule import Averages, SeesNorms
from fedgm.tasks import Scoreboard, TaskModule
from fedgm.upload import UploadRule
from fedgm.upload.message import Plain as WholeDelta

COUNTED = ("fedgm.models.", "torchvision.models.")  # built once more, without memory, to know their size

for _name in ("pytorch_lightning", "lightning_fabric", "lightning.fabric"):
    logging.getLogger(_name).setLevel(logging.WARNING)  # their greetings and tips


def build_server(config: RunConfig) -> tuple[ServerRule, Plan]:
    """The server rule and the plan of its hyperparameters; cheap, so it comes before anything is loaded."""
    rule: ServerRule = build(config.algorithm, "algorithm", kind=ServerRule)
    schedule: Schedule = build(config.schedule, "schedule", kind=Schedule)
    require_its_schedule(rule, schedule, config.schedule["name"])
    plan = schedule.plan(config.rounds, rule)
    _require_known_to(rule, config)
    check_part(config.participation, "participation")
    check_part(config.client, "client")
    check_part(config.upload, "upload")
    _require_fitting(config)
    for name, node in config.callbacks.items():
        if isinstance(node, Mapping):
            check_part(node, f"callbacks.{name}")
    task = task_class(config)
    scoreboard_of(config)
    check_part(config.task, "task", given={"net", "optimizer", "channels_last"})
    check_part(config.model, "model", given=set(task.model_needs))
    require_weights(config.model)
    local = config.local
    check_part(local.optimizers[local.optimizer], f"local.optimizers.{local.optimizer}", given={"params"})
    return rule, plan


def _require_known_to(rule: ServerRule, config: RunConfig) -> None:
    """Refuse what this server rule has no answer to."""
    point = config.eval.point
    allowed = "sent: this algorithm has no averaged point"
    require(point == "sent" or isinstance(rule, Averages), "eval.point", point, allowed, "eval.point=sent")
    client, own = config.client["name"], build_rule(config)
    allowed = (
        "a rule whose D is the mean of the cohort: this algorithm compares D with the norms of its clients"
    )
    ok = not (own.needs_plain_upload and isinstance(rule, SeesNorms))
    require(ok, "client", client, allowed, "client=plain")


def _require_fitting(config: RunConfig) -> None:
    """Refuse combinations whose formulas would silently be wrong; the parts say what they need."""
    local, client, rule = config.local, config.client["name"], build_rule(config)
    plain = local.optimizer == "sgd" and not (local.momentum or local.weight_decay or local.clip)
    allowed = "its control variates are right for plain SGD (momentum, weight decay and clipping off)"
    hint = "local.optimizer=sgd, or client=plain"
    require_fits(plain or not rule.needs_plain_sgd, "client", client, allowed, hint)
    scaled = config.trainer.precision == "16-mixed" and (rule.changes_gradients or rule.sends)
    allowed = "its correction would be added to scaled gradients"
    require_fits(not scaled, "client", client, allowed, "trainer.precision=bf16-mixed")
    _require_fednova(config)
    uniform = config.clients.weights == "uniform"
    nova = config.participation.get("normalize") in NEEDS_UNIFORM_MEAN
    allowed = "uniform: FedNova and MIFA are written for the plain mean"
    ok = uniform or not (nova or rule.needs_uniform_mean)
    require(ok, "clients.weights", config.clients.weights, allowed, "clients.weights=uniform")
    whole = isinstance(build_upload(config), WholeDelta)
    allowed = f"client={client} steps with what clients keep, which no upload rule shortens"
    require_fits(
        whole or not rule.needs_plain_upload, "upload", config.upload["name"], allowed, "upload=plain"
    )


def _require_fednova(config: RunConfig) -> None:
    """Refuse local optimisers whose a_i FedNova's formulas do not give."""
    if config.participation.get("normalize") != "fednova":
        return
    name = config.local.optimizer
    options = config.local.optimizers[name]
    known = options["_target_"] == "torch.optim.SGD" and not (
        options.get("nesterov") or options.get("dampening")
    )
    allowed = "sgd, with momentum and client=fedprox at most: FedNova's a_i is not known for another"
    hint = "local.optimizer=sgd, or participation.normalize=none"
    require(known, "local.optimizer", name, allowed, hint)
    fresh = config.local.state == "reset" or not options.get("momentum")
    allowed = "reset: FedNova's a_i is that of a momentum which starts at zero"
    require(fresh, "local.state", config.local.state, allowed, "local.state=reset")


def task_class(config: RunConfig) -> type[TaskModule]:
    """The task's class, which says what it measures before anything is loaded."""
    found: Any = target_of(config.task, "task")
    allowed = "a subclass of fedgm.tasks.TaskModule with training_step and sums"
    ok = isinstance(found, type) and issubclass(found, TaskModule) and not isabstract(found)
    require(ok, "task._target_", config.task.get("_target_"), allowed, "task=classification")
    return found


def scoreboard_of(config: RunConfig) -> Scoreboard:
    """The task's metrics, judged by ``eval.metric`` or by the task's own headline."""
    task, asked = task_class(config), config.eval.metric
    board = Scoreboard(task.metrics, asked or task.headline)
    ok = board.headline in board.columns
    require(ok, "eval.metric", asked, f"one of {', '.join(board.columns)}", f"eval.metric={task.headline}")
    return board


def load_federation(config: RunConfig) -> ClientData:
    """The clients' data, from whatever source the configuration names."""
    source: Source = build(config.data.source, "data.source", kind=Source)
    return source.federate(config)


def build_module(config: RunConfig, facts: Mapping[str, Any]) -> TaskModule:
    """The task's module with weights drawn from the seed; ``facts`` is what the data decides of it."""
    local, task = config.local, task_class(config)
    missing = [name for name in task.model_needs if name not in facts]
    allowed = f"data={config.data.name} does not know {', '.join(missing)}, which its model needs"
    require_fits(not missing, "task", config.task["name"], allowed, "a task that fits data, or other data")
    given = {name: facts[name] for name in task.model_needs}
    if target_of(config.model, "model").__module__.startswith(COUNTED):
        require_model_fits(config, parameters(config.model, given), 1)
    where = f"local.optimizers.{local.optimizer}"
    optimizer = partial(build, local.optimizers[local.optimizer], where, kind=torch.optim.Optimizer)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(derive(config.seed, "init"))
        net = build_net(config.model, given)
    require_model_fits(config, sum(p.numel() for p in net.parameters()), 1)
    layout = bool(config.model["channels_last"])
    return build(config.task, "task", net=net, optimizer=optimizer, channels_last=layout)


def build_participation(config: RunConfig, data: ClientData) -> Participation:
    """Who takes part; schemes may ask how many steps a client makes and which labels it has."""
    local = config.local
    facts = ClientFacts(
        steps=lambda client, epochs: local_steps(data, client, epochs, local.unit),
        effective=partial(
            effective_steps, momentum=local.momentum, pull=local.lr * config.client.get("mu", 0.0)
        ),
        labels=getattr(data, "labels", None),
    )
    return build(config.participation, "participation", facts, kind=Participation)


def build_rule(config: RunConfig) -> ClientRule:
    """What clients do besides plain SGD."""
    return build(config.client, "client", kind=ClientRule)


def build_callbacks(config: RunConfig) -> list[pl.Callback]:
    """The callbacks of the configuration, each by its ``_target_``."""
    nodes = {name: node for name, node in config.callbacks.items() if isinstance(node, Mapping)}
    return [build(node, f"callbacks.{name}", kind=pl.Callback) for name, node in nodes.items()]


def build_upload(config: RunConfig) -> UploadRule:
    """What clients send of their update."""
    return build(config.upload, "upload", kind=UploadRule)


def worker_count(config: RunConfig, alone: bool) -> int:
    """``auto`` is every core for a run on its own, one where runs stand side by side; never idle workers."""
    asked = config.trainer.workers
    if started := world():
        allowed = f"auto: torchrun or srun has started {started.size} processes"
        require(asked in ("auto", started.size), "trainer.workers", asked, allowed, "trainer.workers=auto")
        return started.size
    if asked == "auto":
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        asked = cores if alone and config.trainer.accelerator == "cpu" else 1
    return min(asked, config.clients.per_round)


def build_trainer(
    config: RunConfig, callbacks: list[pl.Callback], workers: int, loggers: Sequence[Logger] = ()
) -> pl.Trainer:
    """Lightning's Trainer with everything off that belongs to us: checkpoints, progress."""
    torch.set_num_threads(config.trainer.threads)
    strategy: Any = FederatedDDP() if workers > 1 else "auto"
    started, per_node = world(), workers
    plugins: list[Any] = [AtomicCheckpointIO(config.checkpoint.sync)]
    if started is not None:
        per_node = workers // started.nodes
    elif workers > 1:  # our own forks, also inside a SLURM job that srun has not multiplied
        plugins.append(LightningEnvironment())
    try:
        return pl.Trainer(
            accelerator=config.trainer.accelerator,
            devices=per_node,  # a worker is a process on the CPU, or a GPU
            num_nodes=started.nodes if started else 1,
            strategy=strategy,
            precision=config.trainer.precision,  # pyright: ignore[reportArgumentType]
            max_epochs=config.rounds,
            gradient_clip_val=config.local.clip,
            callbacks=callbacks,
            plugins=plugins,
            logger=list(loggers) or False,
            log_every_n_steps=1,
            enable_checkpointing=any(isinstance(c, Checkpoint) for c in callbacks),
            enable_progress_bar=False,
            enable_model_summary=False,
            num_sanity_val_steps=0,
            use_distributed_sampler=False,
        )
    except (ValueError, MisconfigurationException) as error:
        t = config.trainer
        asked = f"(accelerator={t.accelerator}, workers={workers}, precision={t.precision})"
        raise ClashError("trainer", asked, str(error).splitlines()[0].rstrip("!."), "trainer=cpu") from error


def fit(
    config: RunConfig,
    trainer: pl.Trainer,
    module: pl.LightningModule,
    data: ClientData,
    checkpoint: str | None,
    store: Store | None = None,
) -> FederatedLoop:
    """Run Algorithm 3/4 in Lightning; continue from ``checkpoint`` where one is given."""
    settings = RoundSettings(
        rounds=config.rounds,
        seed=config.seed,
        unit=config.local.unit,
        weights=config.clients.weights,
        eval_every=config.eval.every,
        nonfinite=config.clients.nonfinite,
        loss_limit=config.eval.loss_limit or math.inf,
        eval_point=config.eval.point,
        keep=config.local.state == "keep",
    )
    if isinstance(data, Federation) and isinstance(module, TaskModule):
        data = fit_batches(module.net, data, config.model.get("norm"), config.data.min_samples)
    parts = ClientParts(build_rule(config), build_upload(config), store)
    loop = FederatedLoop(trainer, data, build_participation(config, data), settings, parts)
    trainer.fit_loop = loop
    measured: dict[str, Evaluation] = dict(data.evaluations())
    if config.eval.clients:
        measured["clients"] = client_evaluation(data, config.eval.clients, config.seed)
    trainer.fit(
        module,
        val_dataloaders=[WorkerShare(trainer, part, split) for split, part in measured.items()],
        ckpt_path=checkpoint,
    )
    return loop
