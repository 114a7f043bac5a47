"""Which (eta, beta, nu), from how much of D is noise: a search in :mod:`fedgm.theory.quadratic`."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import inf, isfinite
from statistics import mean, stdev

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from fedgm.errors import RefusedError
from fedgm.schedule.plan import Multistage, stage_ends
from fedgm.server import GeneralMomentum, Momentum
from fedgm.theory.quadratic import FEDAVG, Problem, Stretch, calibrated, excess, losses, noise_share
from fedgm.theory.stability import IDEAL, Reading

ETAS = (0.1, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 5.0, 6.0, 8.0, 10.0)
BETAS = (0.5, 0.7, 0.8, 0.9, 0.95, 0.97)
NUS = (0.5, 0.7, 0.8, 0.9, 0.95, 1.0)
PAIRS = (FEDAVG, *product(BETAS, NUS))
TILTS = ((0.7, 0.4), (0.6, 0.8), (0.8, 0.3))  # the first is the model; the others say what rests on it
PLATEAU = 0.02  # relative: losses this close are not told apart, and the smallest eta is taken
DROPS = (1.0, 0.5, 0.25)  # of eta, as in the paper's Figure 2
FARTHEST = 8  # FedAvg is followed for so many times the rounds
NOISIEST = 1e3  # an s at which the model's share of noise is at its limit
PROBE_ETA = 1.0  # FedAvg's in a probe, which has ideal clients
SETTLED = 5  # the first rounds of a probe are left out
COLUMNS = ("update/norm", "client/drift", "cohort/clients")  # what is read of a probe: |D|, drift, m


@dataclass(frozen=True)
class Measured:
    """What a probe has measured: the share of noise in D, with its deviation over rounds."""

    share: float
    error: float  # standard error of the share
    rounds: range

    @property
    def low(self) -> float:
        """Two standard errors below."""
        return max(self.share - 2 * self.error, 0.01)

    @property
    def high(self) -> float:
        """Two standard errors above."""
        return min(self.share + 2 * self.error, 0.99)


@dataclass(frozen=True)
class Suggestion:
    """Values, the plan in stages, and what they are expected to gain over the best FedAvg."""

    measured: Measured
    momentum: Momentum
    fedavg: float  # the eta at which FedAvg gets there first: that of the middle speedup
    etas: tuple[float, ...]  # stages after Eq. 3, from ``staged``; empty where constant values are as good
    staged: Momentum
    speedup: tuple[float, float, float]  # low, middle, high: how many times the rounds FedAvg needs, or inf


def measure(rows: Iterable[Mapping[str, float | int | None]], clients: int) -> Measured:
    """The share of noise in D, from the rows of a probe.

    Rounds without a drift, or with one client, say nothing.

    >>> row = {"update/norm": 2.0, "client/drift": 4.0, "cohort/clients": 5}
    >>> measure([{"round": t, **row} for t in (4, 5, 6)], clients=100)
    Measured(share=0.95, error=0.0, rounds=range(5, 7))
    """
    settled = [row for row in rows if (row.get("round") or 0) >= SETTLED]
    known = [[value for column in COLUMNS if (value := row.get(column)) is not None] for row in settled]
    seen = [v for v in known if len(v) == len(COLUMNS) and all(map(isfinite, v)) and v[2] >= 2]
    if len(seen) < 2 or not any(norm for norm, _, _ in seen):
        raise RefusedError(
            f"from round {SETTLED} on, {len(seen)} rounds of the probe have a drift of two or more clients; "
            "the noise of D needs two such rounds that moved the model. Try a longer probe "
            "(--rounds 50, schedule.probe=50)"
        )
    norms, drifts, cohort = zip(*seen, strict=True)
    share, error = share_of_noise(norms, drifts, [int(m) for m in cohort], clients)
    return Measured(share, error, range(SETTLED, int(settled[-1]["round"] or 0) + 1))


def share_of_noise(
    norms: Sequence[float], drifts: Sequence[float], cohort: Sequence[int], clients: int
) -> tuple[float, float]:
    """The noise of D over its square, from its norm, client/drift, m by round and n; with its standard error.

    drift^2 is the mean square of D_i - D over the m clients of a round. They are drawn without replacement,
    so the noise of their mean has the mean square (1 - m/n) drift^2 / (m - 1).

    >>> share_of_noise([2.0, 2.0], [4.0, 4.0], [5, 5], clients=100)
    (0.95, 0.0)
    """
    noise = [(1 - m / clients) * drift**2 / (m - 1) for drift, m in zip(drifts, cohort, strict=True)]
    squares = [norm**2 for norm in norms]
    share = mean(noise) / mean(squares)
    residuals = [(a - share * b) / mean(squares) for a, b in zip(noise, squares, strict=True)]
    return share, stdev(residuals) / len(residuals) ** 0.5


def suggest(measured: Measured, rounds: int, last: int, reading: Reading = IDEAL) -> Suggestion:
    """The best constant values and the best plan of Eq. 3 for ``rounds``, judged over the ``last`` ones."""
    problem = fitted(measured, reading)
    momentum = best_constant(problem, rounds, last)
    etas, staged = _best_stages(problem, momentum, rounds, last)
    fedavg, speedup = _speedup(measured, momentum, rounds, last, reading)
    return Suggestion(measured, momentum, fedavg, etas, staged, speedup)


def fitted(measured: Measured, reading: Reading, tilts: tuple[float, float] = TILTS[0]) -> Problem:
    """The model at the share of noise that ideal clients have, with the clients of ``reading``."""
    most = noise_share(Problem(NOISIEST, *tilts), PROBE_ETA, measured.rounds)
    if measured.share > most:
        raise RefusedError(
            f"{100 * measured.share:.0f} % of D is noise in rounds {measured.rounds[0]} to "
            f"{measured.rounds[-1]}, and the model has {100 * most:.0f} % at most: FedAvg hardly moves. That "
            "says nothing about a larger eta. Try more clients a round, more local work, a longer probe "
            "(--rounds 50, schedule.probe=50), or a grid (fedgm sweep)"
        )
    problem = calibrated(Problem(1.0, *tilts), measured.share, PROBE_ETA, measured.rounds)
    return replace(problem, reading=reading)


def best_constant(problem: Problem, rounds: int, last: int, before: Sequence[Stretch] = ()) -> Momentum:
    """One (eta, beta, nu) for ``rounds`` rounds after ``before``.

    Of the points that the model cannot tell from the best, it is one with the smallest eta.
    """
    points = [Momentum(eta, *pair) for pair in PAIRS for eta in ETAS]
    reached = np.log(excess(problem, [[*before, Stretch(rounds, m)] for m in points], last))
    near = [m for m, loss in zip(points, reached, strict=True) if loss <= reached.min() + PLATEAU]
    order = dict(zip(points, reached, strict=True))
    return min(near, key=lambda m: (m.eta, order[m]))


def _best_stages(
    problem: Problem, constant: Momentum, rounds: int, last: int
) -> tuple[tuple[float, ...], Momentum]:
    """Three stages after Eq. 3 that beat the constant values; nothing where none does."""
    points = [
        Momentum(eta, *pair)
        for pair in PAIRS
        for eta in ETAS
        if eta <= 2 * constant.eta and _fits(rounds, eta)
    ]
    plans = [_staged(m, rounds) for m in points]
    if not plans:
        return (), constant
    reached = np.log(excess(problem, [*plans, [Stretch(rounds, constant)]], last))
    first = points[int(reached[:-1].argmin())]
    if reached[:-1].min() > reached[-1] - PLATEAU:
        return (), constant
    return tuple(first.eta * drop for drop in DROPS), first


def _fits(rounds: int, eta: float) -> bool:
    ends = stage_ends(rounds, [eta * drop for drop in DROPS])
    return all(b > a for a, b in zip([0, *ends], ends, strict=False))


def _staged(first: Momentum, rounds: int) -> list[Stretch]:
    """The paper's plan (Eq. 3) from this first stage."""
    rule = GeneralMomentum(**first._asdict())
    stages = Multistage([first.eta * drop for drop in DROPS]).plan(rounds, rule).stages
    return [Stretch(stage.rounds, Momentum(**stage.hyper)) for stage in stages]


