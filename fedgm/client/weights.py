"""Weights of a module as flat vectors, which averaging and momentum work on, and past global models."""

import math
from collections import deque
from collections.abc import Iterator, Sequence
from functools import reduce
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from fedgm.client.rules import State
from fedgm.errors import FedGMError

BITS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}  # by the bytes of a number


class Snapshot(NamedTuple):
    """Everything that a global model consists of."""

    x: Tensor  # parameters: averaged, then stepped with momentum
    buffers: Tensor  # float buffers (BatchNorm statistics): plainly averaged; a complex number is two entries
    counters: Tensor  # integer buffers (num_batches_tracked): integer mean


class Place(NamedTuple):
    """A buffer and where its module keeps it: ``self.mean = ...`` puts another tensor there."""

    name: str
    owner: dict[str, Tensor | None]
    key: str
    tensor: Tensor

    @property
    def is_float(self) -> bool:
        """Whether it is averaged as real numbers."""
        return self.tensor.is_floating_point() or self.tensor.is_complex()

    def now(self) -> Tensor:
        """What the module holds there at the moment; a complex tensor as pairs of real numbers."""
        tensor = self.owner[self.key]
        if tensor is not self.tensor and not _alike(tensor, self.tensor):
            raise FedGMError(
                f"buffer {self.name} got another shape or type while a client trained, so clients cannot be "
                "averaged. Keep its shape and type, or make it a plain attribute"
            )
        assert tensor is not None
        return torch.view_as_real(tensor.resolve_conj()) if tensor.is_complex() else tensor


class FlatWeights:
    """Reads and writes a module's weights; the order is that of ``named_parameters``, whatever the layout.

    A vector has the widest type of its tensors, so that each of them keeps its own.
    """

    def __init__(self, module: nn.Module) -> None:
        places = list(_places(module))
        self.parameters: list[Tensor] = [p for p in module.parameters() if p.requires_grad]
        self.buffers = [place for place in places if place.is_float]
        self.counters = [place for place in places if not place.is_float]
        tensors = self._tensors()
        types = [{tensor.dtype for tensor in group} for group in tensors[:2]]
        self.dtype = x = _widest(types[0])  # of x and of every vector like it
        self._types = [x, _widest(types[1] or {x}), torch.int64]
        self._mixed = any(several - {wide} for several, wide in zip(types, self._types, strict=False))
        self._sizes = [[tensor.numel() for tensor in group] for group in tensors]

    def read(self) -> Snapshot:
        """A copy of the current weights."""
        (parameters, buffers, counters), device = self._tensors(), self.parameters[0].device
        return Snapshot(
            _flat(parameters, self._sizes[0], self._types[0], device),
            _flat(buffers, self._sizes[1], self._types[1], device),
            _flat(counters, self._sizes[2], self._types[2], device),
        )

    def split(self, flat: Tensor) -> list[Tensor]:
        """A flat vector as views shaped like the parameters."""
        parts = flat.split(self._sizes[0])
        return [part.view(p.shape) for part, p in zip(parts, self.parameters, strict=True)]

    def gradient(self) -> Tensor:
        """A copy of the parameters' gradients as a flat vector; 0 where there is none."""
        parts = [torch.zeros_like(p) if p.grad is None else p.grad for p in self.parameters]
        return _flat(parts, self._sizes[0], self._types[0], self.parameters[0].device)

    @torch.no_grad()
    def write(self, snapshot: Snapshot) -> None:
        """Set the module's weights, in the tensors that it was built with."""
        for place in (*self.buffers, *self.counters):
            place.owner[place.key] = place.tensor
        for tensors, sizes, flat in zip(self._tensors(), self._sizes, snapshot, strict=True):
            for tensor, part in zip(tensors, flat.split(sizes) if sizes else (), strict=True):
                tensor.copy_(part.view(tensor.shape))

    def settle(self, snapshot: Snapshot) -> Snapshot:
        """Set the module's weights; return what it then holds: where types are mixed, some are rounded."""
        self.write(snapshot)
        return self.read() if self._mixed else snapshot

    def buffer_parts(self, snapshot: Snapshot) -> list[Tensor]:
        """Every buffer as a view of the snapshot, float ones first."""
        flats = zip(snapshot[1:], self._sizes[1:], strict=True)
        return [part for flat, sizes in flats for part in (flat.split(sizes) if sizes else ())]

    def unchanged(self, before: Snapshot, after: Snapshot, among: Sequence[int]) -> list[int]:
        """Numbers of those buffers ``among`` (as in :meth:`buffer_parts`) of which no bit has changed."""
        if not among:
            return []
        old, new = self.buffer_parts(before), self.buffer_parts(after)
        return [number for number in among if torch.equal(bits(old[number]), bits(new[number]))]

    def _tensors(self) -> tuple[list[Tensor], list[Tensor], list[Tensor]]:
        """What the module holds at the moment, by the vector that it belongs to."""
        buffers, counters = [place.now() for place in self.buffers], [place.now() for place in self.counters]
        return self.parameters, buffers, counters


