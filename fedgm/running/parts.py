"""From a checked configuration to the parts of a run: each is built once, here, before any data are loaded.

What the configuration alone shows to be wrong is refused here, cheapest first: Lightning is imported only for
the second half. What only the data decide is checked by :meth:`Parts.load`, on the same objects.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fedgm.client.optimizers import Effective, effective
from fedgm.client.rules import ClientRule
from fedgm.config import RunConfig
from fedgm.config.checks import require_model_fits
from fedgm.config.parts import build, check_part, target_of
from fedgm.data.clients import ClientData, Source, local_steps
from fedgm.data.federation import partition_of
from fedgm.errors import ClashError, require, require_fits
from fedgm.federated.fitting import require_even
from fedgm.models.size import parameters
from fedgm.participation import ClientFacts, Participation
from fedgm.participation.local_work import effective_steps
from fedgm.running.fitting import built_optimizer, require_fitting
from fedgm.schedule import Schedule
from fedgm.schedule.every_round import require_its_schedule
from fedgm.schedule.work import Local, Work, WorkSchedule
from fedgm.server import GeneralMomentum, ServerRule
from fedgm.server.engine import Engine
from fedgm.server.plan import Decided
from fedgm.upload import UploadRule
from fedgm.upload.privacy import Open, Privacy
from fedgm.upload.sending import Everyone, SendRule

if TYPE_CHECKING:  # they import Lightning
    from fedgm.federated.cohort import CohortTrainer
    from fedgm.lightning import Logger, pl
    from fedgm.tasks import Scoreboard, TaskModule

GIVEN_TO_A_SPLIT = {"labels", "clients", "seed", "min_samples"}
# Parameters that set eta alone, whatever a scheme calls them; the `a` of pid_opt (with Kd) is a momentum.
RATES = ("eta", "lr", "a", "L", "delta")


@dataclass
class Parts:
    """All that a run is made of, besides its data and the module that they decide."""

    engine: Engine
    participation: Participation
    client: ClientRule
    upload: UploadRule
    sending: SendRule | None  # None: all send
    privacy: Privacy | None  # None: nothing is clipped or noised
    work: Sequence[tuple[int, Work]]  # the last round of each stage and its local work; empty: local.*
    task: "type[TaskModule]"
    board: "Scoreboard"
    source: Callable[[], Source]  # its first call loads the data
    callbacks: "list[pl.Callback]"
    loggers: "Callable[[], list[Logger]]"  # built where they are opened: some write at once
    clients: "Clients"
    cohorts: "Callable[..., CohortTrainer] | None" = None  # who trains clients, where it is not this machine

    @property
    def history(self) -> int:
        """How many global models a run keeps: for stale clients, and for a client rule that looks back."""
        return self.participation.history + self.client.lookback

    def load(self, config: RunConfig) -> ClientData:
        """The clients' data, which the parts that ask about clients know from now on."""
        self.clients.data = self.source().federate(config)
        return self.clients.data


def load_clients(config: RunConfig) -> ClientData:
    """The clients' data alone, from whatever source the configuration names."""
    source: Source = build(config.data.source, "data.source", kind=Source)
    return source.federate(config)


def build_parts(config: RunConfig, folder: Path | None = None, typed: Sequence[str] = ()) -> Parts:
    """Every part once; ``folder`` is where loggers write, ``typed`` the words of the command line."""
    clients = Clients(config)
    engine = build_engine(config, typed)
    participation = build(config.participation, "participation", clients.facts, kind=Participation)
    client: ClientRule = build(config.client, "client", kind=ClientRule)
    upload: UploadRule = build(config.upload, "upload", kind=UploadRule)
    sending, privacy = build_sending(config), build_privacy(config)
    require_fitting(config, engine, participation, client, upload, sending, privacy)
    work = build_work(config, engine, participation)
    check_part(config.data.source, "data.source")
    check_part(partition_of(vars(config.data)), "data.partition", given=GIVEN_TO_A_SPLIT)
    _require_room(config, participation.history + client.lookback)
    task, board = task_class(config), scoreboard_of(config)
    _require_task(config, task)
    return Parts(
        engine, participation, client, upload, sending, privacy, work, task, board,
        partial(build, config.data.source, "data.source", kind=Source),
        _callbacks(config, folder), _loggers(config, folder), clients,
    )  # fmt: skip


def build_engine(config: RunConfig, typed: Sequence[str] = ()) -> Engine:
    """The server: its rule, and the plan of its hyperparameters."""
    rule: ServerRule = build(config.algorithm, "algorithm", kind=ServerRule)
    schedule: Schedule = build(config.schedule, "schedule", kind=Schedule)
    require_its_schedule(rule, schedule, config.schedule["name"])
    _require_rate_unset(config, rule, typed)
    return Engine(rule, schedule.plan(config.rounds, rule))


def build_sending(config: RunConfig) -> SendRule | None:
    """Who of a cohort sends; None where all do, which needs no second look."""
    rule: SendRule = build(config.sending, "sending", kind=SendRule)
    return None if isinstance(rule, Everyone) else rule


def build_privacy(config: RunConfig) -> Privacy | None:
    """What clips and adds noise; None where nothing does."""
    privacy: Privacy = build(config.privacy, "privacy", kind=Privacy)
    return None if isinstance(privacy, Open) else privacy


def build_work(config: RunConfig, engine: Engine, scheme: Participation) -> list[tuple[int, Work]]:
    """Local work by stage; empty where it is that of local.* in all rounds."""
    schedule: WorkSchedule = build(config.work, "work", kind=WorkSchedule)
    if not schedule.changes:
        return []
    reason = "the stages of this schedule are decided during the run"
    known = not isinstance(engine.plan, Decided)
    require_fits(known, "work", config.work["name"], reason, "schedule=constant, or work=constant")
    local = config.local
    given = Local(local.epochs, local.lr, local.batch_size, local.unit)
    stages = schedule.stages(config.rounds, engine.plan, given)
    require_even(stages, scheme)
    return stages


