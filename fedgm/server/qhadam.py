"""QHAdam (Ma and Yarats 2019) at the server."""

from dataclasses import dataclass
from math import isfinite

from torch import Tensor

from fedgm.errors import require
from fedgm.server.adaptive import Forgetting
from fedgm.server.rule import Hyper, State


@dataclass(frozen=True)
class QHAdam(Forgetting):
    """Adam with FedGM's discount on both moments.

    ``x -= eta ((1-nu1) D + nu1 d) / (sqrt((1-nu2) D^2 + nu2 v) + tau)``; nu1 = nu2 = 1 is FedAdam.
    """

    nu1: float
    nu2: float

    def __post_init__(self) -> None:
        super().__post_init__()
        require(isfinite(self.nu1), "algorithm.nu1", self.nu1, "a finite number", "algorithm.nu1=0.7")
        require(
            0 <= self.nu2 <= 1,
            "algorithm.nu2",
            self.nu2,
            "0 <= nu2 <= 1, or roots turn negative",
            "algorithm.nu2=1.0",
        )

    def step(self, x: Tensor, state: State, delta: Tensor, hyper: Hyper) -> tuple[Tensor, State]:
        """One server round."""
        d = self.first_moment(state["d"], delta)
        v = self.second_moment(state["v"], delta)
        numerator = (1 - self.nu1) * delta + self.nu1 * d
        denominator = ((1 - self.nu2) * delta.square() + self.nu2 * v).sqrt() + self.tau
        return x - hyper["eta"] * numerator / denominator, {"d": d, "v": v}
