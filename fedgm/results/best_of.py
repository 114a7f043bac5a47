"""Budgets (docs/claims.md): the best of the winner's grid at as many runs as FedAvg's grid has."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import comb

import numpy as np
from numpy.typing import NDArray

from fedgm.draws import generator
from fedgm.errors import require
from fedgm.results.curve import sign
from fedgm.results.run import Run, Status
from fedgm.tasks.metric import Column

DRAWS, AT_ONCE = 10_000, 500  # 10,000 draws from 2,000 points are 160 MB
PIECES = range(DRAWS // AT_ONCE)
UNEQUAL = "not ahead at equal budget"


@dataclass(frozen=True)
class BestOf:
    """The best score of ``k`` points drawn from ``n`` without replacement."""

    k: int
    n: int
    mean: float  # exact
    low: float  # quantiles over draws
    high: float
    whole: float  # the best of all n


def expected_best(scores: Sequence[float], k: int, goal: str = "maximize") -> float:
    """E[max of k of n] = sum over i of x_(i) C(i-1, k-1) / C(n, k), x_(1) <= ... <= x_(n): no simulation."""
    n, way = len(scores), sign(goal)
    require(1 <= k <= n, "k", k, f"1 to {n}", "k=10")
    ranked = sorted(way * score for score in scores)
    whole = comb(n, k)
    return way * float(sum(float(Fraction(comb(i, k - 1), whole)) * ranked[i] for i in range(k - 1, n)))


def best_of(
    scores: Sequence[float], k: int, goal: str = "maximize", seed: int = 0, coverage: float = 0.9
) -> BestOf:
    """Exact mean, and the band that holds ``coverage`` of the draws; it depends on ``seed`` alone."""
    mean, way = expected_best(scores, k, goal), sign(goal)
    draw = generator(seed, "best-of")
    turned = way * np.asarray(scores, dtype=np.float64)
    bests = way * np.concatenate([_bests(turned, k, draw.random((AT_ONCE, len(turned)))) for _ in PIECES])
    low, high = np.quantile(bests, [(1 - coverage) / 2, (1 + coverage) / 2], method="inverted_cdf")
    return BestOf(k, len(scores), mean, float(low), float(high), float(way * turned.max()))


def _bests(turned: NDArray[np.float64], k: int, draws: NDArray[np.float64]) -> NDArray[np.float64]:
    """The best of k places without repetition, for each row of draws: those of its k smallest numbers."""
    return turned[np.argpartition(draws, k - 1, axis=1)[:, :k]].max(axis=1)


def budget_notes(
    name: str, grid: Sequence[Run | None], baseline_name: str, baseline: Sequence[Run | None], column: Column
) -> list[str]:
    """The best of a smaller draw from ``grid`` beside the best of ``baseline``, all of seed 0.

    Points that have not been run make the comparison impossible, and the note says how many there are.
    """
    scored = {
        who: [
            (run, score) for run in runs if run is not None and (score := run.score(column.name)) is not None
        ]
        for who, runs in ((name, grid), (baseline_name, baseline))
    }
    for who, runs in ((name, grid), (baseline_name, baseline)):
        if not runs or len(scored[who]) < len(runs):
            there = f"{len(scored[who])} of {len(runs)} points of {who}'s grid have results"
            return [f"no comparison at equal budget: {there}"]

    def shown(value: float) -> str:
        return f"{column.number(value)}{column.unit.replace(chr(0xA0), ' ')}"

    best, k = max(score for _, score in scored[baseline_name]), len(baseline)
    drawn = best_of([score for _, score in scored[name]], min(k, len(grid)))
    notes = [
        f"seed 0: best of {drawn.n}: {shown(drawn.whole)}, expected best of {k} of them: {shown(drawn.mean)} "
        f"(90 % of draws: {column.number(drawn.low)} to {column.number(drawn.high)}), "
        f"{baseline_name}'s best of {k}: {shown(best)}"
    ]
    if len(grid) <= k:
        notes = [f"equal budgets: best of {drawn.n}: {shown(drawn.whole)}, {baseline_name}'s {shown(best)}"]
    paused = sum(run.status == Status.PAUSED for run, _ in scored[name])
    if paused:
        notes.append(
            f"{paused} of {drawn.n} points were paused and count with their score so far, which is too low"
        )
    return notes + ([f"{name}: {UNEQUAL}"] if drawn.mean <= best else [])
