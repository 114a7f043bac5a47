"""A client rule: every local step has the same length."""

from dataclasses import dataclass

import torch
from torch import Tensor

from fedgm.client.rules import Adjust, Local, Plain


@dataclass(frozen=True)
class UnitGradient(Plain):
    """g /= |g|."""

    needs_plain_sgd = True
    changes_gradients = True

    def begin(self, local: Local) -> Adjust | None:
        def adjust(parameters: list[Tensor]) -> None:
            gradients = [p.grad for p in parameters if p.grad is not None]
            norm = torch.stack([g.norm() for g in gradients]).norm()
            for g in gradients:
                g.div_(norm)

        return adjust
