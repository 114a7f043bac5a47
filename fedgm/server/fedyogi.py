"""FedYogi (Reddi 2021)."""

from dataclasses import dataclass

from torch import Tensor

from fedgm.server.adaptive import Forgetting


@dataclass(frozen=True)
class FedYogi(Forgetting):
    """``v -= (1-beta2) D^2 sign(v - D^2)``: v moves by D^2 only, so one large v is not forgotten at once."""

    def second_moment(self, v: Tensor, delta: Tensor) -> Tensor:
        """Additive where Adam's is multiplicative."""
        square = delta.square()
        return v - (1 - self.beta2) * square * (v - square).sign()
