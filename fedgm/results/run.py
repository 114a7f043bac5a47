"""Run: one stored run, read from its folder or from an archive, and every number that is taken from it.

A score is what was measured: the mean of the last ten evaluations. Only a run that ended as diverged counts
with chance, where its metric has a chance level.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import Any

from fedgm.config.identity import identity_of_stored
from fedgm.results import curve
from fedgm.results.rows import Row
from fedgm.results.summary import DONE, Status
from fedgm.tasks.metric import ACCURACY, LOSS, Scoreboard, has_chance_level, scoreboard

LEAST_LOSS = 0.95  # of ln(classes): near chance, the training loss has hardly moved (docs/claims.md)
MOST_ABOVE = 0.13  # of what lies above chance: near chance, the test accuracy has hardly risen
LISTED = 100_000  # rounds of a run that diverged, of which the last ones are filled with chance
CIFAR10 = 10  # classes of runs that were stored before the data wrote their number down

Key = tuple[str, int]
Window = Callable[["Run"], tuple[float, float]]  # rounds after the first and up to the second


@dataclass(frozen=True)
class Run:
    """A run's facts, its configuration with dotted keys, and the rows in which the model was measured."""

    facts: dict[str, Any]
    config: dict[str, Any]
    evaluations: Sequence[Row] = field(repr=False)
    folder: Path | None = None  # None: it comes from an archive
    rows: Sequence[Row] = field(default=(), repr=False)  # of every round, where asked for
    is_sealed: bool = True  # False: of an older version, whose files do not show that they were changed
    mark: str | None = None  # its identity, where that has been computed before

    @classmethod
    def missing(cls, seed: int) -> "Run":
        """A planned run of which nothing is stored."""
        return cls({"hash": "", "seed": seed, "status": Status.MISSING, "rounds": 0}, {}, [])

    @cached_property
    def key(self) -> Key:
        """What identifies a run: its identity, computed from the stored configuration, and its seed."""
        return self.mark or identity_of_stored(self.config, self.facts), self.facts["seed"]

    @property
    def seed(self) -> int:
        """The seed that tells it from the other runs of its configuration."""
        return self.facts["seed"]

    @property
    def status(self) -> Status:
        """As in summary.json; a run that says `running` while no process works on it was killed."""
        return Status(self.facts["status"])

    @property
    def board(self) -> Scoreboard:
        """How its metrics are shown, and which of them judges it."""
        return scoreboard({key: value for key, value in self.facts.items() if value is not None})

    @property
    def label(self) -> str:
        """The algorithm with its rates, for people."""
        from fedgm.results import labels

        return labels.label(self, labels.RATES)

    @property
    def rounds(self) -> int:
        """T, the rounds that were asked for."""
        return int(self.facts.get("rounds") or 0)

    @property
    def rounds_done(self) -> int:
        """Rounds that are recorded."""
        return int(self.facts.get("rounds_done") or 0)

    @property
    def stage_ends(self) -> tuple[int, ...]:
        """Last rounds of the stages, the whole run's included."""
        return tuple(accumulate(int(stage["rounds"]) for stage in self.facts.get("stages") or []))

    # How it ended ---------------------------------------------------------------------------------------

    @property
    def is_done(self) -> bool:
        """Whether nothing is left to run."""
        return self.status in DONE

    @property
    def is_divergent(self) -> bool:
        """Whether it ended because a loss or an update was not finite, or above ``eval.loss_limit``."""
        return self.status == Status.DIVERGED

    @property
    def near_chance(self) -> bool:
        """The mark of docs/claims.md: finished, and both training loss and test accuracy hardly learned."""
        if self.status != Status.FINISHED or not self.classes:
            return False
        loss = curve.last10(self._values(f"train/{LOSS.name}"))
        reached, chance = curve.last10(self._values(f"test/{ACCURACY.name}")), 1 / self.classes
        if loss is None or reached is None:
            return False
        return loss >= LEAST_LOSS * math.log(self.classes) and reached <= chance + MOST_ABOVE * (1 - chance)

    @property
    def classes(self) -> int | None:
        """How many classes the data have; None for data without classes or where the number is not stored."""
        stated = self.facts.get("classes") or self.config.get("data.source.classes")
        if type(stated) is int and stated > 1:
            return stated
        return CIFAR10 if "cifar10" in (self.config.get("data.name"), self.facts.get("data")) else None

    def chance(self, column: str | None = None) -> float | None:
        """What a model that guesses reaches in a column; None where the metric has no such level."""
        name = (column or self.board.headline).rpartition("/")[2]
        return 1 / self.classes if self.classes and has_chance_level(name) else None

    # Its numbers ----------------------------------------------------------------------------------------

    def score(self, column: str | None = None, until: int | None = None) -> float | None:
        """Mean of the last ten evaluations (up to round ``until``); chance where it ended as diverged."""
        name = column or self.board.headline
        if self.is_divergent and (until is None or until >= self.rounds_done):
            return self.chance(name)
        return curve.last10(self._values(name, until))

    def final(self, column: str | None = None) -> float | None:
        """The last evaluation; chance where the run ended as diverged."""
        name = column or self.board.headline
        if self.is_divergent:
            return self.chance(name)
        return self.evaluations[-1].get(name) if self.evaluations else None

    def curve(self, column: str) -> tuple[list[int], list[float]]:
        """Rounds and values of its evaluations; chance fills those after the end of a run that diverged."""
        values = {int(row["round"] or 0): row.get(column) for row in self.evaluations}
        if self.is_divergent:
            values = {t: self.chance(column) if values.get(t) is None else values[t] for t in self.planned}
        kept = {t: value for t, value in values.items() if value is not None}
        return list(kept), list(kept.values())

    @property
    def planned(self) -> list[int]:
        """Rounds after which the model is evaluated: every few, and the last."""
        stated = self.config.get("eval.every")
        every = max(stated if type(stated) is int else 1, 1, self.rounds // LISTED)
        return [*range(every, self.rounds, every), *([self.rounds] if self.rounds else [])]

    def within(self, column: str, window: Window) -> tuple[list[int], list[float]]:
        """Evaluations of the rounds in a window."""
        after, until = window(self)
        inside = [(t, v) for t, v in zip(*self.curve(column), strict=True) if after < t <= until]
        return [t for t, _ in inside], [v for _, v in inside]

    def _values(self, column: str, until: int | None = None) -> list[float | None]:
        """A column as it was measured."""
        inside = (row for row in self.evaluations if until is None or (row["round"] or 0) <= until)
        return [row.get(column) for row in inside]


def whole(run: Run) -> tuple[float, float]:
    """All rounds."""
    return 0, run.rounds


def quarter(rounds: int) -> int:
    """A quarter of T, rounded half up: the paper's 500 of 2000 rounds."""
    return math.floor(rounds / 4 + 0.5)


def first_quarter(run: Run) -> tuple[float, float]:
    """The paper's first 500 of 2000 rounds."""
    return 0, quarter(run.rounds)


def last_quarter(run: Run) -> tuple[float, float]:
    """The paper's last 500 of 2000 rounds."""
    return run.rounds - quarter(run.rounds), run.rounds


def stage(number: int) -> Window:
    """Stage ``number``, from 1: after the end of the one before it, up to its own."""

    def rounds(run: Run) -> tuple[float, float]:
        ends = run.stage_ends
        if number > len(ends):
            return 0, 0  # no such stage, so no evaluations
        return (ends[number - 2] if number > 1 else 0), ends[number - 1]

    return rounds


def settled_stage_1(run: Run) -> tuple[float, float]:
    """Stage 1 without its first third, in which a curve bends because it learns fast."""
    end = run.stage_ends[0] if run.stage_ends else 0
    return end / 3, end


def once(runs: Iterable[Run]) -> dict[Key, Run]:
    """Each run once, by its key: one that is done, or went furthest. Figures and grids share runs."""
    kept: dict[Key, Run] = {}
    for run in runs:
        if run.key not in kept or _reach(run) > _reach(kept[run.key]):
            kept[run.key] = run
    return kept


def _reach(run: Run) -> tuple[bool, int]:
    return run.is_done, 0 if run.is_done else run.rounds_done


def mean_steps(runs: Iterable[Run]) -> str:
    """K as a caption says it: the least and the largest of the runs' means; empty where no run states it."""
    means = sorted(float(run.facts["local_steps"]) for run in runs if run.facts.get("local_steps"))
    ends = dict.fromkeys(f"{steps:.1f}" for steps in (means[:1] + means[-1:]))
    return f", K = {' to '.join(ends)} local steps on average" if means else ""
