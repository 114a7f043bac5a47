"""What one curve says: which way is better, its end, its area, its speed, its fluctuation."""

import math
from collections import deque
from collections.abc import Mapping, Sequence
from itertools import pairwise

from fedgm.errors import require

LAST = 10  # evaluations behind the mean that judges a run
SCORE = "last10/"  # before a column, in loggers and sweep files: the number that judges a run
GOALS = {"maximize": 1.0, "maximise": 1.0, "minimize": -1.0, "minimise": -1.0}


def sign(goal: str) -> float:
    """+1 where more is better, -1 where less is."""
    require(goal in GOALS, "metric.goal", goal, "maximize or minimize", "metric.goal=maximize")
    return GOALS[goal]


def last10(values: Sequence[float | None]) -> float | None:
    """Mean of the last 10 evaluations, or of all where there are fewer; None if one of them is not finite."""
    last = values[-LAST:]
    finite = [value for value in last if value is not None and math.isfinite(value)]
    return math.fsum(finite) / len(finite) if finite and len(finite) == len(last) else None


class Score:
    """last10 of every measured column after each evaluation, under the name that sweep files rank by.

    >>> score = Score()
    >>> [score.after({"round": t, "test/acc": v}) for t, v in ((0, 0.1), (1, 0.2), (2, None), (3, 0.4))]
    [{}, {'last10/test/acc': 0.2}, {}, {'last10/test/acc': 0.30000000000000004}]
    """

    def __init__(self) -> None:
        self._last: dict[str, deque[float | None]] = {}

    def after(self, row: Mapping[str, float | None]) -> dict[str, float | None]:
        """The means with this row; none for a round without an evaluation, or before the first round."""
        measured = {k: v for k, v in row.items() if k.startswith(("test/", "train/")) and v is not None}
        if not row.get("round"):
            return {}
        for column, value in measured.items():
            self._last.setdefault(column, deque(maxlen=LAST)).append(value)
        return {f"{SCORE}{column}": last10(list(self._last[column])) for column in measured}


def area(rounds: Sequence[int], values: Sequence[float]) -> float:
    """Area under the curve over its length, by trapezoids: the mean height, in the unit of the metric."""
    _check(rounds, values, least=1)
    if len(values) == 1:
        return values[0]
    pieces = zip(pairwise(rounds), pairwise(values), strict=True)
    whole = math.fsum((t2 - t1) * (v1 + v2) / 2 for (t1, t2), (v1, v2) in pieces)
    return whole / (rounds[-1] - rounds[0])


def rounds_to(
    rounds: Sequence[int], values: Sequence[float | None], target: float, goal: str = "maximize"
) -> int | None:
    """The round of the first evaluation that reaches ``target``; None if none does."""
    way = sign(goal)
    pairs = zip(rounds, values, strict=True)
    return next((t for t, value in pairs if value is not None and way * value >= way * target), None)


def fluctuation(rounds: Sequence[int], values: Sequence[float]) -> float:
    """Standard deviation of the curve around its least-squares line, with n - 2 degrees of freedom.

    It is taken within one stage, in which eta is constant. The curvature of a curve counts as fluctuation.
    """
    _check(rounds, values, least=3)
    n = len(values)
    t_mean, v_mean = math.fsum(rounds) / n, math.fsum(values) / n
    t_square = math.fsum((t - t_mean) ** 2 for t in rounds)
    slope = math.fsum((t - t_mean) * (v - v_mean) for t, v in zip(rounds, values, strict=True)) / t_square
    rest = (v - v_mean - slope * (t - t_mean) for t, v in zip(rounds, values, strict=True))
    return math.sqrt(math.fsum(r * r for r in rest) / (n - 2))


def _check(rounds: Sequence[int], values: Sequence[float], least: int) -> None:
    """A curve has enough points, in order, all of them finite."""
    require(len(values) >= least, "evaluations", len(values), f"at least {least}", "a smaller eval.every")
    require(
        all(a < b for a, b in pairwise(rounds)), "rounds", list(rounds), "increasing numbers", "sorted rows"
    )
    bad = [value for value in values if not math.isfinite(value)]
    require(not bad, "values", bad, "finite numbers", "the rows before the run diverged")
