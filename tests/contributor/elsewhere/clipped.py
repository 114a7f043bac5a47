"""A server rule with a column of its own: FedAvg whose step has a largest length."""

from dataclasses import dataclass
from math import nan

from torch import Tensor

from fedgm.errors import require
from fedgm.server.rule import Hyper, State


@dataclass(frozen=True)
class Clipped:
    """x -= eta min(1, limit/|D|) D."""

    eta: float
    limit: float

    def __post_init__(self) -> None:
        require(self.limit > 0, "algorithm.limit", self.limit, "a positive number", "algorithm.limit=0.1")

    @property
    def hyper(self) -> Hyper:
        return {"eta": self.eta}

    def follow(self, eta: float, first: float) -> Hyper:
        return {"eta": eta}

    def gain(self, hyper: Hyper) -> float:
        return nan  # it depends on D

    def init(self, x: Tensor) -> State:
        return {"length": x.new_zeros(())}

    def step(self, x: Tensor, state: State, delta: Tensor, hyper: Hyper) -> tuple[Tensor, State]:
        length = delta.norm()
        return x - hyper["eta"] * min(1.0, self.limit / length.item()) * delta, {"length": length}

    def log(self, state: State, hyper: Hyper) -> dict[str, float]:
        return {"clipped": max(0.0, 1 - self.limit / state["length"].item())}
