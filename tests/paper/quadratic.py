"""A federated quadratic whose L, sigma_l, sigma_g and f* are known, to hold the theorems against.

f_i(x) = 1/2 (x - b_i)' A (x - b_i) with one diagonal A for all clients, so that
grad f_i(x) - grad f(x) = -A (b_i - mean b) is the same at every x, and sigma_g is exact.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from fedgm.draws import generator
from fedgm.errors import require
from fedgm.server import Momentum, server_step
from fedgm.theory.setting import Problem, Setting

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Quadratic:
    """``a``: diagonal of A; ``b``: the clients' minima (n, dim); ``sigma_l``^2: E||noise||^2 of a step."""

    a: Array
    b: Array
    sigma_l: float

    @cached_property
    def minimum(self) -> Array:
        """Where f takes f*."""
        return self.b.mean(axis=0)

    def gradient(self, x: Array) -> Array:
        """grad f(x)."""
        return self.a * (x - self.minimum)

    def problem(self, x0: Array) -> Problem:
        """The exact constants, and f(x0) - f* = 1/2 (x0 - x*)' A (x0 - x*)."""
        spread = self.a * (self.b - self.minimum)
        squares = (spread**2).sum(axis=1)
        sigma_g, sigma_max = float(np.sqrt(squares.mean())), float(np.sqrt(squares.max()))
        excess = float(0.5 * (self.a * (x0 - self.minimum) ** 2).sum())
        return Problem(float(self.a.max()), self.sigma_l, sigma_g, excess, sigma_max)


def make_quadratic(n: int, dim: int, L: float, sigma_l: float, sigma_g: float, seed: int) -> Quadratic:
    """Curvatures from L/10 to L, and minima in opposite pairs about 0.

    Every single client then differs from f by exactly sigma_g, as the corollary needs: where
    arrival is not uniform, a bound on the clients' mean says nothing of those that do arrive.
    """
    require(n % 2 == 0, "n", n, "an even number, as the minima come in pairs", f"n={n + 1}")
    a = np.linspace(L / 10, L, dim) if dim > 1 else np.array([L])
    way = generator(seed, "quadratic").normal(size=(n // 2, dim))
    half = sigma_g * way / np.linalg.norm(way, axis=1, keepdims=True) / a
    return Quadratic(a, np.concatenate([half, -half]), sigma_l)


def simulate(quadratic: Quadratic, setting: Setting, x0: Array, seed: int) -> float:
    """Gbar of Multistage FedGM (Alg. 3): K steps each, m of n clients, uniformly without replacement."""
    return _run(quadratic, setting, x0, seed, None, autonomous=False)


def simulate_autonomous(
    quadratic: Quadratic, setting: Setting, x0: Array, seed: int, arrival: Sequence[float] | None = None
) -> float:
    """Gbar of Autonomous FedGM (Alg. 4): K from ``K_law``, updates divided by K, delay uniform in 0..tau.

    ``arrival`` gives each client's chance to be among the m that arrive; uniform by default.
    """
    return _run(quadratic, setting, x0, seed, arrival, autonomous=True)


def _run(
    q: Quadratic, setting: Setting, x0: Array, seed: int, arrival: Sequence[float] | None, autonomous: bool
) -> float:
    """The mean over stages of the stage mean of ||grad f(x_t)||^2, x_t taken before its round."""
    past, d, t, means = [x0], np.zeros_like(x0), 0, list[float]()
    chances = None if arrival is None else np.asarray(arrival, dtype=np.float64) / sum(arrival)
    law = setting.K_law if autonomous and setting.K_law else [(setting.K, 1.0)]
    counts, edges = np.array([K for K, _ in law]), np.cumsum([p for _, p in law])[:-1]
    rng = generator(seed, "simulate")
    for T, eta, beta, nu in setting.stages:
        squares = 0.0
        for _ in range(T):
            squares += float((q.gradient(past[-1]) ** 2).sum())
            cohort = rng.choice(setting.n, setting.m, replace=False, p=chances)
            age = rng.integers(0, (min(setting.tau, t) if autonomous else 0) + 1, setting.m)
            steps = counts[np.searchsorted(edges, rng.random(setting.m), side="right")]
            start = np.array([past[-1 - tau] for tau in age.tolist()])
            deltas = _local(q, start, cohort, steps, setting.eta_l, rng)
            D = (deltas / steps[:, None] if autonomous else deltas).mean(axis=0)
            x, d = server_step(past[-1], d, D, Momentum(eta, beta, nu))
            past = [*past[-setting.tau :], x] if setting.tau else [x]
            t += 1
        means.append(squares / T)
    return float(np.mean(means))


def _local(
    q: Quadratic,
    start: Array,
    cohort: NDArray[np.int64],
    steps: NDArray[np.int64],
    eta_l: float,
    rng: np.random.Generator,
) -> Array:
    """LocalOPT (Alg. 2) of the whole cohort at once; a client that has made its steps stands still."""
    x, scale = start.copy(), q.sigma_l / np.sqrt(start.shape[1])
    noise = scale * rng.normal(size=(int(steps.max()), *start.shape))
    for k in range(int(steps.max())):
        g = q.a * (x - q.b[cohort]) + noise[k]
        x -= eta_l * g * (k < steps)[:, None]
    return start - x
