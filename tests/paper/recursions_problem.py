"""Four clients with unequal bowls, whose batches differ by what their keys say."""

import numpy as np

from tests.paper.system_recursions import Array

N, DIM = 4, 3
CURVATURE = np.array([[1.0, 0.5, 2.0], [0.3, 1.5, 0.7], [2.0, 0.2, 1.1], [0.8, 0.9, 0.4]])
MINIMA = np.array([[1.0, -2.0, 0.5], [-1.0, 0.5, 2.0], [0.3, 1.2, -1.5], [2.0, 0.1, 0.9]])
START = np.array([0.4, -0.7, 1.3])
COHORTS = [[0, 1], [2, 3], [1, 2], [0, 3], [3, 1], [2, 0]] * 5  # 30 rounds
ALL = [list(range(N))] * 30
MINIMUM = (CURVATURE * MINIMA).sum(axis=0) / CURVATURE.sum(axis=0)  # of the mean of all losses


def full(i: int, x: Array) -> Array:
    """The gradient on all of a client's data."""
    return CURVATURE[i] * (x - MINIMA[i])


def gradient(i: int, x: Array, key: object) -> Array:
    """On a batch: the curvature differs as well, so that no identity holds by linearity alone."""
    t, k = key
    wave = np.sin(1.0 + 7 * t + 3 * i + 2 * k + np.arange(DIM))
    return full(i, x) + 0.2 * wave + 0.1 * wave * np.sin(x)


def exact(i: int, x: Array, key: object) -> Array:
    """Without any noise."""
    return full(i, x)


def loss(i: int, x: Array) -> float:
    """On all of a client's data."""
    return float(0.5 * (CURVATURE[i] * (x - MINIMA[i]) ** 2).sum())


def keys(K: int):
    """K batches a round."""
    return lambda t, i: [(t, k) for k in range(K)]
