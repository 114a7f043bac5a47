"""From a configuration to the parts of a run: data, module, trainer."""

import logging
import math
import os
from collections.abc import Iterator
from functools import partial
from typing import Any

import torch
from torch import nn

from fedgm.client.module import ClientModule
from fedgm.client.rule import ClientRule
from fedgm.client.store import ClientStore
from fedgm.cohort import RoundSettings
from fedgm.config import RunConfig
from fedgm.data.dataset import Dataset, pool, subset
from fedgm.data.federation import Evaluation, Federation, federation
from fedgm.draws import derive
from fedgm.errors import ConfigError, require
from fedgm.lightning import MisconfigurationException, pl
from fedgm.loop import FederatedLoop
from fedgm.participation import Participation
from fedgm.participation.normalize import effective_steps
from fedgm.parts import build, check
from fedgm.server import Plan, Schedule, ServerRule
from fedgm.server.rule import Averages, SeesNorms
from fedgm.server.schedule_free import require_its_schedule
from fedgm.track.checkpoint import AtomicCheckpointIO
from fedgm.workers import FederatedDDP

for _name in ("pytorch_lightning", "lightning_fabric", "lightning.fabric"):
    logging.getLogger(_name).setLevel(logging.WARNING)  # their greetings and tips


def build_server(config: RunConfig) -> tuple[ServerRule, Plan]:
    """The server rule and the plan of its hyperparameters; cheap, so it comes before anything is loaded."""
    rule: ServerRule = build(config.algorithm, "algorithm")
    schedule: Schedule = build(config.schedule, "schedule")
    require_its_schedule(rule, schedule, config.schedule["name"])
    plan = schedule.plan(config.rounds, rule)
    _require_known_to(rule, config)
    check(config.participation, "participation")
    check(config.client, "client")
    _require_fitting(config)
    check(config.model, "model", given={"num_classes"})
    local = config.local
    check(local.optimizers[local.optimizer], f"local.optimizers.{local.optimizer}", given={"params"})
    return rule, plan


def _require_known_to(rule: ServerRule, config: RunConfig) -> None:
    """Refuse what this server rule has no answer to."""
    point = config.eval.point
    allowed = "sent: this algorithm has no averaged point"
    require(point == "sent" or isinstance(rule, Averages), "eval.point", point, allowed, "eval.point=sent")
    client = config.client["name"]
    allowed = (
        "a rule whose D is the mean of the cohort: this algorithm compares D with the norms of its clients"
    )
    require(client != "mifa" or not isinstance(rule, SeesNorms), "client", client, allowed, "client=plain")


def _require_fitting(config: RunConfig) -> None:
    """Refuse combinations whose formulas would silently be wrong."""
    local, client, mixed = config.local, config.client["name"], config.trainer.precision == "16-mixed"
    plain = local.optimizer == "sgd" and not (local.momentum or local.weight_decay or local.clip)
    allowed = "its control variates are right for plain SGD (momentum, weight decay and clipping off)"
    require(client != "scaffold" or plain, "client", client, allowed, "local.optimizer=sgd, or client=plain")
    allowed = "its correction would be added to scaled gradients"
    require(client == "plain" or not mixed, "client", client, allowed, "trainer.precision=bf16-mixed")
    _require_fednova(config)
    uniform = config.clients.weights == "uniform"
    nova = config.participation.get("normalize") == "fednova"
    allowed = "uniform: FedNova and MIFA are written for the plain mean"
    ok = uniform or not (nova or client == "mifa")
    require(ok, "clients.weights", config.clients.weights, allowed, "clients.weights=uniform")


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


def load_federation(config: RunConfig) -> Federation:
    """The data set, reduced to the profile's size and split over clients."""
    data = config.data
    dataset: Dataset = build(data.source, "data.source")
    dataset = subset(dataset, data.train_samples, data.test_samples, data.seed)
    if data.resolution is not None:
        dataset = pool(dataset, data.resolution)
    return federation(
        dataset,
        clients=config.clients.count,
        alpha=data.alpha,
        seed=data.seed,
        min_samples=data.min_samples,
        partition=data.partition,
        client_samples=data.client_samples,
        shards=data.shards,
        classes_per_client=data.classes_per_client,
        augment=data.augment,
        eval_train_samples=config.eval.train_samples,
    )


def build_module(config: RunConfig, classes: int) -> ClientModule:
    """The client's module with weights drawn from the seed."""
    local = config.local
    optimizer = partial(build, local.optimizers[local.optimizer], f"local.optimizers.{local.optimizer}")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(derive(config.seed, "init"))
        net: nn.Module = build(config.model, "model", num_classes=classes)
    return ClientModule(net, optimizer, channels_last=bool(config.model["channels_last"]))


