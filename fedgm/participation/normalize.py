"""Weights that make up for uneven local work: a client that made more steps has a larger delta."""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Literal

from fedgm.participation.task import Effective

Normalize = Literal["reference", "none", "steps", "epochs", "fednova"]
Weighing = Callable[[Sequence[int], Sequence[int], int, Sequence[float]], list[float]]

# Of (epochs of each client, steps K of each client, local.epochs, |a|_1 of each client).
RULES: dict[Normalize, Weighing] = {
    "reference": lambda epochs, steps, reference, a: [reference / e for e in epochs],
    "none": lambda epochs, steps, reference, a: [1.0] * len(epochs),
    "steps": lambda epochs, steps, reference, a: [1 / k for k in steps],
    "epochs": lambda epochs, steps, reference, a: [1 / e for e in epochs],
    "fednova": lambda epochs, steps, reference, a: [sum(a) / len(a) / a_i for a_i in a],
}

NEEDS_UNIFORM_MEAN: tuple[Normalize, ...] = (
    "fednova",
)  # its factors are written for clients.weights=uniform


@cache
def effective_steps(steps: int, momentum: float = 0.0, pull: float = 0.0) -> float:
    """FedNova's |a_i|_1: how far ``steps`` local steps go, in units of eta_l times a gradient.

    Entry j of a_i is how much of a gradient is in the delta j steps later. Local momentum rho (as torch has
    it) gives (1 - rho^j) / (1 - rho); FedProx, with ``pull`` = eta_l mu, gives (1 - pull)^(j-1). One
    recursion has both, and plain SGD with entries 1 and sum K.
    """
    moved, speed, total = 0.0, 0.0, 0.0
    for j in range(steps):
        speed = momentum * speed - pull * moved if j else 1.0
        moved += speed
        total += abs(moved)
    return total


def weights(
    how: Normalize,
    epochs: Sequence[int],
    steps: Sequence[int],
    reference: int,
    effective: Effective = float,
) -> list[float]:
    """Factor of each client's delta; ``epochs`` and ``steps`` (K_i) are positive.

    ``reference`` is K_ref,i / K_i, K_ref,i being what *this* client does in ``reference`` epochs: exactly 1.0
    when the two are equal, so that Alg. 4 without delay is Alg. 3 bit for bit. ``steps`` is Alg. 4 as
    printed, delta / K_i. ``fednova`` is mean_j a_j / a_i, with a_i = ``effective`` (K_i):
    every client counts alike, and the mean step keeps its length.
    """
    return RULES[how](epochs, steps, reference, [effective(k) for k in steps])
