"""What the adaptive rules of Reddi 2021 share: a damped momentum over a second moment, per coordinate."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from math import inf, nan

from torch import Tensor, full_like, zeros_like

from fedgm.errors import require
from fedgm.server.rule import Hyper, State


@dataclass(frozen=True)
class Adaptive(ABC):
    """``d = beta1 d + (1-beta1) D;  x -= eta d / (sqrt(v) + tau)`` with v_0 = tau^2, no bias correction.

    A rule adds :meth:`second_moment`; schedules change eta alone.
    """

    eta: float
    beta1: float
    tau: float

    def __post_init__(self) -> None:
        require(0 < self.eta < inf, "algorithm.eta", self.eta, "a positive number", "algorithm.eta=0.01")
        require(0 <= self.beta1 < 1, "algorithm.beta1", self.beta1, "0 <= beta1 < 1", "algorithm.beta1=0.9")
        require(0 < self.tau < inf, "algorithm.tau", self.tau, "a positive number", "algorithm.tau=0.001")

    @property
    def hyper(self) -> Hyper:
        """eta, all that a schedule may change."""
        return {"eta": self.eta}

    def follow(self, eta: float, first: float) -> Hyper:
        """The new eta; W1 has no meaning here."""
        return {"eta": eta}

    def gain(self, hyper: Hyper) -> float:
        """Not a number: the first step depends on the size of D."""
        return nan

    def init(self, x: Tensor) -> State:
        """d_0 = 0, v_0 = tau^2."""
        return {"d": zeros_like(x), "v": full_like(x, self.tau**2)}

    def step(self, x: Tensor, state: State, delta: Tensor, hyper: Hyper) -> tuple[Tensor, State]:
        """One server round."""
        d = self.first_moment(state["d"], delta)
        v = self.second_moment(state["v"], delta)
        return x - hyper["eta"] * d / (v.sqrt() + self.tau), {"d": d, "v": v}

    def first_moment(self, d: Tensor, delta: Tensor) -> Tensor:
        """The damped momentum after this update."""
        return self.beta1 * d + (1 - self.beta1) * delta

    @abstractmethod
    def second_moment(self, v: Tensor, delta: Tensor) -> Tensor:
        """v after this update; it must stay non-negative."""


@dataclass(frozen=True)
class Forgetting(Adaptive):
    """An adaptive rule whose second moment forgets at rate beta2, by default as Adam's."""

    beta2: float

    def __post_init__(self) -> None:
        super().__post_init__()
        require(0 <= self.beta2 < 1, "algorithm.beta2", self.beta2, "0 <= beta2 < 1", "algorithm.beta2=0.99")

    def second_moment(self, v: Tensor, delta: Tensor) -> Tensor:
        """A running mean of squares."""
        return self.beta2 * v + (1 - self.beta2) * delta.square()
