"""Error feedback: what compression leaves out is kept by the client and added to its next delta."""

from collections.abc import Callable
from typing import NamedTuple

from torch import Tensor

from fedgm.upload.rule import Sent

Compressor = Callable[[Tensor], tuple[Tensor, int]]  # what the server receives, and how many bytes it took


class Compressed(NamedTuple):
    """One client's message."""

    delta: Tensor  # what the server receives, as a dense vector
    residual: Tensor | None  # what the client keeps for its next message; None: nothing is kept
    bytes: int


def with_feedback(compress: Compressor, delta: Tensor, residual: Tensor | None) -> Compressed:
    """``p = delta + e;  send C(p);  e' = p - C(p)`` (Stich 2018); ``e_0 = 0`` is given as None."""
    target = delta if residual is None else delta + residual
    sent, size = compress(target)
    return Compressed(sent, target - sent, size)


def without_feedback(compress: Compressor, delta: Tensor) -> Compressed:
    """``send C(delta)`` and keep nothing: for compressors without bias."""
    sent, size = compress(delta)
    return Compressed(sent, None, size)


def kept_residual(message: Compressed) -> Sent:
    """As the loop takes it: the residual is the client's state."""
    own = {} if message.residual is None else {"residual": message.residual}
    return Sent(message.delta, message.bytes, own)
