"""Metrics by name: how each is shown, which way is better, and which of them judges a run."""

from collections.abc import Iterable, Mapping
from typing import Any, Literal, NamedTuple

Row = dict[str, float | int | None]  # the record of a round, by column
SPLITS = ("train", "test")  # of which x_t is measured; `local` is measured while clients train
TRAIN, TEST = SPLITS
WORDS = {TRAIN: "training", TEST: "test"}
HELD_OUT = "held_out"  # of each client, on its own held-out samples
SPREAD = {"mean": "mean", "std": "deviation", "p10": "10 % quantile", "p90": "90 % quantile"}  # over clients


class Metric(NamedTuple):
    """One number that a task measures, as the mean of a sum over a count."""

    name: str  # the second half of a column: acc in test/acc
    label: str  # on an axis
    better: Literal["higher", "lower"] = "lower"
    scale: float = 1.0  # shown is scale * value
    unit: str = ""  # behind a shown value

    def show(self, value: float | None, digits: int = 4) -> str:
        """For people: ``60.12 %``, ``2.3026``; a share in percent needs two digits less."""
        if value is None:
            return "-"
        text = f"{self.scale * value:.{digits - 2 if self.scale == 100 else digits}f}"
        return f"{text} {self.unit}" if self.unit else text

    @property
    def axis(self) -> str:
        """What stands beside an axis."""
        return f"{self.label}, {self.unit}" if self.unit else self.label

    @property
    def difference(self) -> str:
        """The unit of a difference: points, where the metric is shown in percent."""
        return "points" if self.unit == "%" else self.unit

    def column(self, split: str) -> str:
        """Its column of a split, as rows have it."""
        return f"{split}/{self.name}"

    def words(self, split: str) -> str:
        """For people: training or test, and the label."""
        return f"{WORDS.get(split, split)} {self.label}"


LOSS = Metric("loss", "loss")
ACCURACY = Metric("acc", "accuracy", "higher", 100.0, "%")
STANDARD = {metric.name: metric for metric in (LOSS, ACCURACY)}  # described without a run


def has_chance_level(name: str) -> bool:
    """Whether a model that guesses reaches 1 / classes in it, so that no more than this means divergence."""
    return name == ACCURACY.name


class Column(NamedTuple):
    """A column as pictures show it: its name in rows, and the metric as its task describes it."""

    name: str
    metric: Metric

    @property
    def scale(self) -> float:
        """What a value is multiplied by where it is shown."""
        return self.metric.scale

    @property
    def words(self) -> str:
        """What it is, without its unit: test accuracy."""
        split, _, name = self.name.partition("/")
        plain = self.metric.label == name and name not in STANDARD  # no task has described it
        return self.name if plain or split not in SPLITS else self.metric.words(split)

    @property
    def axis(self) -> str:
        """What stands beside an axis: test accuracy, %."""
        return f"{self.words}, {self.metric.unit}" if self.metric.unit else self.words

    @property
    def unit(self) -> str:
        """What follows a value in a sentence; the space does not break."""
        return f"\u00a0{self.metric.unit}" if self.metric.unit else ""

    def number(self, value: float) -> str:
        """A value as it is printed: percent with one decimal, or three digits."""
        shown = self.scale * value
        return f"{shown:.1f}" if self.metric.unit == "%" else f"{shown:#.3g}".rstrip(".")


class Scoreboard(NamedTuple):
    """A run's metrics and the column that judges it: all that rows, tables and pictures know of a task."""

    metrics: tuple[Metric, ...]
    headline: str

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of the global model's evaluations: train/loss, train/acc, test/loss, test/acc."""
        return tuple(f"{split}/{metric.name}" for split in SPLITS for metric in self.metrics)

    @property
    def judge(self) -> Metric:
        """The metric of the headline."""
        return self.metric(self.headline)

    def metric(self, column: str) -> Metric:
        """The metric that a column holds; one that no task has described is shown under its name."""
        return described(column.rpartition("/")[2], [self])

    def show(self, column: str, values: Mapping[str, Any], digits: int = 4) -> str:
        """A column's value for people."""
        return self.metric(column).show(values.get(column), digits)

    def describe(self) -> dict[str, Any]:
        """For summary.json, so that a stored run can be drawn and compared without its task."""
        return {"metric": self.headline, "metrics": [metric._asdict() for metric in self.metrics]}


def scoreboard(summary: Mapping[str, Any]) -> Scoreboard:
    """The scoreboard of a stored run; summaries of version 0.1 have none and are classification."""
    if "metrics" not in summary:
        return Scoreboard((LOSS, ACCURACY), f"test/{ACCURACY.name}")
    return Scoreboard(tuple(Metric(**entry) for entry in summary["metrics"]), summary["metric"])


def column(name: str, boards: Iterable[Scoreboard] = ()) -> Column:
    """A column with its metric as the first run that has it describes it."""
    return Column(name, described(name.rpartition("/")[2], boards))


def described(name: str, boards: Iterable[Scoreboard]) -> Metric:
    """A metric as the first run that has it describes it; without such a run a standard one, or the name."""
    known = tuple(boards)
    for metric in (metric for board in known for metric in board.metrics):
        if metric.name == name:
            return metric
    if name in STANDARD:
        return STANDARD[name]
    base, _, end = name.rpartition("_")
    if end not in SPREAD:
        return Metric(name, name)
    whole = described(base, known)
    return whole._replace(name=name, label=f"{whole.label}, {SPREAD[end]} over clients")
