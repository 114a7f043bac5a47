"""Lightning's side of a run: the module, the trainer, and the fit."""

import logging
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch

from fedgm.client.store import Store
from fedgm.config import RunConfig
from fedgm.config.checks import require_model_fits
from fedgm.config.parts import build, target_of
from fedgm.data.clients import ClientData, Evaluation, client_evaluation, held_out_evaluation
from fedgm.data.federation import Federation
from fedgm.draws import derive
from fedgm.errors import ClashError, require, require_fits
from fedgm.federated.cohort import ClientParts, CohortTrainer, RoundSettings
from fedgm.federated.loop import FederatedLoop, rounds_done
from fedgm.federated.ranks import world
from fedgm.federated.workers import FederatedDDP
from fedgm.lightning import (
    AdvancedProfiler,
    Checkpoint,
    LightningEnvironment,
    Logger,
    MisconfigurationException,
    Profiler,
    SimpleProfiler,
    pl,
)
from fedgm.models.build import build_net, fit_batches, require_kind
from fedgm.models.layout import fit_layout, is_channels_last
from fedgm.models.size import parameters
from fedgm.running.checkpoint import AtomicCheckpointIO
from fedgm.running.parts import Parts, task_class
from fedgm.seals import UNNAMED
from fedgm.tasks import TaskModule
from fedgm.tasks.metric import HELD_OUT
from fedgm.tasks.module import Numbered

TALKATIVE = ("pytorch_lightning", "lightning_fabric", "lightning.fabric")  # their greetings and tips


def without_greetings() -> None:
    """Lightning's tips are not the user's business: its Trainer is made by us."""
    for name in TALKATIVE:
        logging.getLogger(name).setLevel(logging.WARNING)


def build_module(config: RunConfig, facts: Mapping[str, Any]) -> TaskModule:
    """The task's module with weights drawn from the seed; ``facts`` is what the data decide of it."""
    local, task = config.local, task_class(config)
    missing = [name for name in task.model_needs if name not in facts]
    allowed = f"data={config.data.name} does not know {', '.join(missing)}, which its model needs"
    require_fits(not missing, "task", config.task["name"], allowed, "a task that fits data, or other data")
    given = {name: facts[name] for name in task.model_needs}
    if target_of(config.model, "model").__module__.startswith("torchvision.models."):
        require_model_fits(config, parameters(config.model, given), 1)  # ours have been counted
    where = f"local.optimizers.{local.optimizer}"
    optimizer = partial(build, local.optimizers[local.optimizer], where, kind=torch.optim.Optimizer)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(derive(config.seed, "init"))
        net = build_net(config.model, given)
    require_kind(net, config.model, facts)
    require_model_fits(config, sum(p.numel() for p in net.parameters()), 1)
    side = facts.get("resolution") or config.data.resolution or 0
    layout = is_channels_last(net, bool(config.model["channels_last"]), side, config.trainer.accelerator)
    return build(config.task, "task", net=net, optimizer=optimizer, channels_last=layout)


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
    config: RunConfig,
    callbacks: list[pl.Callback],
    workers: int,
    loggers: Sequence[Logger] = (),
    run: str = UNNAMED,
    folder: Path | None = None,
) -> pl.Trainer:
    """Lightning's Trainer without what is ours: checkpoints, sealed with the name of the run; progress.

    What a profiler finds goes into ``folder``.
    """
    without_greetings()
    torch.set_num_threads(config.trainer.threads)
    strategy: Any = FederatedDDP(config.trainer.threads) if workers > 1 else "auto"
    started, per_node = world(), workers
    plugins: list[Any] = [AtomicCheckpointIO(config.checkpoint.sync, run)]
    if started is not None:
        per_node = workers // started.nodes
    else:  # this process and our own forks, also inside a SLURM job that srun has not multiplied
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
            profiler=_profiler(config.trainer.profiler, folder),
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


