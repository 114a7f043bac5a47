"""The schema of a run: types are checked while Hydra composes, ranges in ``__post_init__``.

Parts that are chosen by ``_target_`` (algorithm, schedule, model ...) have no second schema here:
:mod:`fedgm.config.parts` reads the types of their parameters from the target's own signature.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Any

from omegaconf import MISSING

from fedgm.config.options import options
from fedgm.config.ranges import at_least, fits_float32, named, one_of, positive
from fedgm.errors import require

PARTS = (
    "algorithm", "schedule", "participation", "client", "upload", "sending", "privacy", "work", "task",
    "callbacks", "model",
)  # fmt: skip


@dataclass
class ClientsConfig:
    """The federation: n clients, m of them in each round."""

    count: int = MISSING
    per_round: int = MISSING
    weights: str = MISSING
    nonfinite: str = MISSING

    def __post_init__(self) -> None:
        one_of("clients.nonfinite", self.nonfinite, "stop", "drop")
        at_least("clients.count", self.count, 1, 100)
        ok = 1 <= self.per_round <= self.count
        allowed = f"1 to clients.count={self.count}"
        require(ok, "clients.per_round", self.per_round, allowed, f"clients.per_round={min(5, self.count)}")
        one_of("clients.weights", self.weights, "uniform", "samples")


@dataclass
class LocalConfig:
    """LocalOPT (Alg. 2)."""

    epochs: int = MISSING
    unit: str = MISSING
    lr: float = MISSING
    batch_size: int = MISSING
    optimizer: str = MISSING
    momentum: float = MISSING
    weight_decay: float = MISSING
    clip: float | None = MISSING
    optimizers: dict[str, Any] = MISSING
    state: str = "reset"

    def __post_init__(self) -> None:
        one_of("local.state", self.state, "reset", "keep")
        at_least("local.epochs", self.epochs, 1, 3)
        one_of("local.unit", self.unit, "epochs", "steps")
        positive("local.lr", self.lr, 0.01)
        at_least("local.batch_size", self.batch_size, 1, 20)
        one_of("local.optimizer", self.optimizer, *self.optimizers)
        ok = 0 <= self.momentum < 1
        require(ok, "local.momentum", self.momentum, "0 <= momentum < 1", "local.momentum=0.9")
        at_least("local.weight_decay", self.weight_decay, 0, 0.0001)
        positive("local.clip", self.clip, 10)
        fits_float32("local.lr", self.lr, 0.01)
        fits_float32("local.weight_decay", self.weight_decay, 0.0001)
        chosen = self.optimizers[self.optimizer]
        for name, value in chosen.items() if isinstance(chosen, Mapping) else ():
            if type(value) in (int, float):
                fits_float32(f"local.optimizers.{self.optimizer}.{name}", value, 0.01)


@dataclass
class PaperMomentum:
    """An experiment's (eta, beta, nu), which FedGM takes and FedAvg (nu = 0) does not."""

    eta: float = MISSING
    beta: float = MISSING
    nu: float = MISSING


@dataclass
class EvalConfig:
    """When and on what the global model is measured."""

    every: int = MISSING
    batch_size: int = MISSING
    train_samples: int = MISSING
    loss_limit: float | None = MISSING
    point: str = "sent"
    metric: str | None = None
    clients: int = 0
    held_out: int = 0

    def __post_init__(self) -> None:
        at_least("eval.clients", self.clients, 0, 10)
        at_least("eval.held_out", self.held_out, 0, 10)
        one_of("eval.point", self.point, "sent", "average")
        positive("eval.loss_limit", self.loss_limit, 10000)
        at_least("eval.every", self.every, 1, 5)
        at_least("eval.batch_size", self.batch_size, 1, 100)
        at_least("eval.train_samples", self.train_samples, 1, 1000)


@dataclass
class CheckpointConfig:
    """How much a killed run may lose."""

    every: int = MISSING
    keep: int = MISSING
    sync: bool = True

    def __post_init__(self) -> None:
        at_least("checkpoint.every", self.every, 1, 1)
        at_least("checkpoint.keep", self.keep, 1, 2)


@dataclass
class DataConfig:
    """A source and the way it is split over clients; keys with a value here are read by images alone."""

    name: str = MISSING
    alpha: float = inf
    seed: int = MISSING
    partition: Any = "dirichlet"  # an option of conf/data/partition, or keys with a _target_
    client_samples: int | None = None
    min_samples: int = 1
    train_samples: int | None = None
    test_samples: int | None = None
    resolution: int | None = None
    augment: str = "none"
    path: str | None = None
    root: str | None = None
    source: Any = MISSING  # builds what can `federate`: see fedgm/data/clients.py
    shards: int = 2
    classes_per_client: int = 2
    shared: float = 0.0
    owners: int = 100  # fills clients.count

    def __post_init__(self) -> None:
        require(0 <= self.shared <= 1, "data.shared", self.shared, "0 (nothing) to 1", "data.shared=0.05")
        allowed = "0 (one class per client), a positive number, or inf (IID)"
        require(self.alpha >= 0, "data.alpha", self.alpha, allowed, "data.alpha=0.5")
        words = options("data/partition")
        is_part = isinstance(self.partition, Mapping) and "_target_" in self.partition
        allowed = f"{' or '.join(words)}, or keys with a _target_"
        ok = is_part or self.partition in words
        require(ok, "data.partition", self.partition, allowed, "data.partition=dirichlet")
        at_least("data.owners", self.owners, 1, 100)
        at_least("data.shards", self.shards, 1, 2)
        at_least("data.classes_per_client", self.classes_per_client, 1, 2)
        one_of("data.augment", self.augment, "none", "flip", "crop_flip")
        at_least("data.min_samples", self.min_samples, 1, 10)
        at_least("data.client_samples", self.client_samples, 1, 100)
        at_least("data.train_samples", self.train_samples, 1, 10000)
        at_least("data.test_samples", self.test_samples, 1, 2500)
        at_least("data.resolution", self.resolution, 4, 16)