def build_participation(config: RunConfig, clients: Federation) -> Participation:
    """Who takes part; schemes may ask how many steps a client makes and which labels it has."""
    local = config.local
    offer = {
        "steps": lambda client, epochs: clients.steps_of(client, local.batch_size, epochs, local.unit),
        "effective": partial(
            effective_steps, momentum=local.momentum, pull=local.lr * config.client.get("mu", 0.0)
        ),
        "labels": lambda client: clients.train_labels.numpy()[clients.partition.indices(client)],
    }
    return build(config.participation, "participation", offer)


def build_rule(config: RunConfig) -> ClientRule:
    """What clients do besides plain SGD."""
    return build(config.client, "client")


def worker_count(config: RunConfig, alone: bool) -> int:
    """``auto`` is every core for a run on its own, one where runs stand side by side; never idle workers."""
    asked = config.trainer.workers
    if asked == "auto":
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        asked = cores if alone and config.trainer.accelerator == "cpu" else 1
    return min(asked, config.clients.per_round)


def build_trainer(config: RunConfig, callbacks: list[pl.Callback], workers: int) -> pl.Trainer:
    """Lightning's Trainer with everything off that belongs to us: rows, checkpoints, progress."""
    torch.set_num_threads(config.trainer.threads)
    strategy: Any = FederatedDDP() if workers > 1 else "auto"
    try:
        return pl.Trainer(
            accelerator=config.trainer.accelerator,
            devices=workers if workers > 1 or config.trainer.accelerator == "cpu" else config.trainer.devices,
            strategy=strategy,
            precision=config.trainer.precision,  # pyright: ignore[reportArgumentType]
            max_epochs=config.rounds,
            gradient_clip_val=config.local.clip,
            callbacks=callbacks,
            plugins=[AtomicCheckpointIO()],
            logger=False,
            enable_checkpointing=False,
            enable_progress_bar=False,
            enable_model_summary=False,
            num_sanity_val_steps=0,
            use_distributed_sampler=False,
        )
    except (ValueError, MisconfigurationException) as error:
        t = config.trainer
        asked = f"(accelerator={t.accelerator}, devices={t.devices}, precision={t.precision})"
        raise ConfigError("trainer", asked, str(error).splitlines()[0].rstrip("!."), "trainer=cpu") from error


def fit(
    config: RunConfig,
    trainer: pl.Trainer,
    module: ClientModule,
    clients: Federation,
    checkpoint: str | None,
    store: ClientStore | None = None,
) -> FederatedLoop:
    """Run Algorithm 3/4 in Lightning; continue from ``checkpoint`` where one is given."""
    settings = RoundSettings(
        rounds=config.rounds,
        seed=config.seed,
        batch_size=config.local.batch_size,
        unit=config.local.unit,
        weights=config.clients.weights,
        eval_every=config.eval.every,
        channels_last=bool(config.model["channels_last"]),
        lr=config.local.lr,
        nonfinite=config.clients.nonfinite,
        loss_limit=config.eval.loss_limit or math.inf,
        eval_point=config.eval.point,
    )
    rule = build_rule(config)
    loop = FederatedLoop(trainer, clients, build_participation(config, clients), settings, rule, store)
    trainer.fit_loop = loop
    layout = settings.channels_last
    test = clients.evaluation("test", config.eval.batch_size, layout)
    train = clients.evaluation("train", config.eval.batch_size, layout)
    trainer.fit(
        module,
        train_dataloaders=range(config.clients.per_round),  # a "batch" is a client: see FederatedLoop
        val_dataloaders=[WorkerShare(trainer, test), WorkerShare(trainer, train)],
        ckpt_path=checkpoint,
    )
    return loop


class WorkerShare:
    """Every ``world_size``-th batch of an evaluation, with its number.

    A worker for which none is left gets a batch numbered -1, which does not count: Lightning refuses an
    empty loader, and would not call the hooks in which the workers meet.
    """

    def __init__(self, trainer: pl.Trainer, evaluation: Evaluation) -> None:
        self.trainer, self.evaluation = trainer, evaluation

    @property
    def batches(self) -> int:
        """Batches of all workers together."""
        return len(self.evaluation)

    @property
    def _own(self) -> range:
        return range(self.trainer.global_rank, self.batches, self.trainer.world_size)

    def __len__(self) -> int:
        return max(1, len(self._own))

    def __iter__(self) -> Iterator[tuple[int, torch.Tensor, torch.Tensor]]:
        for number in self._own:
            yield (number, *self.evaluation.batch(number))
        if not self._own:
            yield (-1, *self.evaluation.batch(0))