@dataclass
class Clients:
    """What schemes and samplers ask about clients, answered once the data are there."""

    config: RunConfig
    data: ClientData | None = None
    facts: ClientFacts = field(init=False)

    def __post_init__(self) -> None:
        self.facts = ClientFacts(self.steps, self.effective, self.labels, self.size)

    def steps(self, client: int, epochs: int) -> int:
        """K of a client that trains for ``epochs``."""
        assert self.data is not None, "asked about clients before the data were loaded"
        return local_steps(self.data, client, epochs, self.config.local.unit)

    def size(self, client: int) -> int:
        """How many samples a client has."""
        assert self.data is not None, "asked about clients before the data were loaded"
        return self.data.size(client)

    def effective(self, steps: int) -> float:
        """FedNova's |a|_1 of ``steps`` local steps."""
        return effective_steps(steps, *(self._terms or ()))

    @cached_property
    def _terms(self) -> Effective | None:
        """Asked of the optimiser that is built, whatever its settings were called."""
        return effective(built_optimizer(self.config), self.config.client.get("mu", 0.0))

    def labels(self, client: int) -> NDArray[np.int64]:
        """The classes of a client's samples."""
        asked = getattr(self.data, "labels", None)
        if asked is None:
            reason = f"data={self.config.data.name} has no labels, which this sampler asks for"
            sampler = self.config.participation["sampler"]["name"]
            raise ClashError("participation/sampler", sampler, reason, "participation/sampler=uniform")
        return asked(client)


def _require_rate_unset(config: RunConfig, rule: ServerRule, typed: Sequence[str]) -> None:
    """Refuse a server rate that was typed but would change nothing: stages take eta from schedule.etas.

    Defaults and what an experiment fills in (``paper_momentum``) were not asked for and pass. Rules outside
    FedGM's family use their eta: ``schedule=stages`` multiplies it.
    """
    if "etas" not in config.schedule or not isinstance(rule, GeneralMomentum) or "Kd" in config.algorithm:
        return
    for word in typed:
        key = word.split("=")[0].lstrip("+")
        reason = f"schedule={config.schedule['name']} takes eta from schedule.etas and ignores this"
        hint = f"leaving {key} out and setting schedule.etas, or schedule=constant"
        value = config.algorithm.get(key.removeprefix("algorithm."))
        require_fits(key not in [f"algorithm.{name}" for name in RATES], key, value, reason, hint)


def _require_room(config: RunConfig, history: int) -> None:
    """Refuse a model that does not fit; what only the data decide of its size is guessed."""
    if not str(config.model["_target_"]).startswith("fedgm."):
        return  # torchvision's are looked at only once its operators are declared
    wanted = inspect.signature(target_of(config.model, "model")).parameters
    source = config.data.source
    guessed = {"num_classes": source.get("classes", 10), "vocabulary": 256, "block": source.get("block", 64)}
    given: dict[str, Any] = {k: v for k, v in guessed.items() if k in wanted and isinstance(v, int)}
    require_model_fits(config, parameters(config.model, given), history)


def task_class(config: RunConfig) -> "type[TaskModule]":
    """The task's class, which says what it measures before anything is loaded."""
    from fedgm.tasks import TaskModule

    task: Any = target_of(config.task, "task")
    allowed = "a subclass of fedgm.tasks.TaskModule with training_step and sums"
    ok = isinstance(task, type) and issubclass(task, TaskModule) and not inspect.isabstract(task)
    require(ok, "task._target_", config.task.get("_target_"), allowed, "task=classification")
    return task


def scoreboard_of(config: RunConfig) -> "Scoreboard":
    """The task's metrics, judged by ``eval.metric`` or by the task's own headline."""
    from fedgm.tasks import Scoreboard

    task, asked = task_class(config), config.eval.metric
    board = Scoreboard(task.metrics, asked or task.headline)
    allowed = f"one of {', '.join(board.columns)}"
    require(board.headline in board.columns, "eval.metric", asked, allowed, f"eval.metric={task.headline}")
    return board


def _require_task(config: RunConfig, task: "type[TaskModule]") -> None:
    """Refuse values of the task, its model or its optimiser that cannot be built from."""
    from fedgm.models.build import require_weights

    check_part(config.task, "task", given={"net", "optimizer", "channels_last"})
    check_part(config.model, "model", given=set(task.model_needs))
    require_weights(config.model)
    built_optimizer(config)


def _callbacks(config: RunConfig, folder: Path | None) -> "list[pl.Callback]":
    """Those of the configuration, each by its ``_target_``; one that saves does so in the run folder."""
    from fedgm.lightning import pl

    built: list[pl.Callback] = []
    for name, node in config.callbacks.items():
        if isinstance(node, Mapping):
            key = f"callbacks.{name}"
            asked = "dirpath" in inspect.signature(target_of(node, key)).parameters and "dirpath" not in node
            place = {"dirpath": str(folder / name)} if asked and folder is not None else {}
            built.append(build(node, key, kind=pl.Callback, **place))
    return built


def _loggers(config: RunConfig, folder: Path | None) -> "Callable[[], list[Logger]]":
    """Checked now, built when the run's folder is there and locked; none where there is no folder."""
    from fedgm.running.loggers import build_loggers, check_loggers

    check_loggers(config.track)
    return partial(build_loggers, config.track, folder) if folder is not None else list
