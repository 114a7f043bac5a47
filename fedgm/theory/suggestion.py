"""Which (eta, beta, nu), from one measured number: the eta at which FedAvg stops gaining.

A range test raises FedAvg's eta step by step. Its training loss falls until eta c of the steepest direction
is too large, where c is the share of the way that a cohort goes there in one round. The eta with the lowest
loss is the edge, and c = ``EDGE_AT_ONE`` / edge.

Eq. 2 moves in flat directions at eta, whatever beta and nu are. In the steepest one noise makes x fluctuate
with the variance V (:mod:`fedgm.theory.noise`), and c x, the signal in D, with c^2 V. So the values are those
with the largest eta at which that is at most ``STEADY``, among (beta, nu) whose lag is short beside the run.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import NamedTuple

from fedgm.errors import RefusedError
from fedgm.server import Momentum
from fedgm.theory.noise import lag, stationary_variance
from fedgm.theory.stability import IDEAL, Reading, response

# Chosen on seed 0 of three problems whose grids were stored (docs/suggest.md).
EDGE_AT_ONE = 1.4  # the edge where the steepest direction has c = 1
STEADY = 0.75  # c^2 V of the steepest direction at the best point of the stored grids, (5, 0.95, 0.9)
FEDAVG_STEADY = 2 * STEADY / (1 + STEADY)  # eta c of FedAvg there: c^2 V = eta c / (2 - eta c)
RISE = 0.1  # relative: a loss this much above the lowest is past the edge
LONGEST = 1 / 3.5  # lag, as a share of the rounds

BETAS = (0.5, 0.7, 0.8, 0.9, 0.95)  # beyond 0.95 a larger eta has gained nothing
NUS = (0.5, 0.7, 0.8, 0.9, 0.95, 1.0)
FEDAVG = (0.0, 0.0)
PAIRS = (FEDAVG, *product(BETAS, NUS))
SEEN = (0.7, 0.45, 1.6)  # median and ends of measured over modelled gain, 18 runs (docs/suggest.md)
NEAR = 0.9  # etas this close are not told apart: the shorter lag is taken
DIGITS = 2  # of eta


class Step(NamedTuple):
    """Rounds of FedAvg at one eta, and the training loss at their end."""

    eta: float
    loss: float


class Suggestion(NamedTuple):
    """Values, and the etas of FedAvg that they are compared with."""

    edge: float
    momentum: Momentum
    fedavg: float  # the largest eta of FedAvg whose steepest direction is as steady

    def model_gain(self, rounds: int) -> float:
        """How far it goes in flat directions, in units of FedAvg at its edge.

        FedAvg with ideal clients is as steady at ``FEDAVG_STEADY`` where its edge is ``EDGE_AT_ONE``.
        """
        as_steady = self.momentum.eta / self.fedavg * (1 - lag(self.momentum) / rounds)
        return as_steady * FEDAVG_STEADY / EDGE_AT_ONE

    def gain(self, rounds: int) -> tuple[float, float, float]:
        """Times as many rounds as FedAvg would need: about, and the range that stored runs leave open."""
        about, low, high = (share * self.model_gain(rounds) for share in SEEN)
        return about, low, high


def steps_of(rows: Iterable[Mapping[str, float | int | None]]) -> list[Step]:
    """The last training loss at each eta of FedAvg; what a run did after its test is left out.

    >>> columns = ("server/eta", "server/nu", "train/loss")
    >>> rows = [(1.0, 0.0, 2.0), (1.0, 0.0, 1.5), (1.4, 0.0, None), (1.4, 0.0, 1.2), (5.0, 0.9, 0.7)]
    >>> steps_of(dict(zip(columns, row)) for row in rows)
    [Step(eta=1.0, loss=1.5), Step(eta=1.4, loss=1.2)]
    """
    losses: dict[float, float] = {}
    for row in rows:
        eta, loss = row.get("server/eta"), row.get("train/loss")
        if eta is not None and loss is not None and row.get("server/nu") == 0:
            losses[eta] = loss
    return [Step(eta, loss) for eta, loss in losses.items()]


def is_past(steps: Sequence[Step]) -> bool:
    """Whether the last step has lost: its loss is a tenth above the lowest.

    >>> is_past([Step(1.0, 2.0), Step(1.4, 1.5)]), is_past([Step(1.0, 2.0), Step(1.4, 2.21)])
    (False, True)
    """
    return bool(steps) and steps[-1].loss > (1 + RISE) * min(step.loss for step in steps)


def edge_of(steps: Sequence[Step]) -> float:
    """The eta with the lowest loss; of a test that has not gone past it, the edge is there or above.

    >>> edge_of([Step(1.0, 1.5), Step(1.4, 1.2), Step(2.0, 1.3), Step(2.8, 1.9)])
    1.4
    """
    lowest = min(steps, key=lambda step: step.loss)
    if lowest is steps[0]:
        raise RefusedError(f"FedAvg gains nothing above eta {lowest.eta:.2g}, where its test begins")
    return lowest.eta


def suggest(edge: float, rounds: int, reading: Reading = IDEAL) -> Suggestion:
    """The largest eta that is steady in the steepest direction, with its beta and nu.

    >>> suggest(edge=1.4, rounds=125).momentum
    Momentum(eta=5.0, beta=0.95, nu=0.9)
    >>> suggest(edge=1.4, rounds=30).momentum  # 0.95 would remember half of the run
    Momentum(eta=3.1, beta=0.9, nu=0.9)
    """
    steady = {pair: largest_steady(edge, pair, reading) for pair in PAIRS}
    short = [pair for pair in PAIRS if lag(Momentum(1.0, *pair)) <= LONGEST * rounds]
    most = max(steady[pair] for pair in short)
    near = [Momentum(steady[pair], *pair) for pair in short if steady[pair] >= NEAR * most]
    return Suggestion(edge, min(near, key=lag), steady[FEDAVG])


def largest_steady(edge: float, pair: tuple[float, float], reading: Reading = IDEAL) -> float:
    """The eta up to which c^2 V of the steepest direction is at most ``STEADY``, to two digits.

    FedAvg's V is eta / (c (2 - eta c)), so its c^2 V is 3/4 at eta c = 6/7:

    >>> largest_steady(edge=1.4, pair=FEDAVG), largest_steady(edge=2.8, pair=FEDAVG)
    (0.86, 1.7)
    """
    c = EDGE_AT_ONE / edge
    kept = (1 - min(c, 1.0)) ** (1 / reading.reference)  # of the distance, by an epoch
    a = response(reading, kept) * max(c, 1.0)  # a round that goes further than all the way is longer in all
    low, high = 0.0, 100 * edge
    while high - low > 1e-4 * high:
        middle = (low + high) / 2
        steady = c**2 * stationary_variance(a, Momentum(middle, *pair)) <= STEADY
        low, high = (middle, high) if steady else (low, middle)
    return float(f"{(low + high) / 2:.{DIGITS}g}")
