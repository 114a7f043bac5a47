"""A problem with many directions: what a server rule reaches in T rounds, as far as a quadratic can tell.

:mod:`fedgm.theory.noise` has one direction. Its answer is "the largest eta at which V stays small", without
an end. A network has steep and flat directions at once. Here direction i has the share c_i of the way that a
cohort goes in one round (c = 1 - q^e, at most 1: local training cannot go further than all the way), from 1
down over four decades, evenly in log c, and

    D_i = c_i x_i + xi_i,      Var xi_i = s c_i^NOISE_TILT,      c_i x_i(0)^2 = c_i^START_TILT / sum_j ...

so that the excess loss is sum_i c_i E x_i^2, which starts at 1. Steep directions say which eta is stable,
flat ones how far T rounds go. The noise of flat directions grows with eta *whatever beta is*: that is why
the best of the stored grids is a plateau from eta 5 on, where one direction promises more and more.

s is measured (:func:`calibrated`): the share of noise in the square of D over the rounds of a probe. The two
tilts were chosen on one problem, CIFAR-10 at ``profile=small``, seed 0, after its grids had been run;
docs/suggest.md says what that is worth.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fedgm.server import Momentum
from fedgm.theory.noise import noise_vector
from fedgm.theory.stability import IDEAL, Reading, response, transition

Array = NDArray[np.float64]
START_TILT, NOISE_TILT = 0.7, 0.4  # of the energy at the start and of the noise, over log c
DECADES, DIRECTIONS = 4, 24
NEAR = 0.96  # of the largest share of noise that the model has
CAP = 1e12  # second moments above it have diverged
FEDAVG = (0.0, 0.0)  # beta, nu


class Stretch(NamedTuple):
    """Rounds at one (eta, beta, nu)."""

    rounds: int
    momentum: Momentum


@dataclass(frozen=True)
class Problem:
    """Directions, their energy at the start, their noise, and how clients respond."""

    s: float
    start_tilt: float = START_TILT
    noise_tilt: float = NOISE_TILT
    reading: Reading = IDEAL

    @property
    def c(self) -> Array:
        """The share of the way that ideal clients go in a round, by direction."""
        return np.logspace(-DECADES, 0, DIRECTIONS)

    @property
    def start(self) -> Array:
        """x_i(0)^2: the excess loss starts at 1."""
        energy = self.c**self.start_tilt
        return energy / energy.sum() / self.c

    @property
    def noise(self) -> Array:
        """Var xi_i."""
        return self.s * self.c**self.noise_tilt / DIRECTIONS


def second_moments(problem: Problem, plans: Sequence[Sequence[Stretch]]) -> Array:
    """E x_i^2 by round 0 .. T, plan and direction; every plan has the same number of rounds.

    One direction of FedAvg without noise shrinks by (1 - eta c)^2 a round:

    >>> moments = second_moments(Problem(s=0.0), [[Stretch(2, Momentum(0.5, 0.0, 0.0))]])
    >>> moments.shape, (moments[2, 0, -1] / moments[0, 0, -1]).round(6).item()  # c = 1
    ((3, 1, 24), 0.0625)
    """
    return np.stack(list(_each_round(problem, plans)))


def _each_round(problem: Problem, plans: Sequence[Sequence[Stretch]]) -> Iterator[Array]:
    """E x_i^2 by plan and direction, of round 0, 1, ...: P_{t+1} = A P_t A' + b b' in every direction."""
    a = _responses(problem)

    @cache  # plans share stretches
    def one_round(m: Momentum) -> tuple[Array, Array]:
        b = noise_vector(a.shape[1], m)
        return np.stack([transition(one, m) for one in a]), problem.noise[:, None, None] * np.outer(b, b)

    size = a.shape[1] + 1
    second = np.zeros((len(plans), DIRECTIONS, size, size))
    second[:, :, :-1, :-1] = problem.start[:, None, None]  # before round 1 every past model is x_0
    yield second[..., 0, 0]
    A, noise, ends = np.empty_like(second), np.empty_like(second), [0] * len(plans)
    left, lost = [list(plan) for plan in plans], np.zeros(second.shape[:2], dtype=bool)
    for t in range(sum(stretch.rounds for stretch in plans[0])):
        for number in (n for n, end in enumerate(ends) if end == t):
            stretch = left[number].pop(0)
            ends[number] += stretch.rounds
            A[number], noise[number] = one_round(stretch.momentum)
        second = np.clip(A @ second @ A.swapaxes(-1, -2) + noise, -CAP, CAP)
        lost |= np.abs(second).max(axis=(-1, -2)) == CAP  # no second moments any more
        yield np.where(lost, CAP, second[..., 0, 0])


def losses(problem: Problem, plans: Sequence[Sequence[Stretch]]) -> Array:
    """The excess loss by round 0 .. T and plan; it starts at 1."""
    return np.stack([(moments * problem.c).sum(axis=1) for moments in _each_round(problem, plans)])


def excess(problem: Problem, plans: Sequence[Sequence[Stretch]], last: int) -> Array:
    """The excess loss of each plan, as the mean over its ``last`` rounds.

    Less noise in the end, at the price of a slower start, is what a drop of eta buys:

    >>> fast, slow = Momentum(2.0, 0.9, 0.9), Momentum(0.5, 0.9, 0.9)
    >>> plans = [[Stretch(100, fast)], [Stretch(80, fast), Stretch(20, slow)], [Stretch(100, slow)]]
    >>> excess(Problem(s=0.2), plans, last=5).round(3).tolist()
    [0.05, 0.033, 0.042]
    """
    return losses(problem, plans)[-last:].mean(axis=0)


def noise_share(problem: Problem, eta: float, rounds: range) -> float:
    """Which part of the mean square of D is noise in these rounds of FedAvg: what a probe measures."""
    plan = [Stretch(rounds[-1] + 1, Momentum(eta, *FEDAVG))]
    moments = second_moments(problem, [plan])[[t - 1 for t in rounds], 0]  # x_t, from which D_t is taken
    gain = _responses(problem).sum(axis=1)  # where x moves slowly, past models are the present one
    signal = (gain**2 * moments).sum(axis=1).mean()
    noise = problem.noise.sum()
    return float(noise / (noise + signal))


def calibrated(problem: Problem, share: float, eta: float, rounds: range) -> Problem:
    """The problem at the s that gives this share of noise.

    However large s is, x answers to noise in steep directions and D shows it as signal: the share has a limit
    below 1. A network also has noise in directions that no loss depends on. What lies near the limit or above
    it is taken as ``NEAR`` of it: as noisy as this model can tell.

    >>> found = calibrated(Problem(s=1.0), 0.5, eta=1.0, rounds=range(5, 26))
    >>> round(noise_share(found, 1.0, range(5, 26)), 3)
    0.5
    """
    low, high = 1e-9, 1e3
    share = min(share, NEAR * noise_share(replace(problem, s=high), eta, rounds))
    while high / low > 1.001:
        middle = (low * high) ** 0.5
        below = noise_share(replace(problem, s=middle), eta, rounds) < share
        low, high = (middle, high) if below else (low, middle)
    return replace(problem, s=(low * high) ** 0.5)


def _responses(problem: Problem) -> Array:
    """a_tau by direction: c itself for ideal clients, that of the same direction for stale ones."""
    kept = (1 - problem.c) ** (1 / problem.reading.reference)  # q of an epoch
    return np.stack([response(problem.reading, float(q)) for q in kept])
