"""How much an old update still counts: s(tau) of FedAsync and FedBuff."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from fedgm.errors import require

Kind = Literal["none", "polynomial", "hinge"]


@dataclass(frozen=True)
class Discount:
    """s(tau), with s(0) = 1 and never increasing.

    ``none`` is 1; ``polynomial`` is (1 + tau)^-exponent (FedBuff: exponent 1/2); ``hinge`` is 1 up to
    tau = b, then 1 / (a (tau - b) + 1).
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
