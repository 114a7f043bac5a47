"""Systems that keep something for each client (a dual, a model, an update), and Per-FedAvg."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from tests.paper.recursions_server import Arrival
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


class ClientStates(NamedTuple):
    """Models x_0, x_1, ..., and the state of each client at the end."""

    past: list[Array]
    states: list[Array]


def feddyn(
    x: Array, cohorts: Cohorts, gradient: Gradient, keys: Keys, eta_l: Rate, alpha: float, n: int
) -> ClientStates:
    """FedDyn (Acar et al., ICLR 2021, arXiv 2111.04263), Algorithm 1.

        local steps on f_i(w) - <h_i, w> + alpha/2 |w - x|^2;  h_i -= alpha (w - x)
        h -= (alpha/n) sum_{i in S} (w_i - x);  x = mean_S w_i - h/alpha

    h_i and h start at 0. Checked in alpemreacar/FedDyn@48a19fa (official; it keeps -h_i/alpha, divides
    alpha by the client's share of the data times n, and reports the accuracy of mean_S w_i, not of x) and
    woodenchild95/FL-Simulator@502bec6. RickZack/GHBM@41da4a9 has the mean over S where the sum belongs.
    """
    duals, h, past = [np.zeros_like(x) for _ in range(n)], np.zeros_like(x), [x]
    for t, cohort in enumerate(cohorts, 1):
        ends = list[Array]()
        for i in cohort:

            def adjust(w: Array, g: Array, h_i: Array = duals[i], start: Array = x) -> Array:
                return g - h_i + alpha * (w - start)

            ends.append(local_sgd(x, gradient, i, keys(t, i), rate_at(eta_l, t), adjust))
        for i, w in zip(cohort, ends, strict=True):
            duals[i] = duals[i] - alpha * (w - x)
        h = h - alpha / n * np.sum([w - x for w in ends], axis=0)
        x = mean(ends) - h / alpha
        past.append(x)
    return ClientStates(past, duals)


def easgd(
    x: Array,
    cohorts: Cohorts,
    gradient: Gradient,
    keys: Keys,
    eta_l: Rate,
    a: float,
    n: int,
    gradient_first: bool = True,
) -> ClientStates:
    """EASGD (Zhang, Choromanska, LeCun, NeurIPS 2015, arXiv 1412.6651), Algorithm 1 with tau = K.

    In a round each client of the cohort exchanges e_i = a (x_i - x) with the centre, both from values
    before the exchange, and makes K local steps on its own x_i, which it keeps:

        x_i <- x_i - eta_l grad f_i(x_i) - e_i,  then K - 1 plain steps;   x <- x + sum_{i in S} e_i

    The first gradient is taken before the pull of the centre; ``gradient_first=False`` takes it after.
    Clients start at x_0. The centre's step is Eq. 2 with (|S| a, any, 0) on D_i = x - x_i. a = eta_l rho, n
    a = .9 in the paper. Checked in sixin-zh/mpiT@c359666 (authors' code, asyncsgd/optim-eamsgd.lua,
    mlaunch.lua: mva = .9/p).
    """
    local, past = [x.copy() for _ in range(n)], [x]
    for t, cohort in enumerate(cohorts, 1):
        pulls = {i: a * (local[i] - x) for i in cohort}
        for i in cohort:
            first, *rest = keys(t, i)
            y = local[i] if gradient_first else local[i] - pulls[i]
            y = y - rate_at(eta_l, t) * gradient(i, y, first) - (pulls[i] if gradient_first else 0.0)
            local[i] = local_sgd(y, gradient, i, rest, rate_at(eta_l, t))
        x = x + np.sum(list(pulls.values()), axis=0)
        past.append(x)
    return ClientStates(past, local)


def dc_asgd(
    x: Array,
    arrivals: Sequence[Sequence[Arrival]],
    gradient: Gradient,
    keys: Keys,
    eta_l: Rate,
    lambda_0: float,
    n: int,
    adaptive: bool = False,
    decay: float = 0.95,
    epsilon: float = 1e-7,
    per_client: bool = True,
    server: Server | None = None,
) -> ClientStates:
    """DC-ASGD (Zheng et al., ICML 2017, arXiv 1609.08326), Eq. 10, for updates of K local steps.

    With g = D_i/(K eta_l) and s the version that client i started from:

        D_i <- K eta_l (g + lambda g*g*(x - x_s));  x -= mean of the arrived (one at a time in the paper)
        DC-ASGD-c: lambda = lambda_0
        DC-ASGD-a: MS = decay MS + (1-decay) g*g;  lambda = lambda_0/sqrt(MS + epsilon)

    K = 1 is the paper. Checked in Microsoft's Multiverso (updater/dcasgd, "dcasgda_updater.h", both
    variants; its MS is kept for each worker, hence ``per_client``) and apache/mxnet@b84609d3
    (optimizer/dcasgd.py, lambda .04). lambda_0 = 2 for DC-ASGD-a and .04 for DC-ASGD-c.
    """
    server = server or Server()
    squares = [np.zeros_like(x) for _ in range(n if per_client else 1)]
    past = [x]
    for t, came in enumerate(arrivals, 1):
        sent = list[Array]()
        for i, version in came:
            start, scale = past[version], rate_at(eta_l, t) * len(keys(t, i))
            g = (start - local_sgd(start, gradient, i, keys(t, i), rate_at(eta_l, t))) / scale
            factor: Array | float = lambda_0
            if adaptive:
                k = i if per_client else 0
                squares[k] = decay * squares[k] + (1 - decay) * g * g
                factor = lambda_0 / np.sqrt(squares[k] + epsilon)
            sent.append(scale * (g + factor * g * g * (x - start)))
        x = server.step(x, mean(sent))
        past.append(x)
    return ClientStates(past, squares)


def per_fedavg(
    x: Array,
    cohorts: Cohorts,
    gradient: Gradient,
    keys: Keys,
    alpha: float,
    beta: float,
    hessian: float | None = None,
    server: Server | None = None,
) -> list[Array]:
    """Per-FedAvg (Fallah et al., NeurIPS 2020, arXiv 2002.07948), Algorithm 1.

        v = grad f_i(w - alpha grad f_i(w; B1); B2);  w -= beta v                       (FO)
        w -= beta (v - alpha (grad f_i(w + h v; B3) - grad f_i(w - h v; B3))/(2 h))     (HF, h = hessian)

    ``keys(t, i)`` holds a tuple of independent batches for each local step, two of them (FO) or three (HF).
    Checked in CharlieDinh/pFedMe@caf24b1 (userperavg.py, FO), TL-System/plato@60d6779a (FO: the second
    batch comes from a second pass over the same loader) and WwZzz/easyFL@ea07f1d (FO and HF, h = .001).
    """
    server = server or Server()
    past = [x]
    for t, cohort in enumerate(cohorts, 1):
        ends = list[Array]()
        for i in cohort:
            w = x
            for batches in keys(t, i):
                inner, outer, *third = tuple(batches)
                v = gradient(i, w - alpha * gradient(i, w, inner), outer)
                bend: Array | float = 0.0
                if hessian:
                    h = hessian
                    bend = (gradient(i, w + h * v, third[0]) - gradient(i, w - h * v, third[0])) / (2 * h)
                w = w - beta * (v - alpha * bend)
            ends.append(w)
        x = server.step(x, x - mean(ends))
        past.append(x)
    return past


def personal(x: Array, full: Callable[[int, Array], Array], i: int, alpha: float) -> Array:
    """The model on which Per-FedAvg is judged: one step from x on the client's own data."""
    return x - alpha * full(i, x)