class UnsavedBuffers:
    """Buffers that a module's own state leaves out (``persistent=False``), which a checkpoint needs too."""

    def __init__(self, module: nn.Module) -> None:
        saved = module.state_dict().keys()
        self.module = module
        self._first = {name: b.clone() for name, b in module.named_buffers() if name not in saved}

    def changed(self) -> dict[str, Tensor]:
        """Those that are no longer what the module was built with; most are tables and never change."""
        now = {name: self.module.get_buffer(name) for name in self._first}
        return {name: b.clone() for name, b in now.items() if not torch.equal(b, self._first[name])}

    @torch.no_grad()
    def restore(self, changed: dict[str, Tensor]) -> None:
        """As they were when the checkpoint was written."""
        for name, tensor in changed.items():
            self.module.get_buffer(name).copy_(tensor)


def require_trainable(module: nn.Module) -> None:
    """Refuse what cannot be averaged: lazy or complex parameters, sparse or quantised buffers, no weights."""
    named = dict(module.named_parameters()) | dict(module.named_buffers())
    for name, tensor in named.items():
        if is_lazy(tensor):
            raise FedGMError(
                f"{name} has no shape yet (a lazy layer). Run one batch through the model before training it"
            )
        if tensor.layout is not torch.strided or tensor.is_quantized:
            kind = "quantised" if tensor.is_quantized else "sparse"
            raise FedGMError(f"{name} is {kind}, and clients are averaged as dense tensors. Make it dense")
    trained = {name: p for name, p in module.named_parameters() if p.requires_grad}
    if not trained:
        raise FedGMError("the model has no parameter that requires a gradient: there is nothing to train")
    for name, parameter in trained.items():
        if parameter.is_complex():
            raise FedGMError(
                f"parameter {name} is complex ({parameter.dtype}), and server rules step real numbers. "
                "Keep it as a real parameter, and use torch.view_as_complex in forward"
            )


def is_finite(values: Tensor) -> bool:
    """Whether all are finite, judged by the least and the greatest (NaN becomes both): no temporaries."""
    if not values.numel():
        return True
    return all(map(math.isfinite, torch.stack(torch.aminmax(values)).tolist()))


def stays_finite(before: Tensor, after: Tensor) -> bool:
    """Whether every entry that has changed is finite: a mask of -inf may stay what it is."""
    return is_finite(after) or is_finite(after[bits(before) != bits(after)])


def bits(values: Tensor) -> Tensor:
    """The same memory as integers, which are equal only where every bit is (0.0 and -0.0 are not)."""
    return values.view(BITS[values.element_size()])


def _places(module: nn.Module) -> Iterator[Place]:
    """Every buffer once."""
    seen: set[int] = set()
    for prefix, owner in module.named_modules():
        for key, tensor in owner._buffers.items():
            if tensor is None or id(tensor) in seen:
                continue
            if tensor.is_conj() or _overlaps(tensor):  # it cannot be written to: the same in new memory
                tensor = tensor.resolve_conj().clone(memory_format=torch.contiguous_format)
                owner._buffers[key] = tensor
            seen.add(id(tensor))
            yield Place(f"{prefix}.{key}".lstrip("."), owner._buffers, key, tensor)


def _overlaps(tensor: Tensor) -> bool:
    """Whether entries share memory, as those of ``expand`` do."""
    return any(step == 0 and size > 1 for step, size in zip(tensor.stride(), tensor.shape, strict=True))


def _alike(tensor: Tensor | None, like: Tensor) -> bool:
    return tensor is not None and tensor.shape == like.shape and tensor.dtype == like.dtype


def _widest(types: set[torch.dtype]) -> torch.dtype:
    """A type that holds numbers of all these without rounding; 8-bit floats are averaged in 32 bits."""
    wide = [torch.float32 if dtype.itemsize == 1 else dtype for dtype in types]
    return reduce(torch.promote_types, wide)


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
