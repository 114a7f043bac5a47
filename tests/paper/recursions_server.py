"""Server rules, each as its paper has it, on the mean update D of a round or on single arrivals."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tests.paper.system_recursions import Array, mean

Delta = Callable[[int, Array], Array]  # D of round t, from x
Arrival = tuple[int, int]  # a client, and the version of the model that it started from (0 is x_0)


class CountSketch(NamedTuple):
    """R rows: entry j of a vector goes to column ``bucket[r, j]`` with sign ``sign[r, j]``."""

    bucket: NDArray[np.int64]
    sign: Array
    columns: int

    def of(self, vector: Array) -> Array:
        """S(g), R x C."""
        table = np.zeros((len(self.bucket), self.columns))
        for row, (bucket, sign) in enumerate(zip(self.bucket, self.sign, strict=True)):
            np.add.at(table[row], bucket, sign * vector)
        return table

    def estimate(self, table: Array) -> Array:
        """The median over rows. CommEfficient's torch.median takes the lower middle of an even R."""
        rows = np.arange(len(self.bucket))[:, None]
        return np.median(self.sign * table[rows, self.bucket], axis=0)


def top_k(vector: Array, k: int) -> Array:
    """The k entries of largest size, the others zero; of equal ones the first."""
    places = np.argsort(-np.abs(vector), kind="stable")[:k]
    sparse = np.zeros_like(vector)
    sparse[places] = vector[places]
    return sparse


def fetchsgd(
    x: Array,
    rounds: int,
    delta: Delta,
    sketch: CountSketch,
    k: int,
    rho: float,
    eta: float,
    rate_on_step: bool = False,
    zero_error: bool = False,
    mask_momentum: bool = False,
) -> list[Array]:
    """FetchSGD (Rothchild et al., ICML 2020, arXiv 2007.07682), Algorithm 1.

        Su = rho Su + S(D);  Se = Se + eta Su;  Delta = TopK(U(Se), k);  Se = Se - S(Delta);  x = x - Delta

    The official code differs in three ways, each a flag: eta multiplies Delta and not Su
    (``rate_on_step``); cells of Se that S(Delta) touches become zero, "this should work but doesn't (model
    diverges)" (``zero_error``); the same cells of Su become zero (``mask_momentum``). Checked in
    kiddyboots216/CommEfficient@833ca44, ``_server_helper_sketched``. There D is the mean over all samples
    of the round, so it weighs clients by their batch. Paper form: from memory, apart from what the code's
    comments say of it.
    """
    su = np.zeros((len(sketch.bucket), sketch.columns))
    se = su.copy()
    past = [x]
    for t in range(1, rounds + 1):
        su = rho * su + sketch.of(delta(t, x))
        se = se + (1.0 if rate_on_step else eta) * su
        step = top_k(sketch.estimate(se), k)
        sent = sketch.of(step)
        se = np.where(sent != 0, 0.0, se) if zero_error else se - sent
        if mask_momentum:
            su = np.where(sent != 0, 0.0, su)
        x = x - (eta if rate_on_step else 1.0) * step
        past.append(x)
    return past


def true_topk(x: Array, rounds: int, delta: Delta, k: int, rho: float, eta: float) -> list[Array]:
    """Top-k of the dense D with error feedback and momentum factor masking: the ceiling of any sketch.

        V = rho V + D;  E = E + V;  Delta = TopK(E, k);  E, V = 0 where Delta is not;  x = x - eta Delta

    Checked in kiddyboots216/CommEfficient@833ca44, ``_server_helper_true_topk``.
    """
    v, e = np.zeros_like(x), np.zeros_like(x)
    past = [x]
    for t in range(1, rounds + 1):
        v = rho * v + delta(t, x)
        e = e + v
        step = top_k(e, k)
        e, v = np.where(step != 0, 0.0, e), np.where(step != 0, 0.0, v)
        x = x - eta * step
        past.append(x)
    return past


