"""What travels between server and nodes: tensors and plain facts in one piece that carries no code.

A parcel is safetensors; its facts are JSON in a tensor of bytes. Whoever opens one says what must be in it.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from fedgm.client.local import LocalResult
from fedgm.client.rules import State
from fedgm.client.weights import Snapshot
from fedgm.errors import FedGMError

FACTS = "facts"
SHARED = "shared."  # before the names of a client rule's vectors
ROOM = 2**20  # bytes that a parcel may have beyond its tensors


class BadParcelError(FedGMError):
    """What came is not what was asked for."""


@dataclass(frozen=True)
class Order:
    """Work for one client: the model to start from, and how to train."""

    run: str  # which run it belongs to
    setup: str  # what its configuration says outside data.*
    client: int
    round: int  # whose draws it uses
    epochs: int
    weight: float
    rates: list[float]  # eta_l of each group of the local optimiser
    before: int  # what the client keeps is that of its last round before this one
    start: Snapshot
    shared: State = field(default_factory=dict[str, Tensor])

    def packed(self) -> bytes:
        """As one piece."""
        names = ("run", "setup", "client", "round", "epochs", "weight", "rates", "before")
        facts = {name: getattr(self, name) for name in names}
        shared = {f"{SHARED}{name}": value for name, value in self.shared.items()}
        return pack(self.start._asdict() | shared, facts)

    @classmethod
    def opened(cls, parcel: bytes) -> "Order":
        """On the node, which trusts its server."""
        tensors, facts = unpack(parcel)
        shared = {
            name.removeprefix(SHARED): tensors.pop(name) for name in list(tensors) if name.startswith(SHARED)
        }
        return cls(**facts, start=Snapshot(**tensors), shared=shared)


@dataclass(frozen=True)
class Return:
    """What one client sends back: its model or its packed update, and what it reports."""

    client: int
    round: int
    size: int  # samples of the client
    result: LocalResult
    update: Tensor  # parameters after training or, where they are packed, bytes of the upload rule
    buffers: Tensor
    counters: Tensor
    message: Tensor  # what the client rule sends besides; empty for most

    def packed(self) -> bytes:
        """As one piece."""
        names = ("update", "buffers", "counters", "message")
        facts = {"client": self.client, "round": self.round, "size": self.size} | self.result._asdict()
        return pack({name: getattr(self, name) for name in names}, facts)

    @classmethod
    def opened(cls, parcel: bytes, like: Snapshot, metrics: int, sends: bool) -> "Return":
        """On the server, which trusts nobody: names, shapes, types and numbers are those of ``like``."""
        tensors, facts = unpack(parcel, limit=_room(like))
        message = torch.empty(like.x.numel() if sends else 0, dtype=like.x.dtype)
        expected = {"buffers": like.buffers, "counters": like.counters, "message": message}
        update = tensors.get("update", torch.empty(0))
        if update.dtype != torch.uint8:
            expected["update"] = like.x
        _require_names(tensors.keys() - {"update"}, expected.keys() - {"update"})
        for name, tensor in expected.items():
            _require_like(name, tensors[name], tensor)
        numbers = _numbers(facts, metrics)
        result = LocalResult(*(numbers[name] for name in LocalResult._fields))
        return cls(numbers["client"], numbers["round"], numbers["size"], result, **tensors)


def pack(tensors: Mapping[str, Tensor], facts: Mapping[str, Any]) -> bytes:
    """Tensors by name, and facts that JSON can hold; its numbers come back to the last bit."""
    text = torch.frombuffer(bytearray(json.dumps(facts).encode()), dtype=torch.uint8)
    return save({name: tensor.cpu().contiguous() for name, tensor in tensors.items()} | {FACTS: text})


def unpack(parcel: bytes, limit: float = math.inf) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Tensors and facts of a parcel of at most ``limit`` bytes; anything else is refused."""
    if len(parcel) > limit:
        raise BadParcelError(f"it has {len(parcel):,} bytes, at most {limit:,.0f} are expected")
    try:
        tensors = load(parcel)
        facts = json.loads(tensors.pop(FACTS).numpy().tobytes())
    except (SafetensorError, KeyError, ValueError, TypeError, RecursionError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0][:80]
        raise BadParcelError(f"it is not a message of fedgm ({type(error).__name__}: {reason})") from None
    if not isinstance(facts, dict):
        raise BadParcelError("it is not a message of fedgm (its facts are not keys)")
    return tensors, facts


def _room(like: Snapshot) -> int:
    """Bytes of the largest return: a whole model and a second vector."""
    sizes = [part.numel() * part.element_size() for part in like]
    return sum(sizes) + sizes[0] + ROOM


def _require_names(found: Any, expected: Any) -> None:
    if set(found) != set(expected):
        raise BadParcelError(f"it has {', '.join(sorted(found))}, not {', '.join(sorted(expected))}")


def _require_like(name: str, tensor: Tensor, like: Tensor) -> None:
    if tensor.shape != like.shape or tensor.dtype != like.dtype:
        found, wanted = (f"{t.dtype} of shape {list(t.shape)}" for t in (tensor, like))
        raise BadParcelError(f"{name} is {found}, not {wanted}")


def _numbers(facts: dict[str, Any], metrics: int) -> dict[str, Any]:
    """The facts of a return, each of its type."""
    whole = dict.fromkeys(("client", "round", "steps", "samples"), 0) | {"size": 1}
    for name, least in whole.items():
        if type(facts.get(name)) is not int or not least <= facts[name] < 2**53:
            raise BadParcelError(f"{name}={facts.get(name)!r}: expected a whole number")
    sums = facts.get("sums")
    values = [facts.get("measured"), *(sums if isinstance(sums, list) else [None])]
    if len(values) != metrics + 1 or not all(type(value) in (int, float) for value in values):
        raise BadParcelError(f"expected a number measured and {metrics} sums")
    return facts