def _profiler(kind: str | None, folder: Path | None) -> Profiler | None:
    """Lightning's own, with its report as ``fit-profile.txt``: its log would not be shown."""
    if kind is None or folder is None:
        return None
    return (SimpleProfiler if kind == "simple" else AdvancedProfiler)(folder, "profile")


def require_trainer(config: RunConfig, workers: int) -> None:
    """Refuse a device or a precision that this machine does not have before data are loaded."""
    if (config.trainer.accelerator, config.trainer.precision) != ("cpu", "32-true"):
        build_trainer(config, [], workers)


def fit(
    config: RunConfig,
    parts: Parts,
    trainer: pl.Trainer,
    module: pl.LightningModule,
    data: ClientData,
    checkpoint: str | None = None,
    store: Store | None = None,
) -> FederatedLoop:
    """Run Algorithm 3/4 in Lightning; continue from ``checkpoint`` where one is given."""
    loop = put_loop(config, parts, trainer, module, data, store)
    measured: dict[str, Evaluation] = dict(loop.data.evaluations())
    if config.eval.clients:
        measured["clients"] = client_evaluation(loop.data, config.eval.clients, config.seed)
    if config.eval.held_out:
        measured[HELD_OUT] = held_out_evaluation(loop.data, config.eval.held_out, config.seed)
    loaders = [WorkerShare(trainer, part, split) for split, part in measured.items()]
    trainer.fit(module, val_dataloaders=loaders, ckpt_path=checkpoint)
    return loop


def put_loop(
    config: RunConfig,
    parts: Parts,
    trainer: pl.Trainer,
    module: pl.LightningModule,
    data: ClientData,
    store: Store | None = None,
) -> FederatedLoop:
    """Give the trainer the loop of this configuration; its next fit runs it."""
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
        work=parts.work,
    )
    if isinstance(data, Federation) and isinstance(module, TaskModule):
        fit_layout(module.net, data, config.trainer.accelerator)
        data = fit_batches(module.net, data, config.model.get("norm"), config.data.min_samples)
        parts.clients.data = data
    client = ClientParts(parts.client, parts.upload, store, parts.sending, parts.privacy)
    cohorts = parts.cohorts or CohortTrainer
    loop = FederatedLoop(trainer, data, parts.participation, settings, client, cohorts=cohorts)
    trainer.fit_loop = loop
    return loop


class WorkerShare:
    """Every ``world_size``-th batch of an evaluation, with its number.

    A worker for which none is left gets a batch numbered -1, which does not count: Lightning refuses an
    empty loader, and would not call the hooks in which the workers meet.
    """

    def __init__(self, trainer: pl.Trainer, evaluation: Evaluation, split: str) -> None:
        self.trainer, self.evaluation, self.split = trainer, evaluation, split
        self.groups: list[int] | None = getattr(evaluation, "groups", None)

    @property
    def batches(self) -> int:
        """Batches of all workers together."""
        return len(self.evaluation)

    @property
    def _share(self) -> range:
        return range(self.trainer.global_rank, self.batches, self.trainer.world_size)

    def __len__(self) -> int:
        return max(1, len(self._share))

    def __iter__(self) -> Iterator[Numbered]:
        for number in self._share:
            yield Numbered(number, self.evaluation.batch(number))
        if not self._share:
            yield Numbered(-1, self.evaluation.batch(0))


class PauseAfter(pl.Callback):
    """``stop_after=R``: ends a run early with a checkpoint, so that a larger R continues it bit for bit.

    It adds no evaluation, and leaves rounds and stage ends alone.
    """

    def __init__(self, last: int) -> None:
        self.last = last

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """A run that was killed after its last round has nothing left to do."""
        self._stop_where_due(trainer)

    def on_train_epoch_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """One more round."""
        self._stop_where_due(trainer)

    def _stop_where_due(self, trainer: pl.Trainer) -> None:
        if rounds_done(trainer) >= self.last:
            trainer.should_stop = True
