"""Uploads as bytes: what the rules of :mod:`fedgm.upload.compression` count is what a deployment sends.

The server decodes the very numbers that a simulation hands over, whatever the rule has drawn.

>>> from fedgm.upload.compression import Qsgd
>>> rule, rng = Qsgd(levels=7, bucket=2), np.random.default_rng(0)
>>> delta = torch.tensor([3.0, -1.0, 0.5, 2.0])
>>> sent = rule.send(delta, {}, rng)
>>> message = pack(rule, delta, {}, sent)
>>> len(message) == sent.bytes, torch.equal(unpack(rule, message, delta), sent.delta)
(True, True)
"""

from math import ceil
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fedgm.errors import FedGMError
from fedgm.upload.message import Sent, State, UploadRule


@runtime_checkable
class Packs(Protocol):
    """An upload rule that can write its message; of any other every entry is sent."""

    def pack(self, delta: Tensor, kept: State, sent: Sent) -> bytes:
        """The message: ``sent`` is what the rule made of ``delta`` and ``kept``."""
        ...

    def unpack(self, message: bytes, like: Tensor) -> Tensor:
        """The delta of a message, of the size and type of ``like``; a ValueError where it is none."""
        ...


def pack(rule: UploadRule, delta: Tensor, kept: State, sent: Sent) -> bytes:
    """One client's message; never longer than all entries, which are sent instead."""
    dense = as_bytes(sent.delta)
    message = rule.pack(delta, kept, sent) if isinstance(rule, Packs) else dense
    return message if len(message) < len(dense) else dense


def unpack(rule: UploadRule, message: bytes, like: Tensor) -> Tensor:
    """The delta of a message; a message that is not one is refused."""
    try:
        if len(message) == like.numel() * like.element_size():
            return from_bytes(message, like.dtype)
        if isinstance(rule, Packs):
            return rule.unpack(message, like)
    except (ValueError, IndexError, RuntimeError) as error:
        raise FedGMError(f"a message of {len(message)} bytes cannot be decoded ({error})") from None
    raise FedGMError(f"a message of {len(message)} bytes for {like.numel()} entries")


def as_bytes(values: Tensor) -> bytes:
    """All entries, one after the other."""
    return values.cpu().contiguous().numpy().tobytes()


def from_bytes(message: bytes, dtype: torch.dtype) -> Tensor:
    """The entries of :func:`as_bytes`."""
    return torch.frombuffer(bytearray(message), dtype=dtype) if message else torch.empty(0, dtype=dtype)


def packed_size(count: int, width: int) -> int:
    """Bytes of ``count`` numbers of ``width`` bits."""
    return ceil(count * width / 8)


def to_bits(values: Tensor, width: int) -> bytes:
    """Whole numbers from 0 on as ``width`` bits each, the lowest bit first, without gaps.

    >>> to_bits(torch.tensor([1, 2, 3]), width=2).hex()  # 10 01 11 and two bits that are left over
    '9c'
    """
    numbers: NDArray[Any] = values.cpu().numpy().astype(np.int64)
    bits = (numbers[:, None] >> np.arange(width)) & 1
    return np.packbits(bits.astype(np.uint8)).tobytes()


def from_bits(message: bytes, width: int, count: int) -> Tensor:
    """The numbers of :func:`to_bits`."""
    if len(message) != packed_size(count, width):
        raise ValueError(f"{packed_size(count, width)} bytes expected for {count} numbers of {width} bits")
    bits = np.unpackbits(np.frombuffer(message, np.uint8), count=count * width).reshape(count, width)
    return torch.from_numpy((bits.astype(np.int64) << np.arange(width)).sum(1))
