"""Central differential privacy of clients, and bounds on epsilon that need no library.

Adjacency: one client is replaced, cohorts have m of n clients without replacement. A clipped sum then
changes by at most 2C, so noise of deviation z C on the sum is a Gaussian mechanism with ratio s = z/2 of
deviation to sensitivity. This is where a library is easily misused: dp_accounting's
``SampledWithoutReplacementDpEvent(n, m, GaussianDpEvent(z))`` under ``REPLACE_ONE`` takes z as the ratio
itself (google/differential-privacy@b5b0286, rdp_privacy_accountant.py: ``_compute_rdp_sample_wor_gaussian``
has alpha/(2 z^2)), while GaussianDpEvent is documented as deviation over clip norm.
"""

from collections.abc import Callable, Sequence
from math import comb, erfc, exp, log, pi, sqrt
from typing import NamedTuple

import numpy as np

from tests.paper.system_recursions import Array, Cohorts, Gradient, Keys, Rate, Server, local_sgd, rate_at


def clip(update: Array, C: float) -> Array:
    """Scaled to norm C if it is longer."""
    return update * min(1.0, C / max(float(np.linalg.norm(update)), 1e-300))


def noisy_mean(updates: Sequence[Array], C: float, z: float, normal: Array) -> Array:
    """(sum of clipped updates + z C N(0, I))/m (McMahan et al., ICLR 2018, arXiv 1710.06963)."""
    return (np.sum([clip(u, C) for u in updates], axis=0) + z * C * normal) / len(updates)


def z_delta(z: float, sigma_b: float) -> float:
    """What is left for the updates of a total noise multiplier z: (z^-2 - (2 sigma_b)^-2)^(-1/2)."""
    return (z**-2 - (2 * sigma_b) ** -2) ** -0.5


def next_clip(
    norms: Sequence[float], C: float, gamma: float, eta_C: float, sigma_b: float, normal: float
) -> float:
    """Adaptive clipping (Andrew et al., NeurIPS 2021, arXiv 1905.03871): C follows a quantile of the norms.

        b = (sum_i (1[norm_i <= C] - 1/2) + sigma_b N(0, 1))/m + 1/2, kept in [0, 1]
        C <- C exp(-eta_C (b - gamma))

    Checked in tensorflow/privacy@03035d5 (quantile_estimator_query.py, quantile_adaptive_clip_sum_query.py)
    and apple/pfl-research@c9d1f32 (adaptive_clipping.py). gamma .5, eta_C .2, sigma_b m/20, C_0 .1. A
    centred bit changes the sum by 1/2 if a client is added (hence 2 sigma_b) and by 1 if one is replaced:
    as the updates' sensitivity doubles, too, the combined ratio is z/2 here as well.
    """
    b = (sum((norm <= C) - 0.5 for norm in norms) + sigma_b * normal) / len(norms) + 0.5
    return C * exp(-eta_C * (min(1.0, max(0.0, b)) - gamma))


class PrivateRun(NamedTuple):
    """Models, and the clip norm of each round (the last one is that of a round to come)."""

    past: list[Array]
    clips: list[float]


def central(
    x: Array,
    cohorts: Cohorts,
    gradient: Gradient,
    keys: Keys,
    eta_l: Rate,
    C: float,
    z: float,
    normal: Callable[[int], Array],
    adaptive: tuple[float, float, float] | None = None,
    bit_normal: Callable[[int], float] = lambda t: 0.0,
    server: Server | None = None,
) -> PrivateRun:
    """Clip, add, divide, then any server rule: what follows the noise is post-processing.

    ``normal(t)`` is the standard normal vector of round t. ``adaptive`` is (gamma, eta_C, sigma_b); then z
    is the total and the updates get ``z_delta``.
    """
    server = server or Server()
    past, clips = [x], [C]
    share = z_delta(z, adaptive[2]) if adaptive and z else z
    for t, cohort in enumerate(cohorts, 1):
        updates = [x - local_sgd(x, gradient, i, keys(t, i), rate_at(eta_l, t)) for i in cohort]
        x = server.step(x, noisy_mean(updates, C, share, normal(t)))
        if adaptive:
            norms = [float(np.linalg.norm(u)) for u in updates]
            C = next_clip(norms, C, *adaptive, bit_normal(t))
        past.append(x)
        clips.append(C)
    return PrivateRun(past, clips)


