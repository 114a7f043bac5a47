"""Client rules to which the server sends a direction beside the model. Only SCAFFOLD-M keeps client state."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from tests.paper.system_recursions import (
    Array,
    Cohorts,
    Gradient,
    Keys,
    Rate,
    Server,
    local_sgd,
    mean,
    rate_at,
)


class Directions(NamedTuple):
    """Models x_0, x_1, ... and the direction that the server holds beside each of them."""

    past: list[Array]
    directions: list[Array]


def stem(
    x: Array,
    cohorts: Cohorts,
    gradient: Gradient,
    keys: Keys,
    eta: Callable[[int], float],
    a: Callable[[int], float],
    d: Array,
    server: Server | None = None,
) -> Directions:
    """STEM (Khanduri et al., NeurIPS 2021, arXiv 2106.10435), Algorithm 1: STORM at clients, averaged with x.

    Iteration s = 1, 2, ... runs through local steps of all rounds, K in each. With the batch b drawn once:

        y' = y - eta_s d;  d = grad f_i(y'; b) + (1 - a_{s+1}) (d - grad f_i(y; b));  y = y'

    The first step of a round is along the d that the server sent, and what the last refresh gives is not
    applied but sent: the server averages y and d. a_{s+1} = min(1, c eta_s^2), eta_s = kappa/(w + sigma^2
    s)^(1/3): both are arguments, ``a(s)`` the one of iteration s, so steps use ``eta(s)`` and ``a(s + 1)``.
    ``d`` is the first direction, (1/n) sum_i grad f_i(x_0) on B = b K samples. All clients of a round make
    the same K.

    Not checked: no public code, the equations are from memory. That x and the direction are averaged
    together, with the step along the mean, stands so in a paper of the same construction (Federated
    Conditional Stochastic Optimization, NeurIPS 2023, Algorithm 1).
    """
    server = server or Server()
    past, directions, s = [x], [d], 1
    for t, cohort in enumerate(cohorts, 1):
        ends, refreshed, steps = list[Array](), list[Array](), 0
        for i in cohort:
            y, d_i = x, d
            steps = len(keys(t, i))
            for j, key in enumerate(keys(t, i)):
                moved = y - eta(s + j) * d_i
                d_i = gradient(i, moved, key) + (1 - a(s + j + 1)) * (d_i - gradient(i, y, key))
                y = moved
            ends.append(y)
            refreshed.append(d_i)
        s += steps
        x, d = server.step(x, x - mean(ends)), mean(refreshed)
        past.append(x)
        directions.append(d)
    return Directions(past, directions)


def fedcm(
    x: Array, cohorts: Cohorts, gradient: Gradient, keys: Keys, eta_l: Rate, a: float, eta_g: float = 1.0
) -> list[Array]:
    """FedCM (Xu et al. 2021, arXiv 2106.10874): g <- a g + (1-a) Delta, Delta = D/(K eta_l) of last round.

    Delta is 0 in round 1; eta_l is that of the round in which D was made; x -= eta_g D. Checked in
    woodenchild95/FL-Simulator@502bec6 (server/FedCM.py, client/fedcm.py) and RickZack/GHBM@41da4a9, which
    divides by the current rate instead, and by each client's own K as here (FL-Simulator: one K for all).
    The paper counts eta_g for Delta, not for D: its eta_g is ours times K eta_l (from memory).
    """
    D, rate, past = np.zeros_like(x), 1.0, [x]
    for t, cohort in enumerate(cohorts, 1):
        ends = list[Array]()
        for i in cohort:
            pull = (1 - a) * D / (len(keys(t, i)) * rate)
            ends.append(
                local_sgd(x, gradient, i, keys(t, i), rate_at(eta_l, t), lambda y, g, pull=pull: a * g + pull)
            )
        D, rate = x - mean(ends), rate_at(eta_l, t)
        x = x - eta_g * D
        past.append(x)
    return past


def fedavg_m(
    x: Array, cohorts: Cohorts, gradient: Gradient, keys: Keys, eta: float, gamma: float, beta: float
) -> Directions:
    """FedAvg-M (Cheng et al., ICLR 2024, arXiv 2306.16504), Algorithm 1; K is the same for all.

        g_i <- beta grad f_i + (1-beta) g;  g = D/(eta K);  x -= gamma g;  g = 0 at the start

    FedCM with a = beta and eta_g = gamma/(eta K). Not checked: from memory, no public code found.
    """
    g, past, directions = np.zeros_like(x), [x], [np.zeros_like(x)]
    for t, cohort in enumerate(cohorts, 1):
        held = (1 - beta) * g
        ends = [
            local_sgd(x, gradient, i, keys(t, i), eta, lambda y, grad, held=held: beta * grad + held)
            for i in cohort
        ]
        g = (x - mean(ends)) / (eta * len(keys(t, cohort[0])))
        x = x - gamma * g
        past.append(x)
        directions.append(g)
    return Directions(past, directions)


class Controlled(NamedTuple):
    """Models, the last direction, and the last control variates: the server's and each client's."""

    past: list[Array]
    g: Array
    c: Array
    controls: list[Array]


def scaffold_m(
    x: Array,
    cohorts: Cohorts,
    gradient: Gradient,
    keys: Keys,
    eta: float,
    gamma: float,
    beta: float,
    n: int,
    controls: list[Array] | None = None,
) -> Controlled:
    """SCAFFOLD-M (Cheng et al., ICLR 2024, arXiv 2306.16504), Algorithm 2.

        g_i <- beta (grad f_i - c_i + c) + (1-beta) g;  c_i' = mean of the K gradients that were seen
        g = D/(eta K);  x -= gamma g;  c += (1/n) sum_{i in S} (c_i' - c_i)

    The paper starts with c_i = (1/B) sum_b grad f_i(x_0; b) and g = c; without ``controls`` all start at 0
    here. Not checked: from memory. At beta = 1, gamma = eta K it is SCAFFOLD with option II (an identity,
    tested).
    """
    controls = list(controls) if controls else [np.zeros_like(x) for _ in range(n)]
    c = mean(controls)
    g, past = c.copy(), [x]
    for t, cohort in enumerate(cohorts, 1):
        ends, changes, held = list[Array](), list[Array](), (1 - beta) * g
        for i in cohort:
            y, seen = x, list[Array]()
            for key in keys(t, i):
                seen.append(gradient(i, y, key))
                y = y - eta * (beta * (seen[-1] - controls[i] + c) + held)
            ends.append(y)
            changes.append(mean(seen) - controls[i])
        for i, change in zip(cohort, changes, strict=True):
            controls[i] = controls[i] + change
        c = c + np.sum(changes, axis=0) / n
        g = (x - mean(ends)) / (eta * len(keys(t, cohort[0])))
        x = x - gamma * g
        past.append(x)
    return Controlled(past, g, c, controls)


def mimelite(
    x: Array,
    cohorts: Cohorts,
    gradient: Gradient,
    keys: Keys,
    full: Callable[[int, Array], Array],
    eta_l: Rate,
    beta: float,
    server: Server | None = None,
    damped: bool = True,
) -> Directions:
    """MimeLite with momentum (Karimireddy et al., NeurIPS 2021, arXiv 2008.03606), Algorithm 1 without c.

        local steps: y -= eta_l ((1-beta) grad f_i(y; b) + beta m), m as it was sent
        server: x -= D, and m = (1-beta) mean_{i in S} grad f_i(x) + beta m with full gradients at the old x

    The optimiser's state is updated by full-batch gradients at x alone; checked in google/fedjax@c57ee19
    (fedjax/algorithms/mime_lite.py) and RickZack/GHBM@41da4a9, both of which weigh by samples. (1-beta) is
    the paper's form from memory; both codes take SGD's summed buffer, ``damped=False``: m = g + beta m, y
    -= eta_l (grad + beta m).
    """
    factor = 1 - beta if damped else 1.0
    server = server or Server()
    m, past, directions = np.zeros_like(x), [x], [np.zeros_like(x)]
    for t, cohort in enumerate(cohorts, 1):
        held = beta * m
        ends = [
            local_sgd(
                x, gradient, i, keys(t, i), rate_at(eta_l, t), lambda y, g, held=held: factor * g + held
            )
            for i in cohort
        ]
        m = factor * mean([full(i, x) for i in cohort]) + beta * m
        x = server.step(x, x - mean(ends))
        past.append(x)
        directions.append(m)
    return Directions(past, directions)


def ghbm(
    x: Array, cohorts: Cohorts, gradient: Gradient, keys: Keys, eta_l: Rate, beta: float, tau: int
) -> list[Array]:
    """GHBM (Zaccone et al., TMLR 2025, arXiv 2311.18578): g <- g + beta/(eta_l K) (x_{t-tau} - x_t)/tau.

    The term is 0 in the first tau rounds; K is the client's own; x -= D. Checked in RickZack/GHBM@41da4a9
    (official: ghbm_center_server.py, ghbm_client.py, ``nesterov=False``). beta .9, tau = n/m.
    """
    past = [x]
    for t, cohort in enumerate(cohorts, 1):
        drift = (past[-1 - tau] - x) / tau if t > tau else np.zeros_like(x)
        ends = list[Array]()
        for i in cohort:
            pull = beta * drift / (rate_at(eta_l, t) * len(keys(t, i)))
            ends.append(
                local_sgd(x, gradient, i, keys(t, i), rate_at(eta_l, t), lambda y, g, pull=pull: g + pull)
            )
        x = mean(ends)
        past.append(x)
    return past
