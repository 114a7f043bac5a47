"""Weights of a module as flat vectors, which averaging and momentum work on, and past global models."""

import math
from collections import deque
from typing import NamedTuple

import torch
from torch import Tensor, nn

from fedgm.client.rules import State


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
        parts = (self.parameters, self.buffers, self.counters)
        self._sizes = [[t.numel() for t in tensors] for tensors in parts]

    def read(self) -> Snapshot:
        """A copy of the current weights."""
        like, (parameters, buffers, counters) = self.parameters[0], self._sizes
        return Snapshot(
            _flat(self.parameters, parameters, like.dtype, like.device),
            _flat(self.buffers, buffers, like.dtype, like.device),
            _flat(self.counters, counters, torch.int64, like.device),
        )

    def split(self, flat: Tensor) -> list[Tensor]:
        """A flat vector as views shaped like the parameters."""
        parts = flat.split(self._sizes[0])
        return [part.view(p.shape) for part, p in zip(parts, self.parameters, strict=True)]

    @torch.no_grad()
    def write(self, snapshot: Snapshot) -> None:
        """Set the module's weights."""
        groups = (self.parameters, self.buffers, self.counters)
        for tensors, sizes, flat in zip(groups, self._sizes, snapshot, strict=True):
            for tensor, part in zip(tensors, flat.split(sizes) if sizes else (), strict=True):
                tensor.copy_(part.view(tensor.shape))


def is_finite(values: Tensor) -> bool:
    """Whether all are finite, judged by the least and the greatest (NaN becomes both): no temporaries."""
    if not values.numel():
        return True
    return all(map(math.isfinite, torch.stack(torch.aminmax(values)).tolist()))


def _flat(tensors: list[Tensor], sizes: list[int], dtype: torch.dtype, device: torch.device) -> Tensor:
    """One vector of all entries, in logical order; each is copied once, whatever its layout."""
    flat = torch.empty(sum(sizes), dtype=dtype, device=device)
    for tensor, part in zip(tensors, flat.split(sizes) if sizes else (), strict=True):
        part.view(tensor.shape).copy_(tensor.detach())
    return flat


class History:
    """The last ``length`` global models; ``history[tau]`` is the one from tau rounds ago.

    With each goes what the client rule kept at the server in that round: a stale client has fetched both.
    """

    def __init__(self, length: int) -> None:
        self.length = length
        self._models: deque[Snapshot] = deque(maxlen=length)
        self._shared: deque[State] = deque(maxlen=length)

    def __len__(self) -> int:
        return len(self._models)

    def __getitem__(self, tau: int) -> Snapshot:
        return self._models[-1 - tau]

    def shared(self, tau: int) -> State:
        """What the server kept for the client rule tau rounds ago."""
        return self._shared[-1 - tau]

    def push(self, model: Snapshot, shared: State | None = None) -> None:
        """The newest; the oldest goes when there is no more room. All live where the newest does."""
        self._models.append(model)
        self._shared.append(shared or {})
        device = model.x.device
        for place, past in enumerate(self._models):
            if past.x.device != device:  # models that were read back from files
                self._models[place] = Snapshot(*(part.to(device) for part in past))
        for place, state in enumerate(self._shared):
            self._shared[place] = {name: value.to(device) for name, value in state.items()}