@dataclass
class ProfileConfig:
    """Sizes; nothing of the algorithm."""

    name: str = MISSING
    train_samples: int | None = MISSING
    test_samples: int | None = MISSING
    eval_train_samples: int = MISSING
    resolution: int | None = MISSING
    augment: str = MISSING
    depth: int = MISSING
    resnet_width: int = MISSING
    vgg_width: int = MISSING
    norm: str = MISSING
    batch_size: int = MISSING
    min_samples: int = MISSING
    rounds_scale: float = MISSING
    eval_every: int = MISSING
    alpha: float = 0.5  # data.alpha of images: the paper's
    noise: float = 0.8  # of made images: data.source.noise, distractor, jitter, tint
    distractor: float = 1.0
    jitter: float = 0.5
    tint: float = 0.25


@dataclass
class TrainerConfig:
    """What Lightning's Trainer is told."""

    name: str = MISSING
    accelerator: str = MISSING
    workers: Any = MISSING  # int | "auto"
    threads: int = MISSING
    precision: str = MISSING
    keep_memory: bool = True
    profiler: str | None = None

    def __post_init__(self) -> None:
        one_of("trainer.profiler", self.profiler or "null", "null", "simple", "advanced")
        ok = self.workers == "auto" or (type(self.workers) is int and self.workers >= 1)
        require(ok, "trainer.workers", self.workers, "auto or a number of at least 1", "trainer.workers=1")
        at_least("trainer.threads", self.threads, 1, 1)


@dataclass
class TrackConfig:
    """Where rows go: Weights & Biases, and any number of Lightning loggers."""

    name: str = MISSING
    mode: str = "disabled"
    project: str = "fedgm"
    entity: str | None = None
    group: str | None = None
    tags: list[str] = field(default_factory=list[str])
    artifacts: bool = False
    loggers: dict[str, Any] = field(default_factory=dict[str, Any])  # each by its _target_

    def __post_init__(self) -> None:
        one_of("track.mode", self.mode, "auto", "online", "offline", "disabled")


@dataclass
class RunConfig:
    """Everything that makes a run."""

    name: str = MISSING
    seed: int = MISSING
    paper_rounds: int = MISSING
    rounds: int = MISSING
    paper_momentum: PaperMomentum = MISSING
    paper_delay: int = MISSING
    winners: str | None = None
    best: Any = field(default_factory=dict[str, Any])
    figure: Any = None  # fedgm/study/figure.py reads it
    output_dir: str = MISSING
    rerun: bool = MISSING
    stop_after: int | None = None
    algorithm: Any = MISSING
    schedule: Any = MISSING
    participation: Any = MISSING
    client: Any = MISSING
    upload: Any = field(default_factory=lambda: {"name": "plain", "_target_": "fedgm.upload.message.Plain"})
    sending: Any = field(default_factory=lambda: {"name": "all", "_target_": "fedgm.upload.sending.Everyone"})
    privacy: Any = field(default_factory=lambda: {"name": "none", "_target_": "fedgm.upload.privacy.Open"})
    work: Any = field(
        default_factory=lambda: {"name": "constant", "_target_": "fedgm.schedule.work.Constant"}
    )
    task: Any = field(
        default_factory=lambda: {
            "name": "classification",
            "_target_": "fedgm.tasks.cross_entropy.Classification",
        }
    )
    callbacks: Any = field(default_factory=lambda: {"name": "none"})
    model: Any = MISSING
    data: DataConfig = MISSING
    profile: ProfileConfig = MISSING
    trainer: TrainerConfig = MISSING
    track: TrackConfig = MISSING
    clients: ClientsConfig = MISSING
    local: LocalConfig = MISSING
    eval: EvalConfig = MISSING
    checkpoint: CheckpointConfig = MISSING

    def __post_init__(self) -> None:
        inside = all(part not in ("", ".", "..") and part.isprintable() for part in self.name.split("/"))
        require(inside, "name", self.name, "a folder below output_dir", "name=mine")
        at_least("rounds", self.rounds, 1, 70)
        at_least("seed", self.seed, 0, 0)
        for key, node in self._seeded():
            at_least(f"{key}.seed", node.get("seed"), 0, 0)
        at_least("stop_after", self.stop_after, 1, 50)
        for group in PARTS:
            named(f"{group}.name", getattr(self, group))

    def _seeded(self) -> list[tuple[str, Mapping[str, Any]]]:
        """The nodes that may have a seed of their own; one that is not a number is refused by its part."""
        sampler = self.participation.get("sampler") if isinstance(self.participation, Mapping) else None
        nodes = {
            "data": {"seed": self.data.seed},
            "data.source": self.data.source,
            "participation": self.participation,
            "participation.sampler": sampler,
        }
        return [
            (key, node) for key, node in nodes.items()
            if isinstance(node, Mapping) and isinstance(node.get("seed"), int | float)
        ]  # fmt: skip
