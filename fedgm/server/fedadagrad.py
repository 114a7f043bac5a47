"""FedAdagrad (Reddi 2021)."""

from dataclasses import dataclass

from torch import Tensor

from fedgm.server.adaptive import Adaptive


@dataclass(frozen=True)
class FedAdagrad(Adaptive):
    """``v += D^2``: steps only ever shrink."""

    def second_moment(self, v: Tensor, delta: Tensor) -> Tensor:
        """The sum of squares."""
        return v + delta.square()
