"""The four kinds of parts (docs/claims.md, "Verdicts"): better, small gap, more stable, event."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from fedgm.results import curve
from fedgm.results.interval import LEVEL, Interval, log_ratio, paired
from fedgm.results.judged_run import TEST, JudgedRun, Measure, Window, whole
from fedgm.study.verdict import Evidence, PartResult, Verdict

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
        words = evidence.measure.words(self.split)
        what = f"area under {words}" if self.over else f"{words}, mean of last 10"
        period = f" {self.period}" if self.period else ""
        text = f"{evidence.name(self.a)} over {evidence.name(self.b)}: {what}{period}"
        interval, values, notes = _difference(evidence, self)
        verdict = _sided(interval) if interval and not notes else "undecided"
        return PartResult(text, "better", verdict, "points", interval, values, tuple(notes))

    def value(self, run: JudgedRun, measure: Measure) -> float | None:
        """The statistic of one run, in points."""
        column = measure.column(self.split)
        if self.over is None:
            last = run.last10(column)
            return None if last is None else measure.scale * last
        rounds, values = run.within(column, self.over)
        return measure.scale * curve.area(rounds, values) if values else None


@dataclass(frozen=True)
class SmallGap:
    """A and B differ by at most 3 points in last10; with ``not_worse``, A must not lie below B either."""

    a: str
    b: str
    not_worse: bool = False

    def judge(self, evidence: Evidence) -> PartResult:
        """`holds` if the interval of A - B lies within the gap, `does not hold` if wholly outside."""
        words = evidence.measure.words(TEST)
        text = f"{evidence.name(self.a)} and {evidence.name(self.b)}: {words} within {GAP:g} points"
        interval, values, notes = _difference(evidence, Better(self.a, self.b))
        verdict: Verdict = "undecided"
        if interval and not notes:
            if interval.high < -GAP or interval.low > GAP or (self.not_worse and interval.high < 0):
                verdict = "does not hold"
            elif interval.low >= -GAP and interval.high <= GAP:
                verdict = "holds"
        return PartResult(text, "small gap", verdict, "points", interval, values, tuple(notes))


@dataclass(frozen=True)
class Divergence:
    """A line is divergent, or is not, in every seed."""

    line: str
    divergent: bool

    def judge(self, evidence: Evidence) -> PartResult:
        """`holds` if it happens in every seed, `does not hold` if in none; one seed decides nothing."""
        text = f"{evidence.name(self.line)} {'is' if self.divergent else 'is not'} divergent"
        missing = evidence.absent(self.line)
        runs = [run for run in evidence.of(self.line) if run.is_judged]
        hits = sum(run.is_divergent == self.divergent for run in runs)
        notes = [*missing, f"in {hits} of {len(runs)} seeds"]
        verdict: Verdict = "undecided"
        if not missing and len(runs) > 1 and hits in (0, len(runs)):
            verdict = "holds" if hits else "does not hold"
            bound = (LEVEL / 2) ** (1 / len(runs))
            left = f"above {bound:.2f}" if hits else f"below {1 - bound:.2f}"
            notes.append(f"any probability {left} stays possible (exact binomial, 5 %)")
        if len(runs) == 1:
            notes.append("one seed decides nothing")
        values = {evidence.name(self.line): {run.seed: float(run.is_divergent) for run in runs}}
        return PartResult(text, "event", verdict, "seeds", None, values, tuple(notes))


def _difference(
    evidence: Evidence, part: Better
) -> tuple[Interval | None, dict[str, dict[int, float]], list[str]]:
    """The paired interval over the seeds that both sides have; the notes say which runs are missing."""
    notes, values = evidence.absent(part.a, part.b), dict[str, dict[int, float]]()
    for line in (part.a, part.b):
        own = values[evidence.name(line)] = {}
        for run in evidence.of(line):
            value = part.value(run, evidence.measure) if run.is_judged else None
            if value is not None:
                own[run.seed] = value
            elif run.is_judged:
                column = evidence.measure.column(part.split)
                notes.append(f"{evidence.name(line)}, seed {run.seed}: no {column} to judge")
    a, b = values[evidence.name(part.a)], values[evidence.name(part.b)]
    both = [seed for seed in evidence.seeds if seed in a and seed in b]
    interval = paired([a[seed] for seed in both], [b[seed] for seed in both]) if both else None
    return interval, values, notes


def _sided(interval: Interval) -> Verdict:
    """An end that is exactly 0 decides nothing."""
    return "holds" if interval.low > 0 else "does not hold" if interval.high < 0 else "undecided"


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
    b_divergent_holds: bool = False  # C4: B divergent in every seed is enough, whatever A does
    beside: tuple[tuple[str, "MoreStable"], ...] = ()  # in words, or its metric; not judged

    def judge(self, evidence: Evidence) -> PartResult:
        """The rule for divergent runs first, then the interval of ln(A / B)."""
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
        for words, other in self.beside:
            said = words or evidence.measure.words(other.split)
            notes.append(f"{said}: {_words(other._ratio(evidence)[0])}")
        text = f"{a} more stable than {b}: fluctuation of {evidence.measure.words(self.split)}"
        shown = {a: values[0], b: values[1]}
        return PartResult(text, "more stable", verdict, "ratio", interval, shown, (*missing, *notes))

    def _by_divergence(self, evidence: Evidence) -> tuple[Verdict, str] | None:
        """What divergent runs decide, at two seeds or more."""
        a = [run.is_divergent for run in evidence.of(self.a.line)]
        b = [run.is_divergent for run in evidence.of(self.b.line)]
        if len(a) < 2:
            return None
        name_a, name_b = evidence.name(self.a.line), evidence.name(self.b.line)
        if all(b) and (self.b_divergent_holds or not any(a)):
            return "holds", f"{name_b} is divergent in every seed"
        if any(one and not other for one, other in zip(a, b, strict=True)):
            return "does not hold", f"{name_a} is divergent in a seed in which {name_b} is not"
        return None

    def _ratio(
        self, evidence: Evidence
    ) -> tuple[Interval | None, tuple[dict[int, float], dict[int, float]], list[str], bool]:
        """The interval of ln(A / B), fluctuations in points, notes, and whether a stretch was unusable."""
        found: tuple[dict[int, float], dict[int, float]] = ({}, {})
        notes, short = list[str](), False
        for one, other in zip(evidence.of(self.a.line), evidence.of(self.b.line), strict=True):
            if not (one.is_judged and other.is_judged):
                continue
            if one.is_divergent or other.is_divergent:
                notes.append(f"seed {one.seed} left out: divergent")
                continue
            column = evidence.measure.column(self.split)
            pair = [self._fluctuation(one, self.a, column), self._fluctuation(other, self.b, column)]
            if None in pair or 0.0 in pair:
                short = True
                reason = "a fluctuation of 0" if 0.0 in pair else f"fewer than {self.least} evaluations"
                notes.append(f"seed {one.seed}: {reason}")
                continue
            for own, value in zip(found, pair, strict=True):
                own[one.seed] = evidence.measure.scale * (value or math.nan)
        both = list(found[0].values()), list(found[1].values())
        return (log_ratio(*both) if both[0] else None), found, notes, short

    def _fluctuation(self, run: JudgedRun, stretch: Stretch, column: str) -> float | None:
        """Around the line through the stretch's evaluations; None where there are too few."""
        rounds, values = run.within(column, stretch.window)
        return curve.fluctuation(rounds, values) if len(values) >= max(self.least, 3) else None


def _words(interval: Interval | None) -> str:
    """A ratio with its interval."""
    if interval is None:
        return "not known"
    if interval.n < 2:
        return f"ratio {math.exp(interval.mean):.2f} (one seed)"
    ends = [math.exp(min(end, 700.0)) for end in (interval.low, interval.high)]
    return f"ratio {math.exp(interval.mean):.2f} [{ends[0]:.2f}, {ends[1]:.2f}]"


def judge_all(parts: Sequence[Part], evidence: Evidence) -> list[PartResult]:
    """Every part, whatever the others say."""
    return [part.judge(evidence) for part in parts]