def contrast(z: Array, z_glob: Array, z_prev: Array, tau: float) -> tuple[float, Array]:
    """MOON's loss, mean over samples (rows), and its gradient with respect to z."""

    def cosine(b: Array) -> tuple[Array, Array]:
        size, other = np.linalg.norm(z, axis=1, keepdims=True), np.linalg.norm(b, axis=1, keepdims=True)
        similarity = (z * b).sum(axis=1, keepdims=True) / (size * other)
        return similarity, b / (size * other) - similarity * z / size**2

    (positive, up), (negative, down) = cosine(z_glob), cosine(z_prev)
    share = 1 / (1 + np.exp((positive - negative) / tau))  # what softmax gives the negative pair
    loss = np.log1p(np.exp((negative - positive) / tau))
    return float(loss.mean()), share * (down - up) / tau / len(z)


def moon(
    x: Array,
    cohorts: Cohorts,
    gradient: Gradient,
    keys: Keys,
    features: Callable[[int, Array, object], Array],
    pullback: Callable[[int, Array, object, Array], Array],
    eta_l: Rate,
    mu: float,
    tau: float,
    n: int,
    server: Server | None = None,
) -> ClientStates:
    """MOON (Li, He, Song, CVPR 2021, arXiv 2103.16257), Algorithm 1; y_i is the client's last local model.

        loss_i(w) - mu log(p/(p + q)),  p = exp(cos(z, z_glob)/tau),  q = exp(cos(z, z_prev)/tau)

    ``features(i, w, key)`` are the representations z of the batch and ``pullback(i, w, key, dz)`` takes a
    gradient in z to one in w; z_glob is at x_t, z_prev at y_i, neither is differentiated. A client that
    never trained has no second term. Checked in QinbinLi/MOON@8fcba3c (official): z is the output of a
    projection head (two linear layers, 256 wide, between encoder and classifier), not the penultimate
    layer; the pool of last models is empty in round 1, so that the term is 0 there; a client whose first
    round is later contrasts with its random first network. adap/flower@fdef7afb takes x_t as the last model
    then, whose gradient is 0, too. The official code has server momentum in Eq. 2's form (1, b, 1).
    """
    server = server or Server()
    last: list[Array | None] = [None] * n
    past = [x]
    for t, cohort in enumerate(cohorts, 1):
        ends = list[Array]()
        for i in cohort:
            y, before = x, last[i]
            for key in keys(t, i):
                g = gradient(i, y, key)
                if before is not None:
                    views = (features(i, w, key) for w in (y, x, before))
                    g = g + mu * pullback(i, y, key, contrast(*views, tau)[1])
                y = y - rate_at(eta_l, t) * g
            ends.append(y)
            last[i] = y
        x = server.step(x, x - mean(ends))
        past.append(x)
    return ClientStates(past, [np.zeros_like(x) if y is None else y for y in last])


def fedlaavg(
    x: Array, available: Cohorts, m: int, gradient: Gradient, keys: Keys, eta_l: Rate, n: int
) -> tuple[list[Array], list[list[int]]]:
    """FedLaAvg (Yan et al. 2020, arXiv 2002.07399): of those available, the m absent longest train.

    G_i = (x - y_i)/eta_l is kept, 0 at the start; x -= eta_l (1/n) sum_{i=1..n} G_i over all clients, so
    with a constant rate it is MIFA under that selection. Never picked counts as longest; of equals the
    first. Checked in mikudehuane/FedLaAvg@7ffc566 (official: train/server.py ``pick_clients``,
    train/client.py).
    """
    latest, last, past, cohorts = [np.zeros_like(x) for _ in range(n)], [0] * n, [x], list[list[int]]()
    for t, present in enumerate(available, 1):
        cohort = sorted(present, key=lambda i: last[i])[:m]
        for i in cohort:
            latest[i] = (x - local_sgd(x, gradient, i, keys(t, i), rate_at(eta_l, t))) / rate_at(eta_l, t)
            last[i] = t
        x = x - rate_at(eta_l, t) * mean(latest)
        past.append(x)
        cohorts.append(cohort)
    return past, cohorts