def amplified(x: Array, rounds: int, delta: Delta, P: int, eta: float) -> list[Array]:
    """Amplified FedAvg (Wang & Ji, NeurIPS 2022, arXiv 2205.13648), Algorithm 1.

    x -= D in every round; after every P rounds x = x_0 - eta (x_0 - x) and x_0 = x, where x_0 is the model
    P rounds ago. Checked in IBM/fl-arbitrary-participation@759b4c2, ``main.py`` (x += (eta - 1)(x - x_0),
    the same).
    """
    start, past = x, [x]
    for t in range(1, rounds + 1):
        x = x - delta(t, x)
        if t % P == 0:
            x = start + eta * (x - start)
            start = x
        past.append(x)
    return past


def delayed_nesterov(
    x: Array,
    arrivals: Sequence[Arrival],
    delta: Callable[[int, int, Array], Array],
    eps: float,
    beta: float,
    N: int,
    c: float = 0.0,
) -> list[Array]:
    """Delayed Nesterov (Liu et al. 2024, arXiv 2401.09135), Algorithm 3; one step at every arrival g.

        Delta += g
        every N-th arrival:  m = beta m + Delta/N;  x -= eps ((1 - cN + c) beta m + g/N);  Delta = 0
        otherwise:           x -= eps (c beta m + g/N)

    ``arrivals[j] = (client, version it started from)``, versions counted in arrivals; ``delta(j, i,
    start)``, j from 1. Checked in utnslab/halos@4b5bf73, ``src/halos/opt.py`` (not the authors' code;
    theirs is not public).
    """
    m, total = np.zeros_like(x), np.zeros_like(x)
    past = [x]
    for j, (client, version) in enumerate(arrivals, 1):
        g = delta(j, client, past[version])
        total = total + g
        if j % N == 0:
            m = beta * m + total / N
            x = x - eps * ((1 - c * N + c) * beta * m + g / N)
            total = np.zeros_like(x)
        else:
            x = x - eps * (c * beta * m + g / N)
        past.append(x)
    return past


class Approximation(NamedTuple):
    """Models, and of each round the two scalars and the weights that x_0, x_1, ... have in the step."""

    past: list[Array]
    scalars: list[tuple[float, float]]
    weights: list[Array]


def momentum_approximation(
    x: Array,
    arrivals: Sequence[Sequence[Arrival]],
    delta: Callable[[int, int, Array], Array],
    eta: float,
    beta: float,
    nu: float = 1.0,
    target: str = "momentum",
) -> Approximation:
    """Light momentum approximation (Yu et al. 2024, arXiv 2402.09247).

    The updates of round t started from versions of the model with shares w_t (a row of W). Momentum wants the
    weights M_t = (1-beta) (.., beta^2, beta, 1) on versions; of u m + v D the weights are u c_{t-1} + v w_t:

        u, v = argmin |u c_{t-1} + v w_t - M_t|^2;  c_t = u c_{t-1} + v w_t;  m = u m + v D
        x -= eta ((1-nu) D + nu m)

    Of two solutions the one of least norm is taken, so that u = 0 in round 1. Without staleness u = beta
    and v = 1 - beta, so this is Eq. 2. ``target="step"`` approximates (1-nu) e_t + nu M_t itself and steps
    by m: the same at nu = 1. Not checked: the least squares over W and M is in summaries of the paper, the
    light form, the damped M and nu are from memory or ours (the paper has heavy ball alone as far as
    known).
    """
    m, c = np.zeros_like(x), np.zeros(0)
    past, scalars, weights = [x], list[tuple[float, float]](), list[Array]()
    for t, came in enumerate(arrivals, 1):
        D = mean([delta(t, client, past[version]) for client, version in came])
        w = np.zeros(t)
        for _, version in came:
            w[version] += 1 / len(came)
        c = np.append(c, 0.0)
        wanted = (1 - beta) * beta ** np.arange(t - 1.0, -1.0, -1.0)
        if target == "step":
            wanted = nu * wanted + (1 - nu) * np.eye(t)[-1]
        u, v = np.linalg.lstsq(np.stack([c, w], axis=1), wanted, rcond=None)[0]
        c, m = u * c + v * w, u * m + v * D
        x = x - eta * (m if target == "step" else (1 - nu) * D + nu * m)
        past.append(x)
        scalars.append((float(u), float(v)))
        weights.append(c)
    return Approximation(past, scalars, weights)
