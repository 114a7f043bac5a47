"""Parameters and buffers of a module as flat vectors, which is what averaging and momentum work on."""

from typing import NamedTuple

import torch
from torch import Tensor, nn


class Snapshot(NamedTuple):
    """Everything that a global model consists of."""

    x: Tensor  # parameters: averaged, then stepped with momentum
    buffers: Tensor  # float buffers (BatchNorm statistics): plainly averaged
    counters: Tensor  # integer buffers (num_batches_tracked): integer mean


class FlatWeights:
    """Reads and writes a module's weights; the order is that of ``named_parameters``, whatever the layout."""

    def __init__(self, module: nn.Module) -> None:
        buffers = list(module.buffers())
        self.parameters: list[Tensor] = [p for p in module.parameters() if p.requires_grad]
        self.buffers = [b for b in buffers if b.is_floating_point()]
        self.counters = [b for b in buffers if not b.is_floating_point()]

    def read(self) -> Snapshot:
        """A copy of the current weights."""
        like = self.parameters[0]
        return Snapshot(
            _flat(self.parameters, like.dtype, like.device),
            _flat(self.buffers, like.dtype, like.device),
            _flat(self.counters, torch.int64, like.device),
        )

    def split(self, flat: Tensor) -> list[Tensor]:
        """A flat vector as views shaped like the parameters."""
        parts = flat.split([p.numel() for p in self.parameters])
        return [part.view(p.shape) for part, p in zip(parts, self.parameters, strict=True)]

    @torch.no_grad()
    def write(self, snapshot: Snapshot) -> None:
        """Set the module's weights."""
        for tensors, flat in zip((self.parameters, self.buffers, self.counters), snapshot, strict=True):
            parts = flat.split([t.numel() for t in tensors]) if tensors else ()
            for tensor, part in zip(tensors, parts, strict=True):
                tensor.copy_(part.view(tensor.shape))


def _flat(tensors: list[Tensor], dtype: torch.dtype, device: torch.device) -> Tensor:
    """One vector of all entries, in logical order."""
    parts = [t.detach().reshape(-1).to(dtype) for t in tensors]
    return torch.cat(parts) if parts else torch.empty(0, dtype=dtype, device=device)
