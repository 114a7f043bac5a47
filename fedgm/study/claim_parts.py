"""The four kinds of parts (docs/claims.md, "Verdicts"): better, small gap, more stable, event."""

import math
from dataclasses import dataclass
from typing import Protocol

from fedgm.results import curve
from fedgm.results.interval import LEVEL, Interval, log_ratio, paired
from fedgm.results.run import Run, Window, whole
from fedgm.study.verdict import Comparison, Evidence, PartResult, Verdict
from fedgm.tasks.metric import TEST

GAP = 3.0  # points within which a gap is small


class Part(Protocol):
    """Whatever can be judged on runs of several seeds."""

    def judge(self, evidence: Evidence) -> PartResult:
        """The verdict with its numbers."""
        ...


@dataclass(frozen=True)
class Better:
    """A over B, in last10 of the figure's metric, or in its area where a window is given."""

    a: str
    b: str
    split: str = TEST
    over: Window | None = None
    period: str = ""  # the window in words

    def judge(self, evidence: Evidence) -> PartResult:
        """`holds` if the interval of A - B is above 0, `does not hold` if it is below."""
        words = evidence.metric.words(self.split)
        what = f"area under {words}" if self.over else f"{words}, mean of last 10"
        period = f" {self.period}" if self.period else ""
        text = f"{evidence.name(self.a)} over {evidence.name(self.b)}: {what}{period}"
        return self._compared(evidence, text, "better")

    def decide(self, interval: Interval) -> Verdict:
        """An end that is exactly 0 decides nothing."""
        return "holds" if interval.low > 0 else "does not hold" if interval.high < 0 else "undecided"

    def value(self, run: Run, evidence: Evidence) -> float | None:
        """The statistic of one run, in points."""
        column = evidence.metric.column(self.split)
        if self.over is None:
            return _scaled(evidence, run.score(column))
        rounds, values = run.within(column, self.over)
        return _scaled(evidence, curve.area(rounds, values)) if values else None

    def _compared(self, evidence: Evidence, text: str, kind: str) -> PartResult:
        """The interval over the seeds that both sides have; which runs are missing stands beside it."""
        column, notes = evidence.metric.column(self.split), list[str]()
        missing = evidence.absent(self.a, self.b)
        values: tuple[dict[int, float], dict[int, float]] = ({}, {})
        ends: tuple[dict[int, float], dict[int, float]] = ({}, {})
        for line, of_seed, end_of_seed in zip((self.a, self.b), values, ends, strict=True):
            for run in (run for run in evidence.of(line) if run.is_done):
                value, end = self.value(run, evidence), _scaled(evidence, run.final(column))
                if value is None:
                    notes.append(f"{evidence.name(line)}, seed {run.seed}: no {column} to judge")
                    continue
                of_seed[run.seed] = value
                end_of_seed |= {} if end is None else {run.seed: end}
        interval = _paired(*values)
        verdict = self.decide(interval) if interval and not (missing or notes) else "undecided"
        return PartResult(
            text, kind, verdict, "points", interval,
            {evidence.name(self.a): values[0], evidence.name(self.b): values[1]}, missing, tuple(notes),
            _paired(*ends) if self.over is None else None,
            self._comparison(evidence, *values) if self.over is None else None,
        )  # fmt: skip

    def _comparison(self, evidence: Evidence, a: dict[int, float], b: dict[int, float]) -> Comparison:
        """What a pooled variance needs."""
        both = [seed for seed in a if seed in b]
        runs = [run.key for line in (self.a, self.b) for run in evidence.of(line) if run.seed in both]
        return Comparison(self.split, tuple(a[seed] - b[seed] for seed in both), frozenset(runs))


@dataclass(frozen=True)
class SmallGap(Better):
    """A and B differ by at most 3 points in last10; with ``not_worse``, A must not lie below B either."""

    not_worse: bool = False

    def judge(self, evidence: Evidence) -> PartResult:
        """`holds` if the interval of A - B lies within the gap, `does not hold` if wholly outside."""
        words = evidence.metric.words(self.split)
        text = f"{evidence.name(self.a)} and {evidence.name(self.b)}: {words} within {GAP:g} points"
        return self._compared(evidence, text, "small gap")

    def decide(self, interval: Interval) -> Verdict:
        """Within [-3, +3] or wholly outside; ``not_worse`` also refuses an interval below 0."""
        if interval.high < -GAP or interval.low > GAP or (self.not_worse and interval.high < 0):
            return "does not hold"
        return "holds" if interval.low >= -GAP and interval.high <= GAP else "undecided"


@dataclass(frozen=True)
class Lost:
    """A line ends near chance or as diverged, or does neither, in every seed."""

    line: str
    expected: bool

    def judge(self, evidence: Evidence) -> PartResult:
        """`holds` if it happens in every seed, `does not hold` if in none; one seed decides nothing."""
        how = (
            "ends near chance or as diverged" if self.expected else "ends neither near chance nor as diverged"
        )
        missing = evidence.absent(self.line)
        runs = [run for run in evidence.of(self.line) if run.is_done]
        hits = sum(is_lost(run) == self.expected for run in runs)
        notes = [f"in {hits} of {len(runs)} seeds"]
        verdict: Verdict = "undecided"
        if not missing and len(runs) > 1 and hits in (0, len(runs)):
            verdict = "holds" if hits else "does not hold"
            bound = (LEVEL / 2) ** (1 / len(runs))
            left = f"above {bound:.2f}" if hits else f"below {1 - bound:.2f}"
            notes.append(f"any probability {left} stays possible (exact binomial, 5 %)")
        if len(runs) == 1:
            notes.append("one seed decides nothing")
        values = {evidence.name(self.line): {run.seed: float(is_lost(run)) for run in runs}}
        text = f"{evidence.name(self.line)} {how}"
        return PartResult(text, "event", verdict, "seeds", None, values, missing, tuple(notes))


