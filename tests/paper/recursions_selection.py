"""Who trains, and who sends: each rule's formula, and whole runs where the model has a say in the choice."""

from collections.abc import Callable, Sequence
from itertools import permutations
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


def inclusion(weights: Sequence[float], d: int) -> Array:
    """The chance of each to be among d that are drawn one after another without replacement, by enumeration.

    This is what numpy's ``choice(n, d, replace=False, p=weights)`` does; it is not d times the weight.
    """
    chances = np.zeros(len(weights))
    for order in permutations(range(len(weights)), d):
        left, chance = float(sum(weights)), 1.0
        for i in order:
            chance *= weights[i] / left
            left -= weights[i]
        chances[list(order)] += chance
    return chances


def largest(candidates: Sequence[int], losses: Sequence[float], m: int) -> list[int]:
    """The m candidates of largest loss; of equal ones that which was drawn first."""
    order = sorted(range(len(candidates)), key=lambda j: -losses[j])
    return [candidates[j] for j in order[:m]]


def power_of_choice(
    x: Array,
    candidates: Cohorts,
    gradient: Gradient,
    keys: Keys,
    eta_l: Rate,
    m: int,
    loss: Callable[[int, Array, object], float],
    probe: Callable[[int, int], object] | None,
    server: Server | None = None,
) -> tuple[list[Array], list[list[int]]]:
    """Power-of-choice (Cho, Wang, Joshi, AISTATS 2022, arXiv 2010.01243): models and cohorts.

    ``candidates[t-1]`` are the d of round t, drawn without replacement with chances proportional to sample
    counts. pow-d: ``probe(t, i)`` names all of client i's data; cpow-d: one minibatch of it, in both cases
    measured at x_t. rpow-d: ``probe`` is None and the value is the mean of the minibatch losses that client
    i saw, each before its local step, when it last trained; infinity if it never did. The m of largest
    value train, mean uniform.

    Checked in the paper's own supplementary code ("1776-supp", in peng-ju/Power-of-Choice@8c857a2:
    util_v4.py ``sel_client``, train_dnn.py; weight 1/m) and adap/flower@a057288e4d, whose rpow-d takes the
    validation loss after the round instead. In the supplement cpow-d's batch is as large as the training
    batch (64).
    """
    server = server or Server()
    table: dict[int, float] = {}
    past, cohorts = [x], list[list[int]]()
    for t, drawn in enumerate(candidates, 1):
        values = [loss(i, x, probe(t, i)) if probe else table.get(i, np.inf) for i in drawn]
        cohort = largest(drawn, values, m)
        ends = list[Array]()
        for i in cohort:
            y, seen = x, list[float]()
            for key in keys(t, i):
                seen.append(loss(i, y, key))
                y = y - rate_at(eta_l, t) * gradient(i, y, key)
            table[i] = float(np.mean(seen))
            ends.append(y)
        x = server.step(x, x - mean(ends))
        past.append(x)
        cohorts.append(cohort)
    return past, cohorts


def ocs(u: Array, m: float) -> Array:
    """Exact optimal client sampling (Chen, Horvath, Richtarik, TMLR 2022, arXiv 2010.13723), Eq. 7.

    u_i = |w_i D_i|, sorted upwards; l is the largest integer with 0 < m + l - N <= sum_{i<=l} u_(i)/u_(l).
    Then p_(i) = (m + l - N) u_(i) / sum_{j<=l} u_(j) for i <= l, and 1 for the others. Not checked: the
    code has AOCS alone.
    """
    N, order = len(u), np.argsort(u, kind="stable")
    ranked = u[order]
    fitting = [
        k
        for k in range(1, N + 1)
        if m + k - N > 0
        and ranked[k - 1] > 0
        and (m + k - N) * ranked[k - 1] <= ranked[:k].sum() * (1 + 1e-12)
    ]
    if not fitting:
        return np.ones(N)
    k = fitting[-1]
    p = np.ones(N)
    p[order[:k]] = (m + k - N) * ranked[:k] / ranked[:k].sum()
    return p


