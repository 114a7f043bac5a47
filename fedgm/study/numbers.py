"""What a line of a figure reached, over its seeds: how it ended, and how fast it got there."""

import math
from collections.abc import Sequence
from statistics import mean, stdev
from typing import Any

from fedgm.results.curve import rounds_to
from fedgm.results.judged_run import TEST, JudgedRun, Measure


def last10(runs: Sequence[JudgedRun], measure: Measure) -> dict[str, Any]:
    """Mean and deviation over seeds of the mean of the last ten evaluations, by metric."""
    judged = [run for run in runs if run.is_judged]
    table: dict[str, Any] = {}
    for metric in sorted({metric for run in judged for metric in run.values}):
        counts_lost = metric.endswith(f"/{measure.name}")  # a loss that ran away has no mean worth showing
        known = [run.last10(metric) for run in judged if counts_lost or not run.is_divergent]
        if entry := _over_seeds(known):
            table[metric] = entry
    return table


def final(runs: Sequence[JudgedRun], measure: Measure) -> dict[str, Any] | None:
    """The last evaluation on the test set; a divergent run counts with chance."""
    column = measure.column(TEST)
    judged = [run for run in runs if run.is_judged]
    return _over_seeds(
        [run.chance if run.is_divergent else (run.values.get(column) or (None,))[-1] for run in judged]
    )


def common_target(lines: Sequence[Sequence[JudgedRun]], measure: Measure) -> float | None:
    """A test score that lines reach: the lowest of their last10, down to a whole number of percent.

    Lines with a divergent run are left out: chance is no target.
    """
    column = measure.column(TEST)
    means: list[float] = []
    for runs in lines:
        judged = [run for run in runs if run.is_judged]
        scores = [run.last10(column) for run in judged if not any(other.is_divergent for other in judged)]
        known = [score for score in scores if score is not None]
        means += [mean(known)] if known else []
    return math.floor(round(100 * min(means), 9)) / 100 if means and min(means) >= 0.01 else None


def rounds_until(runs: Sequence[JudgedRun], measure: Measure, target: float) -> dict[str, Any]:
    """Mean round of the first evaluation at the target, over the seeds that got there and were not lost."""
    column = measure.column(TEST)
    judged = [run for run in runs if run.is_judged and column in run.values]
    found = [
        None if run.is_divergent else rounds_to(run.measured, run.values[column], target) for run in judged
    ]
    reached = [t for t in found if t is not None]
    return {"mean": mean(reached) if reached else None, "reached": len(reached), "seeds": len(judged)}


def _over_seeds(values: Sequence[float | None]) -> dict[str, Any] | None:
    known = [value for value in values if value is not None]
    if not known:
        return None
    return {
        "mean": mean(known),
        "deviation": stdev(known) if len(known) > 1 else None,
        "seeds": len(known),
    }