def _speedup(
    measured: Measured, momentum: Momentum, rounds: int, last: int, reading: Reading
) -> tuple[float, tuple[float, float, float]]:
    """FedAvg's eta, and how many times the rounds it needs over what was measured and what was assumed."""
    found: list[tuple[float, float]] = []
    for tilts in TILTS:
        for share in (measured.share, measured.low, measured.high):
            problem = calibrated(Problem(1.0, *tilts), share, PROBE_ETA, measured.rounds)
            found.append(needed(replace(problem, reading=reading), momentum, rounds, last))
    times = [each for each, _ in found]
    return found[0][1], (min(times), times[0], max(times))


def needed(problem: Problem, momentum: Momentum, rounds: int, last: int) -> tuple[float, float]:
    """How many times the rounds a FedAvg needs to be as good, judged over as many rounds; and its eta.

    Where none is within ``FARTHEST`` times the rounds: inf, and the eta that comes closest. The best FedAvg
    needs its own rounds:

    >>> needed(Problem(s=0.2), Momentum(0.75, *FEDAVG), rounds=40, last=10)
    (1.0, 0.75)
    """
    goal = excess(problem, [[Stretch(rounds, momentum)]], last)[0]
    etas = [eta for eta in ETAS if eta < 2]
    curves = losses(problem, [[Stretch(FARTHEST * rounds, Momentum(eta, *FEDAVG))] for eta in etas])
    means = sliding_window_view(curves, last, axis=0).mean(axis=-1)  # the first ends at round last - 1
    reached = means.min(axis=1) <= goal * (1 + 1e-9)
    first = int(reached.argmax()) if reached.any() else -1
    eta = etas[int(means[first].argmin())]
    return ((first + last - 1) / rounds if reached.any() else inf), eta
