"""How far noise keeps x from the minimum under Eq. 2: the second moments of a linear model.

In one direction, with the minimum at 0, the mean update of round t is

    D_t = sum_tau a_tau x_{t-tau} + xi_t,    E xi_t = 0, E xi_t^2 = 1, independent over rounds

where ``a`` is how clients respond: ``[c]`` for ideal ones that go the share c of the way, or
:func:`fedgm.theory.stability.response` with delay, uneven work and either anchor. One round takes the state
s_t = (x_t, ..., x_{t-delay+1}, d_t) to A s_t + b xi_t, so its second moments follow

    P_{t+1} = A P_t A' + b b'

and the stationary ones solve the discrete Lyapunov equation P = A P A' + b b'. V is their entry of x. For
FedAvg and ideal clients V = eta / (c (2 - eta c)). The model has one direction and noise that does not depend
on x: it compares server rules on one problem, and predicts no accuracy.
"""

from collections.abc import Sequence
from math import inf

import numpy as np
from numpy.typing import NDArray

from fedgm.server import Momentum, server_step
from fedgm.theory.stability import transition

Array = NDArray[np.float64]


def stationary_variance(a: Sequence[float] | Array, m: Momentum) -> float:
    """V: the variance of x in the long run, for noise of variance 1 in D; infinite where Eq. 2 is unstable.

    >>> round(stationary_variance([1.0], Momentum(eta=1.0, beta=0.0, nu=0.0)), 6)  # x_{t+1} = -xi_t
    1.0
    >>> stationary_variance([1.0], Momentum(eta=2.0, beta=0.0, nu=0.0))
    inf
    """
    A, b = transition(np.asarray(a, dtype=np.float64), m), noise_vector(len(a), m)
    if np.abs(np.linalg.eigvals(A)).max() >= 1:
        return inf
    size = len(b)
    moments = np.linalg.solve(np.eye(size * size) - np.kron(A, A), np.outer(b, b).reshape(-1))
    return float(moments[0])


def second_moments(
    a: Sequence[float] | Array, stages: Sequence[tuple[int, Momentum]], start: float = 0.0
) -> Array:
    """E x_t^2 for t = 0 .. T, from x_0 = ``start``, over stages of (rounds, eta beta nu); d is carried over.

    Half of the noise is gone after the drop of a stage that halves eta:

    >>> slow, fast = Momentum(0.1, 0.0, 0.0), Momentum(0.2, 0.0, 0.0)
    >>> moments = second_moments([1.0], [(100, fast), (200, slow)])
    >>> [round(float(moments[t]), 3) for t in (100, 300)]
    [0.111, 0.053]
    """
    response = np.asarray(a, dtype=np.float64)
    second = np.zeros((len(response) + 1, len(response) + 1))  # P_t
    second[:-1, :-1] = start**2  # before round 1 every past model is x_0
    moments = [second[0, 0]]
    for rounds, m in stages:
        A, b = transition(response, m), noise_vector(len(response), m)
        for _ in range(rounds):
            second = A @ second @ A.T + np.outer(b, b)
            moments.append(second[0, 0])
    return np.array(moments)


def lag(m: Momentum) -> float:
    """How many rounds old the updates in h are on average: beta nu / (1 - beta).

    h weighs D of k rounds ago with nu (1 - beta) beta^k, and the newest with 1 - nu more.

    >>> round(lag(Momentum(eta=1.0, beta=0.9, nu=0.5)), 6)
    4.5
    """
    return m.beta * m.nu / (1 - m.beta)


def noise_vector(delay: int, m: Momentum) -> Array:
    """b: what one unit of noise in D does to (x, past models, d) in its round."""
    x, d = server_step(0.0, 0.0, 1.0, m)
    return np.array([x, *np.zeros(delay - 1), d])
