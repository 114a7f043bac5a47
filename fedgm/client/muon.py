"""Muon as a local optimiser: matrices by Muon, everything else by AdamW."""

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor
from torch.optim import AdamW, Optimizer


class Muon(Optimizer):
    """torch's Muon for parameters with two dimensions, torch's AdamW for the others, at one rate.

    Muon's step is scaled to the length of AdamW's (``match_rms_adamw``). Its authors also give embeddings and
    the last layer to AdamW; here the number of dimensions decides. Filters of convolutions are not matrices.

    >>> w, b = torch.nn.Linear(2, 2).parameters()
    >>> [type(inner).__name__ for inner in Muon([w, b], lr=0.01).inner]
    ['Muon', 'AdamW']
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 0.001,
        momentum: float = 0.95,
        weight_decay: float = 0.0,
    ) -> None:
        given: list[Any] = list(params)
        groups: list[dict[str, Any]] = given if isinstance(given[0], dict) else [{"params": given}]
        matrices, others = ([_only(group, both) for group in groups] for both in (True, False))
        shared: dict[str, Any] = {"lr": lr, "weight_decay": weight_decay}
        self.inner: list[Optimizer] = []
        if matrices := [group for group in matrices if group["params"]]:
            muon = torch.optim.Muon(matrices, momentum=momentum, adjust_lr_fn="match_rms_adamw", **shared)
            self.inner.append(muon)
        if others := [group for group in others if group["params"]]:
            self.inner.append(AdamW(others, **shared))
        super().__init__([group for inner in self.inner for group in inner.param_groups], shared)
        self.state = defaultdict(dict)

    def step(self, closure: Callable[[], Any] | None = None) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Both steps; rates, groups and states are those of this optimiser."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        first = 0
        for inner in self.inner:
            last = first + len(inner.param_groups)
            inner.param_groups, inner.state = self.param_groups[first:last], self.state
            inner.step()
            first = last
        return loss


def _only(group: dict[str, Any], matrices: bool) -> dict[str, Any]:
    """A group with those of its parameters that are matrices, or with the rest."""
    found: list[Tensor] = [p for p in group["params"] if (p.ndim == 2) is matrices]
    return {**group, "params": found}
