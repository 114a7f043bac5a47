"""FedAMS (Wang 2022), option 1: the largest second moment so far, held above epsilon."""

from dataclasses import dataclass

from torch import Tensor, full_like, maximum, zeros_like

from fedgm.server.adaptive import Forgetting
from fedgm.server.rule import Hyper, State


@dataclass(frozen=True)
class FedAMS(Forgetting):
    """``vmax = max(vmax, v, tau);  x -= eta d / sqrt(vmax)``, v_0 = 0: nothing is added to the root.

    ``tau`` is its paper's epsilon. It bounds v itself here, so steps are at most eta d / sqrt(tau).
    Option 2, which adds epsilon to the root, is :class:`~fedgm.server.fedamsgrad.FedAMSGrad`.
    """

    def init(self, x: Tensor) -> State:
        """v_0 = 0; the maximum with tau is taken at once."""
        return {"d": zeros_like(x), "v": zeros_like(x), "vmax": full_like(x, self.tau)}

    def step(self, x: Tensor, state: State, delta: Tensor, hyper: Hyper) -> tuple[Tensor, State]:
        """One server round."""
        d = self.first_moment(state["d"], delta)
        v = self.second_moment(state["v"], delta)
        vmax = maximum(state["vmax"], v)  # vmax_0 = tau, so tau is in every later maximum
        return x - hyper["eta"] * d / vmax.sqrt(), {"d": d, "v": v, "vmax": vmax}
