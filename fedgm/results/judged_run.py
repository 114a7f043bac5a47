"""A run as the rules see it: its evaluations, how it ended, and what a divergent one counts with."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from fedgm.results import curve

TRAIN, TEST = "train", "test"  # splits; which metric of them is judged stands in the figure's yaml
LOSS = "train/loss"  # a column that every task has
JUDGED = ("finished", "diverged")
MARGIN = 1.2  # times chance: a model at or below it has learned nothing

Values = tuple[float | None, ...]
Window = Callable[["JudgedRun"], tuple[float, float]]  # rounds after the first and up to the second


@dataclass(frozen=True)
class Measure:
    """The metric that claims are about, as its task describes it; more of it is better."""

    name: str  # the second half of its columns
    label: str  # in words
    scale: float = 1.0  # shown is scale * value

    def column(self, split: str) -> str:
        """Its column of a split, as rows have it."""
        return f"{split}/{self.name}"

    def words(self, split: str) -> str:
        """For people: training or test, and the label."""
        return f"{'training' if split == TRAIN else split} {self.label}"


@dataclass(frozen=True)
class JudgedRun:
    """One seed of one line; ``rounds`` is T, ``ends`` are the last rounds of its stages."""

    seed: int
    status: str  # as in summary.json, or `missing`
    rounds: int = 0
    every: int = 1
    measured: tuple[int, ...] = ()
    values: Mapping[str, Values] = field(default_factory=dict[str, Values])
    ends: tuple[int, ...] = ()
    judged: str = ""  # the column that is at chance in a model that guesses
    classes: int | None = None  # of which it guesses one; None: the metric has no such level

    @property
    def is_judged(self) -> bool:
        """A run that failed, waits or is missing is not divergent: nothing is known of it."""
        return self.status in JUDGED

    @property
    def chance(self) -> float | None:
        """What a model that guesses reaches, where that is known."""
        return 1 / self.classes if self.classes else None

    @property
    def is_divergent(self) -> bool:
        """Ended as diverged, or mean of the last 10: training loss >= ln(classes), metric <= 1.2 chance."""
        if self.status == "diverged":
            return True
        if not (self.classes and self.is_judged):
            return False
        loss, reached = (curve.last10(self.values.get(key, ())) for key in (LOSS, self.judged))
        lost = loss is not None and loss >= math.log(self.classes)
        return lost or (reached is not None and reached <= MARGIN * (1 / self.classes))

    def last10(self, metric: str) -> float | None:
        """Mean of the last 10 evaluations; chance for a divergent run, whatever it reached before."""
        return self.chance if self.is_divergent else curve.last10(self.values.get(metric, ()))

    def curve(self, metric: str) -> tuple[list[int], list[float]]:
        """Its evaluations; chance fills those after the end of a run that diverged."""
        known = dict(zip(self.measured, self.values.get(metric, ()), strict=False))
        rounds = self.planned if self.status == "diverged" else self.measured
        filled = [(t, known.get(t)) for t in rounds]
        if self.status == "diverged":
            filled = [(t, self.chance if value is None else value) for t, value in filled]
        kept = [(t, value) for t, value in filled if value is not None]
        return [t for t, _ in kept], [value for _, value in kept]

    @property
    def planned(self) -> tuple[int, ...]:
        """Rounds after which the model is evaluated: every few, and the last."""
        return tuple(t for t in range(1, self.rounds + 1) if t % self.every == 0 or t == self.rounds)

    def within(self, metric: str, window: Window) -> tuple[list[int], list[float]]:
        """Evaluations of the rounds in a window."""
        after, until = window(self)
        inside = [(t, v) for t, v in zip(*self.curve(metric), strict=True) if after < t <= until]
        return [t for t, _ in inside], [v for _, v in inside]


def whole(run: JudgedRun) -> tuple[float, float]:
    """All rounds."""
    return 0, run.rounds


def quarter(run: JudgedRun) -> int:
    """A quarter of T, rounded half up: the paper's 500 of 2000 rounds."""
    return math.floor(run.rounds / 4 + 0.5)


def first_quarter(run: JudgedRun) -> tuple[float, float]:
    """The paper's first 500 of 2000 rounds."""
    return 0, quarter(run)


def last_quarter(run: JudgedRun) -> tuple[float, float]:
    """The paper's last 500 of 2000 rounds."""
    return run.rounds - quarter(run), run.rounds


def stage(number: int) -> Window:
    """Stage ``number``, from 1: after the end of the one before it, up to its own."""

    def rounds(run: JudgedRun) -> tuple[float, float]:
        if number > len(run.ends):
            return 0, 0  # no such stage, so no evaluations
        return (run.ends[number - 2] if number > 1 else 0), run.ends[number - 1]

    return rounds


def settled_stage_1(run: JudgedRun) -> tuple[float, float]:
    """Stage 1 without its first third, in which a curve bends because it learns fast."""
    end = run.ends[0] if run.ends else 0
    return end / 3, end
