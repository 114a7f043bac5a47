"""A learning rate for each client: scaling the gradient of plain SGD is scaling its rate."""

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from fedgm.client.rules import Adjust, Local, Plain
from fedgm.errors import require


@dataclass(frozen=True)
class OwnRates(Plain):
    """eta_l of client i is ``factors[i mod len(factors)]`` times local.lr."""

    factors: Sequence[float]
    needs_plain_sgd = True
    changes_gradients = True

    def __post_init__(self) -> None:
        positive = bool(self.factors) and min(self.factors) > 0
        require(positive, "client.factors", self.factors, "positive numbers", "client.factors=[1,0.5]")

    def begin(self, local: Local) -> Adjust | None:
        factor = self.factors[local.client % len(self.factors)]

        def adjust(parameters: list[Tensor]) -> None:
            for p in parameters:
                if p.grad is not None:
                    p.grad.mul_(factor)

        return adjust
