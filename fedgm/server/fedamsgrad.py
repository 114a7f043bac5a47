"""FedAMSGrad: option 2 of FedAMS (Wang 2022)."""

from dataclasses import dataclass

from torch import Tensor, maximum

from fedgm.server.adaptive import Forgetting
from fedgm.server.rule import Hyper, State


@dataclass(frozen=True)
class FedAMSGrad(Forgetting):
    """FedAdam's moments, divided by the largest v so far: ``x -= eta d / (sqrt(vmax) + tau)``."""

    def init(self, x: Tensor) -> State:
        """vmax starts at v_0."""
        state = super().init(x)
        return {**state, "vmax": state["v"].clone()}

    def step(self, x: Tensor, state: State, delta: Tensor, hyper: Hyper) -> tuple[Tensor, State]:
        """One server round."""
        d = self.first_moment(state["d"], delta)
        v = self.second_moment(state["v"], delta)
        vmax = maximum(state["vmax"], v)
        return x - hyper["eta"] * d / (vmax.sqrt() + self.tau), {"d": d, "v": v, "vmax": vmax}