def aocs(u: Array, m: float, j_max: int = 4) -> Array:
    """AOCS (same paper, Algorithm 2), of which only sums leave a client.

    p_i = min(1, m u_i/sum u); up to j_max times: I = number of p_i < 1, P = their sum, c = (m - N + I)/P,
    p_i = min(1, c p_i); stop once c <= 1. Checked in SamuelHorvath/FL-optimal-client-sampling@baa73e8
    (simple_fedavg_tff.py; u_i = |D_i| times the number of samples). c is never below 1, so it is harmless
    that the code rescales p_i = 1, too. With P = 0 (all at 1, or the rest at 0) we stop, where the code
    divides by 0.
    """
    N, p = len(u), np.minimum(1.0, m * u / u.sum())
    for _ in range(j_max):
        below = p < 1
        if p[below].sum() == 0:
            break
        c = (m - N + below.sum()) / p[below].sum()
        p = np.minimum(1.0, c * p)
        if c <= 1:
            break
    return p


def sampled_mean(deltas: Sequence[Array], weights: Sequence[float], p: Array, sends: Sequence[bool]) -> Array:
    """D = sum over senders of w_i D_i/p_i, whose mean over draws is sum_i w_i D_i."""
    total = np.zeros_like(deltas[0])
    for delta, w, chance, sent in zip(deltas, weights, p, sends, strict=True):
        if sent:
            total = total + w * delta / chance
    return total


def optimal(
    x: Array,
    cohorts: Cohorts,
    gradient: Gradient,
    keys: Keys,
    eta_l: Rate,
    m: float,
    uniform: Callable[[int, int], float],
    exact: bool,
    j_max: int = 4,
    server: Server | None = None,
) -> tuple[list[Array], list[Array], list[list[int]]]:
    """All of a cohort train, w_i = 1/N; i sends if ``uniform(t, i)`` < p_i. Models, chances and senders."""
    server = server or Server()
    past, chances, senders = [x], list[Array](), list[list[int]]()
    for t, cohort in enumerate(cohorts, 1):
        deltas = [x - local_sgd(x, gradient, i, keys(t, i), rate_at(eta_l, t)) for i in cohort]
        weights = [1 / len(cohort)] * len(cohort)
        u = np.array([w * np.linalg.norm(delta) for w, delta in zip(weights, deltas, strict=True)])
        p = ocs(u, m) if exact else aocs(u, m, j_max)
        sends = [uniform(t, i) < chance for i, chance in zip(cohort, p, strict=True)]
        x = server.step(x, sampled_mean(deltas, weights, p, sends))
        past.append(x)
        chances.append(p)
        senders.append([i for i, sent in zip(cohort, sends, strict=True) if sent])
    return past, chances, senders


def active_chances(v: Array, alpha1: float, alpha2: float) -> Array:
    """Active FL's chances: 0 for the floor(alpha1 n) smallest values, proportional to exp(alpha2 v) else.

    Unseen clients have v = -inf, so chance 0. Of equal values the earlier clients count as smaller.
    """
    out = np.argsort(v, kind="stable")[: int(alpha1 * len(v))]
    seen, raw = np.isfinite(v), np.zeros(len(v))
    raw[seen] = np.exp(alpha2 * (v[seen] - v[seen].max(initial=-np.inf)))
    raw[out] = 0.0
    return raw / raw.sum() if raw.sum() > 0 else raw


class ActiveRun(NamedTuple):
    """Models, cohorts, and the values v after the last round."""

    past: list[Array]
    cohorts: list[list[int]]
    values: Array