def phi(value: float) -> float:
    """The standard normal distribution function."""
    return erfc(-value / sqrt(2)) / 2


def gaussian_delta(epsilon: float, rounds: int, s: float) -> float:
    """Exact delta of T Gaussian mechanisms without sampling (Balle & Wang, ICML 2018, arXiv 1805.06530).

    They are one mechanism with mu = sqrt(T)/s: delta = Phi(mu/2 - eps/mu) - e^eps Phi(-mu/2 - eps/mu).
    """
    mu = sqrt(rounds) / s
    return phi(mu / 2 - epsilon / mu) - exp(epsilon) * phi(-mu / 2 - epsilon / mu)


def gaussian_epsilon(delta: float, rounds: int, s: float) -> float:
    """The epsilon at which ``gaussian_delta`` is delta; cohorts that are samples need at most this much."""
    low, high = 0.0, 500.0
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if gaussian_delta(middle, rounds, s) > delta else (low, middle)
    return high


def renyi_closed_form(delta: float, rounds: int, s: float) -> float:
    """min over alpha of T alpha/(2 s^2) + log(1/delta)/(alpha - 1) (Mironov 2017), worked out by hand."""
    return rounds / (2 * s**2) + sqrt(2 * rounds * log(1 / delta)) / s


def sampled_renyi(q: float, s: float, alpha: int) -> float:
    """Renyi bound of a round with q n of n clients (Wang, Balle, Kasiviswanathan, AISTATS 2019, Theorem 9).

    With eps(j) = j/(2 s^2), whose limit is infinite: (1/(alpha-1)) log(1 + q^2 C(alpha, 2) min(4 (e^eps(2)
    - 1), 2 e^eps(2)) + sum_{j=3..alpha} 2 q^j C(alpha, j) e^((j-1) eps(j))). Checked in
    google/differential-privacy@b5b0286, which has a sharper one for the Gaussian mechanism (Theorem 27), so
    a library may give less, never more.
    """
    rdp = [j / (2 * s**2) for j in range(alpha + 1)]
    total = 1 + q**2 * comb(alpha, 2) * min(4 * (exp(rdp[2]) - 1), 2 * exp(rdp[2]))
    total += sum(2 * q**j * comb(alpha, j) * exp((j - 1) * rdp[j]) for j in range(3, alpha + 1))
    return log(total) / (alpha - 1)


def sampled_epsilon(
    delta: float, rounds: int, q: float, s: float, orders: Sequence[int] = range(2, 65)
) -> float:
    """min over alpha of T times that + log(1/delta)/(alpha - 1): the classic conversion, an upper bound."""
    bounds = list[float]()
    for alpha in orders:
        if alpha * (alpha - 1) / (2 * s**2) < 600:  # beyond, the bound is useless and overflows
            bounds.append(rounds * sampled_renyi(q, s, alpha) + log(1 / delta) / (alpha - 1))
    return min([*bounds, gaussian_epsilon(delta, rounds, s)])


def one_round_delta(epsilon: float, q: float, s: float, points: int = 200_001) -> float:
    """A delta that no correct accountant goes below: two neighbouring data sets, one round, integrated.

    All other updates are 0 and the one client sends +C or -C: the sum is N(0, (zC)^2) with chance 1 - q and
    N(+-C, (zC)^2) with q. In units of 2C the two mixtures are at +-1/2 with deviation s.
    """
    grid = np.linspace(-12 * s - 1, 12 * s + 1, points)

    def density(at: float) -> Array:
        return np.exp(-((grid - at) ** 2) / (2 * s**2)) / (s * sqrt(2 * pi))

    first, second = ((1 - q) * density(0.0) + q * density(at) for at in (0.5, -0.5))
    return float(np.maximum(first - exp(epsilon) * second, 0.0).sum() * (grid[1] - grid[0]))


def one_round_epsilon(epsilon: float, delta: float, q: float) -> tuple[float, float]:
    """Sampling amplifies (Balle, Barthe, Gaboardi, NeurIPS 2018): (log(1 + q (e^eps - 1)), q delta)."""
    return log(1 + q * (exp(epsilon) - 1)), q * delta