def is_lost(run: Run) -> bool:
    """What C4 is about."""
    return run.is_divergent or run.near_chance


@dataclass(frozen=True)
class Stretch:
    """A line within a window: what a fluctuation is taken of."""

    line: str
    window: Window = whole
    name: str = ""  # the window in words


@dataclass(frozen=True)
class MoreStable:
    """A fluctuates less than B."""

    a: Stretch
    b: Stretch
    split: str = TEST
    least: int = 3  # evaluations that a stretch must have
    b_lost_holds: bool = False  # C4: B near chance or diverged in every seed is enough, whatever A does
    beside: tuple[tuple[str, "MoreStable"], ...] = ()  # in words; not judged

    def judge(self, evidence: Evidence) -> PartResult:
        """The rule for runs that ended as diverged first, then the interval of ln(A / B)."""
        a, b = (f"{evidence.name(s.line)}{', ' if s.name else ''}{s.name}" for s in (self.a, self.b))
        interval, values, notes, short = self._ratio(evidence)
        missing = evidence.absent(self.a.line, self.b.line)
        decided = None if missing else self._by_divergence(evidence)
        if decided:
            verdict, why = decided
            notes = [*notes, why]
        elif missing or short or interval is None or interval.n < 2:
            verdict = "undecided"
        else:
            verdict = "holds" if interval.high < 0 else "does not hold" if interval.low > 0 else "undecided"
        notes += [f"{words}: {_words(other._ratio(evidence)[0])}" for words, other in self.beside]
        text = f"{a} more stable than {b}: fluctuation of {evidence.metric.words(self.split)}"
        shown = {a: values[0], b: values[1]}
        return PartResult(text, "more stable", verdict, "ratio", interval, shown, missing, tuple(notes))

    def _by_divergence(self, evidence: Evidence) -> tuple[Verdict, str] | None:
        """What runs that ended as diverged decide, at two seeds or more."""
        runs_a, runs_b = evidence.of(self.a.line), evidence.of(self.b.line)
        if len(runs_a) < 2:
            return None
        name_a, name_b = evidence.name(self.a.line), evidence.name(self.b.line)
        if self.b_lost_holds and all(map(is_lost, runs_b)):
            return "holds", f"{name_b} ends near chance or as diverged in every seed"
        a, b = ([run.is_divergent for run in runs] for runs in (runs_a, runs_b))
        if all(b) and not any(a):
            return "holds", f"{name_b} ends as diverged in every seed"
        if any(one and not other for one, other in zip(a, b, strict=True)):
            return "does not hold", f"{name_a} ends as diverged in a seed in which {name_b} does not"
        return None

    def _ratio(
        self, evidence: Evidence
    ) -> tuple[Interval | None, tuple[dict[int, float], dict[int, float]], list[str], bool]:
        """The interval of ln(A / B), fluctuations in points, notes, and whether a stretch was unusable."""
        values: tuple[dict[int, float], dict[int, float]] = ({}, {})
        notes, short = list[str](), False
        for one, other in zip(evidence.of(self.a.line), evidence.of(self.b.line), strict=True):
            if not (one.is_done and other.is_done):
                continue
            if one.is_divergent or other.is_divergent:
                notes.append(f"seed {one.seed} left out: diverged")
                continue
            column = evidence.metric.column(self.split)
            pair = [self._fluctuation(one, self.a, column), self._fluctuation(other, self.b, column)]
            if None in pair or 0.0 in pair:
                short = True
                reason = "a fluctuation of 0" if 0.0 in pair else f"fewer than {self.least} evaluations"
                notes.append(f"seed {one.seed}: {reason}")
                continue
            for of_seed, value in zip(values, pair, strict=True):
                of_seed[one.seed] = evidence.metric.scale * (value or math.nan)
        both = list(values[0].values()), list(values[1].values())
        return (log_ratio(*both) if both[0] else None), values, notes, short

    def _fluctuation(self, run: Run, stretch: Stretch, column: str) -> float | None:
        """Around the line through the stretch's evaluations; None where there are too few."""
        rounds, values = run.within(column, stretch.window)
        return curve.fluctuation(rounds, values) if len(values) >= max(self.least, 3) else None


def _paired(a: dict[int, float], b: dict[int, float]) -> Interval | None:
    """Over the seeds that both have."""
    both = [seed for seed in a if seed in b]
    return paired([a[seed] for seed in both], [b[seed] for seed in both]) if both else None


def _scaled(evidence: Evidence, value: float | None) -> float | None:
    """In the unit that people read."""
    return None if value is None else evidence.metric.scale * value


def _words(interval: Interval | None) -> str:
    """A ratio with its interval."""
    if interval is None:
        return "no seed to compare"
    if interval.n < 2:
        return f"ratio {math.exp(interval.mean):.2f} (one seed)"
    ends = [math.exp(min(end, 700.0)) for end in (interval.low, interval.high)]
    return f"ratio {math.exp(interval.mean):.2f} [{ends[0]:.2f}, {ends[1]:.2f}]"
