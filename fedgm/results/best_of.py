"""The best of k points drawn from n: what a search with a smaller budget would have found."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import comb

import numpy as np

from fedgm.draws import generator
from fedgm.errors import require
from fedgm.results.goal import sign

DRAWS = 10_000


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
    order = np.argsort(draw.random((DRAWS, len(turned))), axis=1)[:, :k]  # k places without repetition
    found = way * turned[order].max(axis=1)
    low, high = np.quantile(found, [(1 - coverage) / 2, (1 + coverage) / 2], method="inverted_cdf")
    return BestOf(k, len(scores), mean, float(low), float(high), float(way * turned.max()))
