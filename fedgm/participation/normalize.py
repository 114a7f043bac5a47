"""Weights that make up for uneven local work: a client that made more steps has a larger delta."""

from collections.abc import Callable, Sequence
from typing import Literal

Normalize = Literal["reference", "none", "steps", "epochs", "fednova"]
Rule = Callable[[Sequence[int], Sequence[int], int], list[float]]

# Of (epochs of each client, steps K of each client, local.epochs).
RULES: dict[Normalize, Rule] = {
    "reference": lambda epochs, steps, reference: [reference / e for e in epochs],
    "none": lambda epochs, steps, reference: [1.0] * len(epochs),
    "steps": lambda epochs, steps, reference: [1 / k for k in steps],
    "epochs": lambda epochs, steps, reference: [1 / e for e in epochs],
    "fednova": lambda epochs, steps, reference: [sum(steps) / len(steps) / k for k in steps],
}

NEEDS_UNIFORM_MEAN: tuple[Normalize, ...] = (
    "fednova",
)  # its factors are written for clients.weights=uniform


def weights(how: Normalize, epochs: Sequence[int], steps: Sequence[int], reference: int) -> list[float]:
    """Factor of each client's delta; ``epochs`` and ``steps`` (K_i) are positive.

    ``reference`` is K_ref,i / K_i, K_ref,i being what *this* client does in ``reference`` epochs: exactly 1.0
    when the two are equal, so that Alg. 4 without delay is Alg. 3 bit for bit. ``steps`` is Alg. 4 as
    printed, delta / K_i. ``fednova`` is mean_j K_j / K_i: every client counts alike, and the mean step keeps
    its length.
    """
    return RULES[how](epochs, steps, reference)
