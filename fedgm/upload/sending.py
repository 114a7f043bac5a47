"""Sending or not: all of a cohort train, and a rule that sees the norms of their updates chooses who sends.

Optimal client sampling (Chen, Horvath, Richtarik, TMLR 2022) sends with probability p_i and multiplies by
1/p_i, so that the mean over draws is the mean of all; of all such rules its p_i has the smallest variance.
"""

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from fedgm.errors import require

Array = NDArray[np.float64]
FLOAT = 4  # bytes of a norm or a probability


class Senders(NamedTuple):
    """Who sends in a round."""

    factors: list[float]  # 1/p_i of each client that sends, 0 of the others
    up: int  # bytes that all clients together send besides their updates
    down: int  # and receive

    @property
    def number(self) -> int:
        """How many send."""
        return sum(factor > 0 for factor in self.factors)


class SendRule(Protocol):
    """One class and one yaml each."""

    def senders(self, u: Array, uniform: Array) -> Senders:
        """From the weighted norms u_i = |w_i D_i| of a cohort and a uniform draw for each client."""
        ...


@dataclass(frozen=True)
class Everyone:
    """``sending=all``: whoever has trained sends. The loop then does not wait for the norms."""

    def senders(self, u: Array, uniform: Array) -> Senders:
        """All of them, as they are."""
        return Senders([1.0] * len(u), 0, 0)


def exact_chances(u: Array, m: float) -> Array:
    """OCS, Eq. 7: p_i = min(1, c u_i) with the sum m; all p are 1 where m or fewer have a norm.

    With u sorted upwards, l is the largest integer with 0 < m + l - N <= sum_{i<=l} u_(i) / u_(l). Then
    p_(i) = (m + l - N) u_(i) / sum_{j<=l} u_(j) up to l, and 1 beyond it.

    >>> exact_chances(np.array([1.0, 1.0, 2.0, 8.0]), m=2)  # the large one is certain, 1 is left for three
    array([0.25, 0.25, 0.5 , 1.  ])
    """
    N, order = len(u), np.argsort(u, kind="stable")
    ranked = u[order]
    sums = np.cumsum(ranked)
    left = m + np.arange(1, N + 1) - N
    fits = (left > 0) & (ranked > 0) & (left * ranked <= sums * (1 + 1e-12))
    if not fits.any():
        return np.where(u > 0, 1.0, 0.0)
    last = int(np.flatnonzero(fits)[-1])
    p = np.ones(N)
    p[order[: last + 1]] = left[last] * ranked[: last + 1] / sums[last]
    return p


def approximate_chances(u: Array, m: float, repeats: int) -> tuple[Array, int]:
    """AOCS, Algorithm 2, for which only sums leave a client; p, and how often p was corrected.

    p_i = min(1, m u_i / sum u). Then up to ``repeats`` times, with I and P the number and the sum of the
    p_i < 1: c = (m - N + I)/P and p_i = min(1, c p_i); it ends once c <= 1.

    >>> approximate_chances(np.array([1.0, 1.0, 2.0, 8.0]), m=2, repeats=4)[0]
    array([0.25, 0.25, 0.5 , 1.  ])
    """
    if not u.sum() > 0:
        return np.zeros(len(u)), 0
    p = np.minimum(1.0, m * u / u.sum())
    for number in range(repeats):
        below = p < 1
        if p[below].sum() == 0:  # all are certain, or the rest has no norm
            return p, number
        c = (m - len(u) + below.sum()) / p[below].sum()
        p = np.minimum(1.0, c * p)
        if c <= 1:
            return p, number + 1
    return p, repeats


@dataclass(frozen=True)
class Optimal:
    """``sending=optimal``: m of a cohort send in expectation; ``exact`` is OCS, else AOCS.

    Bytes beside the updates: OCS one float up and one down for each client; AOCS one up (the norm) and one
    down (the sum), and for each correction two up and one down.

    >>> rule = Optimal(m=2, exact=True)
    >>> rule.senders(np.array([1.0, 1.0, 2.0, 8.0]), np.array([0.1, 0.9, 0.9, 0.9]))
    Senders(factors=[4.0, 0.0, 0.0, 1.0], up=16, down=16)
    """

    m: float
    exact: bool = False
    repeats: int = 4

    def __post_init__(self) -> None:
        require(self.m > 0, "sending.m", self.m, "a positive number of clients", "sending.m=2")
        require(self.repeats >= 0, "sending.repeats", self.repeats, "at least 0", "sending.repeats=4")

    def chances(self, u: Array) -> tuple[Array, int]:
        """p of each client, and how often AOCS corrected it."""
        if self.exact:
            return exact_chances(u, min(self.m, len(u))), 0
        return approximate_chances(u, min(self.m, len(u)), self.repeats)

    def senders(self, u: Array, uniform: Array) -> Senders:
        """Each by itself with probability p_i."""
        p, repeats = self.chances(u)
        factors = [
            float(1 / chance) if draw < chance else 0.0 for draw, chance in zip(uniform, p, strict=True)
        ]
        return Senders(factors, FLOAT * len(u) * (1 + 2 * repeats), FLOAT * len(u) * (1 + repeats))
