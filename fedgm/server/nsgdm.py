"""NSGD-M: normalised SGD with momentum (Cutkosky and Mehta 2020) at the server."""

from dataclasses import dataclass
from math import inf, nan

from torch import Tensor, float64, zeros_like
from torch.linalg import vector_norm

from fedgm.errors import require
from fedgm.server.rule import Hyper, State


@dataclass(frozen=True)
class NormalizedMomentum:
    """``d = (1-beta) D + beta d;  x -= eta d / ||d||``: every step has length eta, whatever D's size."""

    eta: float
    beta: float

    def __post_init__(self) -> None:
        require(0 < self.eta < inf, "algorithm.eta", self.eta, "a positive number", "algorithm.eta=0.5")
        require(0 <= self.beta < 1, "algorithm.beta", self.beta, "0 <= beta < 1", "algorithm.beta=0.9")

    @property
    def hyper(self) -> Hyper:
        """Both may change from round to round."""
        return {"eta": self.eta, "beta": self.beta}

    def follow(self, eta: float, first: float) -> Hyper:
        """The new eta at the same beta; W1 has no meaning here."""
        return {"eta": eta, "beta": self.beta}

    def gain(self, hyper: Hyper) -> float:
        """Not a number: the first step has length eta, not a multiple of D's."""
        return nan

    def init(self, x: Tensor) -> State:
        """d_0 = 0."""
        return {"d": zeros_like(x)}

    def step(self, x: Tensor, state: State, delta: Tensor, hyper: Hyper) -> tuple[Tensor, State]:
        """One server round; d = 0 moves nothing."""
        d = (1 - hyper["beta"]) * delta + hyper["beta"] * state["d"]
        norm = vector_norm(d, dtype=float64).item()
        return x - (hyper["eta"] / norm if norm else 0.0) * d, {"d": d}
