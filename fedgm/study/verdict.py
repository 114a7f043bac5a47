"""What is said of a part and of a claim."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from fedgm.results.interval import Interval
from fedgm.results.judged_run import JudgedRun, Measure

Verdict = Literal["holds", "does not hold", "undecided"]


@dataclass(frozen=True)
class Evidence:
    """What is measured, runs of each line by seed, and the seeds that the figure's plan names."""

    measure: Measure
    seeds: tuple[int, ...]
    runs: Mapping[str, Mapping[int, JudgedRun]]
    names: Mapping[str, str] = field(default_factory=dict[str, str])

    def of(self, line: str) -> list[JudgedRun]:
        """A run for every planned seed; `missing` where there is none."""
        known = self.runs.get(line, {})
        return [known.get(seed) or JudgedRun(seed, "missing") for seed in self.seeds]

    def name(self, line: str) -> str:
        """A line as people read it."""
        return self.names.get(line, line)

    def absent(self, *lines: str) -> list[str]:
        """Which planned runs cannot be judged, and why."""
        return [
            f"{self.name(line)}, seed {run.seed}: {run.status}"
            for line in dict.fromkeys(lines)
            for run in self.of(line)
            if not run.is_judged
        ]


@dataclass(frozen=True)
class PartResult:
    """One part of a claim: what was compared, the interval, the verdict and what must be said beside it."""

    text: str
    kind: str
    verdict: Verdict
    unit: str  # points | ratio | seeds
    interval: Interval | None = None  # of the difference in points, or of the logarithm of the ratio
    values: Mapping[str, Mapping[int, float]] = field(default_factory=dict[str, Mapping[int, float]])
    notes: tuple[str, ...] = ()

    @property
    def shown(self) -> tuple[float, float, float] | None:
        """Mean and ends as people read them: points, or a ratio."""
        if self.interval is None:
            return None
        three = self.interval.mean, self.interval.low, self.interval.high
        return three if self.unit == "points" else (_exp(three[0]), _exp(three[1]), _exp(three[2]))

    def as_dict(self) -> dict[str, Any]:
        """For verdict.json."""
        shown = dict(zip(("mean", "low", "high"), self.shown or (None,) * 3, strict=True))
        return {
            "part": self.text,
            "kind": self.kind,
            "verdict": self.verdict,
            "unit": self.unit,
            **shown,
            "effect": self.interval.effect if self.interval else None,
            "seeds": self.interval.n if self.interval else None,
            "values": {
                name: {str(k): v for k, v in by_seed.items()} for name, by_seed in self.values.items()
            },
            "notes": list(self.notes),
        }


def together(parts: Sequence[PartResult]) -> Verdict:
    """`holds` if all parts hold, `does not hold` if any does not, else `undecided`."""
    verdicts = [part.verdict for part in parts]
    if "does not hold" in verdicts:
        return "does not hold"
    return "holds" if verdicts and all(verdict == "holds" for verdict in verdicts) else "undecided"


def _exp(value: float) -> float:
    """exp() that knows the ends of an endless interval, and of a very wide one."""
    return math.inf if value > 700 else math.exp(value)
