"""How large eta may be before the mean of Alg. 4 grows: a linear model of delay, local work and momentum.

In a direction of curvature lambda, with the minimum at 0, an epoch of k local steps multiplies a client's x
by q = (1 - eta_l lambda)^k: near 1 where f is flat, 0 where it is steep. A client that starts from x_{t-tau}
and trains for e epochs returns q^e x_{t-tau}, so its delta is

    (1 - q^e) x_{t-tau}         measured from where it started (``anchor: start``)
    x_t - q^e x_{t-tau}         measured from the current model (``anchor: current``)

tau is uniform in 0..delay-1, e uniform in its range, and w_e normalises uneven work. Their mean is
D_t = sum_tau a_tau x_{t-tau}, to which the server applies Eq. 2. tau and e are drawn independently of x, so
E x_t follows exactly this recursion; noise and the clients' differences add to x_t without changing it.
It is stable in a direction if the matrix that takes (x_t, ..., x_{t-delay+1}, d_t) one round further has all
its eigenvalues inside the unit circle.

    python -m fedgm.theory.stability        # the tables of docs/momentum.md
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedgm.participation.local_work import Normalize, weights
from fedgm.participation.task import Anchor
from fedgm.server import Momentum, server_step

Array = NDArray[np.float64]

# From steep to nearly flat. At q = 1 there is no curvature, hence nothing to be stable about.
DIRECTIONS = np.concatenate([[0.0], np.linspace(0.05, 0.95, 19), [0.99, 0.999]])
LARGEST = 20.0  # etas above it are not looked at


@dataclass(frozen=True)
class Reading:
    """How a delta comes about; the defaults are the synchronous Alg. 3 with 3 local epochs."""

    name: str
    delay: int = 1
    epochs: tuple[int, int] = (3, 3)
    normalize: Normalize = "none"
    anchor: Anchor = "start"
    reference: int = 3


IDEAL = Reading("ideal")
READINGS = (
    IDEAL,
    Reading("delay 5, start", 5, (1, 6), "reference"),
    Reading("delay 5, literal", 5, (1, 6), "none"),
    Reading("delay 5, current", 5, (1, 6), "none", "current"),
    Reading("delay 10, start", 10, (1, 6), "reference"),
    Reading("delay 10, literal", 10, (1, 6), "none"),
    Reading("delay 10, current", 10, (1, 6), "none", "current"),
)


def response(reading: Reading, q: float) -> Array:
    """a_0 .. a_{delay-1} of D_t = sum_tau a_tau x_{t-tau}, the mean delta in a direction.

    >>> response(IDEAL, 0.5)  # 1 - 0.5^3
    array([0.875])
    >>> response(Reading("two models to start from", delay=2), 0.5)
    array([0.4375, 0.4375])
    """
    low, high = reading.epochs
    epochs = list(range(low, high + 1))
    w = np.array(weights(reading.normalize, epochs, epochs, reading.reference))
    kept = np.array([q**e for e in epochs])
    if reading.anchor == "start":
        return np.full(reading.delay, float(np.mean(w * (1 - kept))) / reading.delay)
    a = np.full(reading.delay, -float(np.mean(w * kept)) / reading.delay)
    a[0] += w.mean()
    return a


def transition(a: Array, m: Momentum) -> Array:
    """One round (Eq. 2) as a matrix on (x_t, ..., x_{t-delay+1}, d_t): the images of the unit vectors.

    >>> transition(response(IDEAL, 0.5), Momentum(eta=1.0, beta=0.0, nu=0.0))
    array([[0.125, 0.   ],
           [0.875, 0.   ]])
    """
    unit = np.eye(len(a) + 1)
    past, d = unit[:-1], unit[-1]
    x, d = server_step(past[0], d, a @ past, m)
    return np.stack([x, *past[:-1], d])


def radius(reading: Reading, m: Momentum) -> float:
    """The largest |eigenvalue| over all directions; below 1 the mean of every run shrinks.

    >>> delayed = Reading("delay 5, start", 5, (1, 6), "reference")
    >>> radius(delayed, Momentum(eta=0.5, beta=0.0, nu=0.0)) < 1
    True
    >>> radius(delayed, Momentum(eta=5.0, beta=0.0, nu=0.0)) < 1
    False
    """
    matrices = np.stack([transition(response(reading, float(q)), m) for q in DIRECTIONS])
    return float(np.abs(np.linalg.eigvals(matrices)).max())


def largest_eta(reading: Reading, beta: float, nu: float, step: float = 0.1) -> float:
    """The eta up to which all are stable, to 1e-6; ``LARGEST`` where all that are looked at are.

    >>> round(largest_eta(IDEAL, beta=0.0, nu=0.0), 2)
    2.0
    >>> round(largest_eta(Reading("delay 5, start", 5, (1, 6), "reference"), 0.0, 0.0), 2)
    0.78
    """
    low = 0.0
    while low < LARGEST and radius(reading, Momentum(low + step, beta, nu)) < 1:
        low += step
    if low >= LARGEST:
        return LARGEST
    high = low + step
    while high - low > 1e-6:
        middle = (low + high) / 2
        low, high = (middle, high) if radius(reading, Momentum(middle, beta, nu)) < 1 else (low, middle)
    return high


def effective_eta(reading: Reading, eta: float) -> float:
    """The rate at which ideal clients move as fast as these in a flat direction, whatever beta and nu are.

    An epoch takes every client g further there, so x_t = x_0 - v t after a while, and d and h are D. Measured
    from its start, a delta is w_e e g. Measured from x_t = x_{t-tau} - v tau it is w_e (e g - v tau): the
    older a client's model, the more it pulls back. With v = eta E[D], and eta' reference g for ideal clients,

        eta' = eta E[w_e e] / reference             (``anchor: start``)
        eta' = ... / (1 + eta E[w_e] E[tau])        (``anchor: current``)

    so that under ``current`` no eta moves the model by more than 1 / E[tau] of a mean delta a round.

    >>> round(effective_eta(Reading("delay 5, current", 5, (1, 6), "none", "current"), eta=2.0), 3)
    0.467
    """
    low, high = reading.epochs
    epochs = list(range(low, high + 1))
    w = np.array(weights(reading.normalize, epochs, epochs, reading.reference))
    ideal = eta * float(np.mean(w * epochs)) / reading.reference
    pull = eta * float(w.mean()) * (reading.delay - 1) / 2
    return ideal / (1 + pull) if reading.anchor == "current" else ideal


def main() -> None:
    """Print the tables as markdown: all readings, then the paper's grid under start."""
    print("| reading | FedAvg | FedGM (.9, .9) |\n|---|---|---|")
    for reading in READINGS:
        avg, gm = largest_eta(reading, 0.0, 0.0), largest_eta(reading, 0.9, 0.9)
        print(f"| {reading.name} | {avg:.2f} | {gm:.2f} |")
    print("\n| delay 5, delay 10 | ν = 0.7 | ν = 0.9 | ν = 0.95 |\n|---|---|---|---|")
    printed = [reading for reading in READINGS if reading.normalize == "reference"]
    for beta in (0.7, 0.9, 0.95):
        cells = [", ".join(f"{largest_eta(r, beta, nu):.2f}" for r in printed) for nu in (0.7, 0.9, 0.95)]
        print(f"| β = {beta} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
