"""QHAdam (Ma and Yarats 2019) at the server."""

from dataclasses import dataclass
from math import isfinite

from torch import Tensor, zeros_like

from fedgm.errors import require
from fedgm.server.adaptive import Forgetting
from fedgm.server.rule import Hyper, State


@dataclass(frozen=True)
class QHAdam(Forgetting):
    """Adam with FedGM's discount on both moments.

    ``x -= eta ((1-nu1) D + nu1 d') / (sqrt((1-nu2) D^2 + nu2 v') + tau)``.

    With ``bias_correction``, as in its paper, v_0 = 0, d' = d / (1-beta1^t) and v' = v / (1-beta2^t), so that
    nu1 = nu2 = 1 is Adam. Without it v_0 = tau^2, d' = d and v' = v, so that nu1 = nu2 = 1 is FedAdam.
    """

    nu1: float
    nu2: float
    bias_correction: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        require(isfinite(self.nu1), "algorithm.nu1", self.nu1, "a finite number", "algorithm.nu1=0.7")
        allowed = "0 <= nu2 <= 1, or roots turn negative"
        require(0 <= self.nu2 <= 1, "algorithm.nu2", self.nu2, allowed, "algorithm.nu2=1.0")

    def init(self, x: Tensor) -> State:
        """d_0 = 0; v_0 = 0 and a count of rounds where the moments are corrected."""
        state = super().init(x)
        return {**state, "v": zeros_like(x), "t": x.new_zeros(())} if self.bias_correction else state

    def step(self, x: Tensor, state: State, delta: Tensor, hyper: Hyper) -> tuple[Tensor, State]:
        """One server round."""
        d = self.first_moment(state["d"], delta)
        v = self.second_moment(state["v"], delta)
        count = {"t": state["t"] + 1} if "t" in state else {}
        unbiased_d, unbiased_v = self._corrected(d, v, int(count["t"].item())) if count else (d, v)
        numerator = (1 - self.nu1) * delta + self.nu1 * unbiased_d
        denominator = ((1 - self.nu2) * delta.square() + self.nu2 * unbiased_v).sqrt() + self.tau
        return x - hyper["eta"] * numerator / denominator, {"d": d, "v": v, **count}

    def _corrected(self, d: Tensor, v: Tensor, t: int) -> tuple[Tensor, Tensor]:
        """Both moments as weighted means of the updates so far: zeros at the start do not count."""
        return d / (1 - self.beta1**t), v / (1 - self.beta2**t)
