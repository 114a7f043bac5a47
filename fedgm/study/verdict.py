"""What is said of a part and of a claim, and the runs that it rests on."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from fedgm.results.interval import Interval
from fedgm.results.run import Key, Run, Status
from fedgm.tasks.metric import Metric

Verdict = Literal["holds", "does not hold", "undecided"]


@dataclass(frozen=True)
class Evidence:
    """What is measured, runs of each line by seed, and the seeds that the figure's plan names."""

    metric: Metric
    seeds: tuple[int, ...]
    runs: Mapping[str, Mapping[int, Run]]
    names: Mapping[str, str] = field(default_factory=dict[str, str])

    def on(self, seeds: Sequence[int]) -> "Evidence":
        """The same lines on some of the seeds."""
        return replace(self, seeds=tuple(seeds))

    def of(self, line: str) -> list[Run]:
        """A run for every planned seed; `missing` where there is none."""
        runs = self.runs.get(line, {})
        return [runs.get(seed) or Run.missing(seed) for seed in self.seeds]

    def name(self, line: str) -> str:
        """A line as people read it."""
        return self.names.get(line, line)

    def absent(self, *lines: str) -> tuple[str, ...]:
        """Which planned runs cannot be judged, and why: ``FedGM, seeds 4, 5: missing``."""
        seeds: dict[tuple[str, Status], list[str]] = {}
        for line in dict.fromkeys(lines):
            for run in self.of(line):
                if not run.is_done:
                    seeds.setdefault((line, run.status), []).append(str(run.seed))
        return tuple(
            f"{self.name(line)}, seed{'s' if len(of) > 1 else ''} {', '.join(of)}: {status}"
            for (line, status), of in seeds.items()
        )


@dataclass(frozen=True)
class Comparison:
    """The paired differences behind a part in last10: what the pooled variance is taken of."""

    split: str
    differences: tuple[float, ...]  # of seeds that both lines have
    runs: frozenset[Key]  # that they come from


@dataclass(frozen=True)
class PartResult:
    """One part of a claim: what was compared, the interval, the verdict and what must be said beside it."""

    text: str
    kind: str
    verdict: Verdict
    unit: str  # points | ratio | seeds
    interval: Interval | None = None  # of the difference in points, or of the logarithm of the ratio
    values: Mapping[str, Mapping[int, float]] = field(default_factory=dict[str, Mapping[int, float]])
    missing: tuple[str, ...] = ()  # planned runs that cannot be judged, and why
    notes: tuple[str, ...] = ()
    final: Interval | None = None  # the same of the last evaluation, which is not judged
    comparison: Comparison | None = None

    def as_dict(self) -> dict[str, Any]:
        """For verdict.json."""
        return {
            "part": self.text,
            "kind": self.kind,
            "verdict": self.verdict,
            "unit": self.unit,
            **shown(self.interval, self.unit),
            "effect": self.interval.effect if self.interval else None,
            "seeds": self.interval.n if self.interval else None,
            "last round": shown(self.final, self.unit) if self.final else None,
            "values": {
                name: {str(k): v for k, v in by_seed.items()} for name, by_seed in self.values.items()
            },
            "missing": list(self.missing),
            "notes": list(self.notes),
        }


def shown(interval: Interval | None, unit: str) -> dict[str, float | None]:
    """Mean and ends as people read them: points, or a ratio."""
    if interval is None:
        return {"mean": None, "low": None, "high": None}
    ends = {"mean": interval.mean, "low": interval.low, "high": interval.high}
    return {name: _exp(value) if unit == "ratio" else value for name, value in ends.items()}


def together(verdicts: Sequence[Verdict]) -> Verdict:
    """`holds` if all parts hold, `does not hold` if any does not, else `undecided`."""
    if "does not hold" in verdicts:
        return "does not hold"
    return "holds" if verdicts and all(verdict == "holds" for verdict in verdicts) else "undecided"


def _exp(value: float) -> float:
    """exp() that gives infinity instead of an overflow."""
    return math.inf if value > 700 else math.exp(value)
