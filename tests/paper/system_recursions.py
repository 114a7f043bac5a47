"""Reference recursions of whole systems in plain float64 numpy: what all of them share.

They were written from the papers and from public code, not from this package, so that an implementation can
be held against them. No function is random: cohorts, batches, hashes and noise are arguments.

A problem is a function ``gradient(i, x, key)``: the gradient of client i at x on the batch that ``key``
names. ``keys(t, i)`` lists the batch keys of client i in round t = 1, 2, ..., one for each local step, so
its length is K. D is the mean of old minus new weights, as everywhere in this package. Functions return
x_0, x_1, ..., x_T.

``recursions_server``        FetchSGD, true top-k, amplified FedAvg, delayed Nesterov, momentum approximation
``recursions_client``        STEM, FedCM, FedAvg-M, SCAFFOLD-M, MimeLite, GHBM
``recursions_client_state``  FedDyn, EASGD, DC-ASGD, Per-FedAvg, MOON, FedLaAvg
``recursions_selection``     power-of-choice, optimal client sampling, Active FL, FedCS, cyclic participation
``recursions_schedules``     plateau, batch growth, post-local SGD
``recursions_privacy``       clipping, Gaussian noise, adaptive clipping, bounds on epsilon
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Gradient = Callable[[int, Array, object], Array]
Keys = Callable[[int, int], Sequence[object]]
Cohorts = Sequence[Sequence[int]]
Rate = float | Callable[[int], float]  # eta_l, the same in all rounds or a function of the round


@dataclass
class Server:
    """Eq. 2 of FedGM on D: d = (1-beta) D + beta d; x -= eta ((1-nu) D + nu d). The default is FedAvg."""

    eta: float = 1.0
    beta: float = 0.0
    nu: float = 0.0
    d: Array | float = field(default=0.0)

    def step(self, x: Array, D: Array) -> Array:
        """One server step."""
        self.d = (1 - self.beta) * D + self.beta * self.d
        return x - self.eta * ((1 - self.nu) * D + self.nu * self.d)


def rate_at(eta_l: Rate, t: int) -> float:
    """The local rate of round t."""
    return eta_l(t) if callable(eta_l) else eta_l


def mean(vectors: Sequence[Array]) -> Array:
    """The uniform mean over clients."""
    return np.mean(np.stack(list(vectors)), axis=0)


def local_sgd(
    x: Array,
    gradient: Gradient,
    i: int,
    keys: Sequence[object],
    eta_l: float,
    adjust: Callable[[Array, Array], Array] = lambda y, g: g,
) -> Array:
    """LocalOPT: one step for each key, with the gradient that ``adjust(y, g)`` makes of g."""
    y = x
    for key in keys:
        y = y - eta_l * adjust(y, gradient(i, y, key))
    return y


def fedavg(
    x: Array, cohorts: Cohorts, gradient: Gradient, keys: Keys, eta_l: Rate, server: Server | None = None
) -> list[Array]:
    """LocalOPT and Eq. 2 (FedAvg by default), which special cases of the other systems are compared with."""
    server = server or Server()
    past = [x]
    for t, cohort in enumerate(cohorts, 1):
        ends = [local_sgd(x, gradient, i, keys(t, i), rate_at(eta_l, t)) for i in cohort]
        x = server.step(x, x - mean(ends))
        past.append(x)
    return past


def mean_delta(
    cohorts: Cohorts, gradient: Gradient, keys: Keys, eta_l: Rate
) -> Callable[[int, Array], Array]:
    """``delta(t, x)``: D of round t from x under LocalOPT, for rules that live at the server alone."""

    def delta(t: int, x: Array) -> Array:
        ends = [local_sgd(x, gradient, i, keys(t, i), rate_at(eta_l, t)) for i in cohorts[t - 1]]
        return x - mean(ends)

    return delta


def one_delta(gradient: Gradient, keys: Keys, eta_l: Rate) -> Callable[[int, int, Array], Array]:
    """``delta(t, i, start)``: what client i sends that arrives in round t and started from ``start``."""
    return lambda t, i, start: start - local_sgd(start, gradient, i, keys(t, i), rate_at(eta_l, t))
