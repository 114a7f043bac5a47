"""FedProx: local training is pulled back to where it started."""

from dataclasses import dataclass
from math import inf

from torch import Tensor

from fedgm.client.rule import Adjust, Local, Plain
from fedgm.errors import require


@dataclass(frozen=True)
class FedProx(Plain):
    """loss += mu/2 ||w - x_t||^2, i.e. g += mu (w - x_t); the reported loss is without the extra term."""

    mu: float = 0.01
    changes_gradients = True

    def __post_init__(self) -> None:
        require(0 <= self.mu < inf, "client.mu", self.mu, "a number of at least 0", "client.mu=0.01")

    def begin(self, local: Local) -> Adjust | None:
        """The pull towards the start."""
        start = local.split(local.x)

        def adjust(parameters: list[Tensor]) -> None:
            for w, x in zip(parameters, start, strict=True):
                if w.grad is not None:
                    w.grad.add_(w.detach() - x, alpha=self.mu)

        return adjust
