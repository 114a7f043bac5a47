"""Schedules that watch the run or change local work."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from tests.paper.system_recursions import Array, Cohorts, Gradient, Keys, Rate, fedavg


class Drop(NamedTuple):
    """After evaluation ``evaluation`` (from 1) the server goes on with these."""

    evaluation: int
    eta: float
    beta: float


def plateau(
    losses: Sequence[float],
    eta: float,
    beta: float,
    nu: float,
    patience: int,
    threshold: float,
    factor: float,
) -> list[Drop]:
    """The paper's "decay whenever the loss saturates"; what that means is this project's choice.

    eta drops by ``factor`` once the mean of the last p evaluations is not at least ``threshold`` below the
    mean of the p before, all 2 p of them since the last drop. W1 = eta beta nu/(1-beta) stays, so beta =
    W1/(W1 + eta nu).
    """
    drops, since = list[Drop](), 0
    w1 = eta * beta * nu / (1 - beta)
    for e in range(1, len(losses) + 1):
        if e - since < 2 * patience:
            continue
        late, early = losses[e - patience : e], losses[e - 2 * patience : e - patience]
        if sum(early) / patience - sum(late) / patience < threshold:
            eta, since = eta * factor, e
            beta = w1 / (w1 + eta * nu)
            drops.append(Drop(e, eta, beta))
    return drops


def half_up(value: float) -> int:
    """Round half up."""
    return int(value + 0.5)


def batches_instead_of_drops(first: int, etas: Sequence[float]) -> list[int]:
    """Smith et al. (ICLR 2018, arXiv 1711.00489): eta stays at eta_1 and B_s = round(B_1 eta_1/eta_s).

    Their noise scale is eta N/(B (1-beta)) of summed momentum; Eq. 2's eta is already divided by 1 - beta,
    so what has to stay is eta/B whatever beta does. From memory.
    """
    return [half_up(first * etas[0] / eta) for eta in etas]


def batches_that_scale(first: int, etas: Sequence[float]) -> list[int]:
    """The linear scaling rule read the other way: B_s = round(B_1 eta_s/eta_1) keeps eta/B as eta changes."""
    return [half_up(first * eta / etas[0]) for eta in etas]


def post_local(
    x: Array,
    cohorts: Cohorts,
    gradient: Gradient,
    keys: Keys,
    eta_l: Rate,
    steps: Callable[[int], int],
) -> list[Array]:
    """Post-local SGD (Lin et al., ICLR 2020, arXiv 1808.07217): one local step up to round t', H after it.

    The mean of models is FedAvg's, so a round of one step is minibatch SGD over the cohort. From memory.
    """
    return fedavg(x, cohorts, gradient, lambda t, i: keys(t, i)[: steps(t)], eta_l)
