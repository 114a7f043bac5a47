"""How much a client works, and how much its update counts for it: epochs, normalisation, age."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal

from fedgm.draws import generator
from fedgm.errors import require
from fedgm.participation.task import Effective

KEY = "participation.epochs"


def epoch_range(epochs: Sequence[int]) -> tuple[int, int]:
    """The range as (low, high), or the error that says what to type.

    >>> epoch_range([1, 6])
    (1, 6)
    """
    allowed = "two whole numbers [low, high] with 0 <= low <= high and high >= 1"
    ok = len(epochs) == 2 and 0 <= epochs[0] <= epochs[1] >= 1
    require(ok, KEY, list(epochs), allowed, f"{KEY}=[1,6]")
    return epochs[0], epochs[1]


def draw_epochs(bounds: tuple[int, int], seed: int, t: int, client: int, attempt: int = 0) -> int:
    """Local epochs of ``client`` in round ``t``; a later ``attempt`` is a further draw of the same stream.

    >>> draw_epochs((3, 3), seed=0, t=1, client=7)
    3
    >>> draw_epochs((1, 6), seed=0, t=1, client=7) == draw_epochs((1, 6), seed=0, t=1, client=7)
    True
    """
    low, high = bounds
    if low == high:
        return low
    return int(generator(seed, "epochs", t, client).integers(low, high + 1, size=attempt + 1)[-1])


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

NEEDS_UNIFORM_MEAN: tuple[Normalize, ...] = ("fednova",)  # written for clients.weights=uniform


@cache
def effective_steps(steps: int, momentum: float = 0.0, pull: float = 0.0) -> float:
    """FedNova's |a_i|_1: how far ``steps`` local steps go, in units of eta_l times a gradient.

    Entry j of a_i is how much of a gradient is in the delta j steps later. Local momentum rho (as torch has
    it) gives (1 - rho^j) / (1 - rho); FedProx, with ``pull`` = eta_l mu, gives (1 - pull)^(j-1). One
    recursion has both, and plain SGD with entries 1 and sum K.

    >>> effective_steps(3), effective_steps(3, momentum=0.5)  # 1 + 1 + 1, 1 + 1.5 + 1.75
    (3.0, 4.25)
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

    >>> weights("reference", epochs=[1, 3, 6], steps=[10, 30, 60], reference=3)
    [3.0, 1.0, 0.5]
    >>> weights("fednova", epochs=[1, 3], steps=[10, 30], reference=3)
    [2.0, 0.6666666666666666]
    """
    return RULES[how](epochs, steps, reference, [effective(k) for k in steps] if how == "fednova" else [])


Kind = Literal["none", "polynomial", "hinge"]


@dataclass(frozen=True)
class Discount:
    """s(tau), with s(0) = 1 and never increasing.

    ``none`` is 1; ``polynomial`` is (1 + tau)^-exponent (FedBuff: exponent 1/2); ``hinge`` is 1 up to
    tau = b, then 1 / (a (tau - b) + 1).

    >>> [Discount("polynomial", exponent=0.5)(tau) for tau in (0, 3)]
    [1.0, 0.5]
    """

    kind: Kind = "none"
    exponent: float = 0.5
    hinge_a: float = 10.0
    hinge_b: float = 4.0

    def __post_init__(self) -> None:
        for name in ("exponent", "hinge_a", "hinge_b"):
            key, value = f"participation.{name}", getattr(self, name)
            require(value >= 0, key, value, "at least 0", f"{key}={type(self).__dict__[name]}")

    def __call__(self, tau: int) -> float:
        """Weight of an update that is ``tau`` rounds old."""
        formulas: dict[Kind, Callable[[int], float]] = {
            "none": lambda tau: 1.0,
            "polynomial": lambda tau: (1 + tau) ** -self.exponent,
            "hinge": lambda tau: 1 / (self.hinge_a * max(tau - self.hinge_b, 0) + 1),
        }
        return formulas[self.kind](tau)