def active(
    x: Array,
    rounds: int,
    sizes: Sequence[int],
    loss: Callable[[int, Array], float],
    gradient: Gradient,
    keys: Keys,
    eta_l: Rate,
    m: int,
    weighted: Callable[[int, Array, int], Sequence[int]],
    uniform: Callable[[int, Sequence[int], int], Sequence[int]],
    alpha: tuple[float, float, float] = (0.75, 0.01, 0.1),
    server: Server | None = None,
) -> ActiveRun:
    """Active FL (Goetz et al. 2019, arXiv 1909.12641), Algorithm 1.

    v_i = sum of losses/sqrt(n_i) = sqrt(n_i) times the mean loss of client i on its data at the model that
    it last received; ``loss`` is the mean. floor((1-alpha3) m) are drawn by ``weighted(t, chances, k)``
    without replacement, as far as chances are positive, the rest by ``uniform(t, others, k)``. Values are
    -inf before a client's first round.

    Checked in facebookresearch/FLSim@82b7fb3 (the authors' lab, ``HighLossActiveUserSelector`` with
    count_normalization_exponent 1/2: the sum of losses, at the model before training). It differs there:
    values of all clients are measured before round 1, floor(alpha3 m) are uniform and the others weighted.
    TL-System/plato@60d6779a divides the *mean* loss by sqrt(n_i), overwrites the smallest values by -inf
    until a client trains again, as the supplement of power-of-choice does, and adds .01 to every chance.
    The constants are the paper's, as in both.
    """
    server = server or Server()
    v = np.full(len(sizes), -np.inf)
    past, cohorts = [x], list[list[int]]()
    for t in range(1, rounds + 1):
        chances = active_chances(v, alpha[0], alpha[1])
        k = min(int((1 - alpha[2]) * m), int((chances > 0).sum()))
        chosen = list(weighted(t, chances, k)) if k else []
        others = [i for i in range(len(sizes)) if i not in chosen]
        cohort = [*chosen, *uniform(t, others, m - k)]
        for i in cohort:
            v[i] = np.sqrt(sizes[i]) * loss(i, x)
        ends = [local_sgd(x, gradient, i, keys(t, i), rate_at(eta_l, t)) for i in cohort]
        x = server.step(x, x - mean(ends))
        past.append(x)
        cohorts.append(cohort)
    return ActiveRun(past, cohorts, v)


def fedcs(
    candidates: Sequence[int],
    update: Sequence[float],
    upload: Sequence[float],
    deadline: float,
    overhead: float = 0.0,
    distribute: Callable[[Sequence[int]], float] = lambda clients: 0.0,
) -> list[int]:
    """FedCS (Nishio & Yonetani, ICC 2019, arXiv 1804.08333), Algorithm 3: as many as fit before the deadline.

    Uploads come one after another; Theta is when the last one ends. Repeatedly the candidate that adds
    least time, T(S + k) - T(S) + upload_k + max(0, update_k - Theta), is taken out; it joins S if overhead
    (T_cs + T_agg) + T(S + k) + Theta' < deadline, Theta' = Theta + upload_k + max(0, update_k - Theta). One
    that does not fit is skipped, others are still tried. ``distribute`` is T, the time to send the model to
    S. Checked in jsincn/SelecEval@a606770 (selection/fedcs.py, not the authors' code). Of equal ones the
    first.
    """
    left, chosen, theta = list(candidates), list[int](), 0.0
    while left:
        base = distribute(chosen)
        costs = [distribute([*chosen, k]) - base + upload[k] + max(0.0, update[k] - theta) for k in left]
        best = left.pop(int(np.argmin(costs)))
        ends = theta + upload[best] + max(0.0, update[best] - theta)
        if overhead + distribute([*chosen, best]) + ends < deadline:
            chosen, theta = [*chosen, best], ends
    return chosen


def cyclic(permutation: Sequence[int], groups: int, t: int) -> list[int]:
    """The group that is present in round t, one after another (RickZack/GHBM@41da4a9, client_sampler.py)."""
    return [int(i) for i in np.array_split(np.array(permutation), groups)[(t - 1) % groups]]
