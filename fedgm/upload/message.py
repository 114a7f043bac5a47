"""What a client sends: the whole delta, or a shortened one; what is left out it may keep (error feedback).

An upload rule takes delta and state, and gives what the server receives with the bytes of it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from torch import Tensor

State = dict[str, Tensor]


class Sent(NamedTuple):
    """One client's upload."""

    delta: Tensor  # as the server decodes it
    bytes: int  # what went over the wire
    own: State  # what the client keeps until its next time; empty for most


class UploadRule(Protocol):
    """Called for every client's delta, before its weight and the mean; one small file and one yaml each.

    A rule with ``draws = False`` says that it never touches ``rng``, and gets None: making one for
    every client costs time.
    """

    @property
    def keeps(self) -> bool:
        """Whether clients keep a state, e.g. the residual of error feedback."""
        ...

    def send(self, delta: Tensor, own: State, rng: np.random.Generator) -> Sent:
        """``own`` is what the client kept the last time, empty at first; ``rng`` is its own in this round."""
        ...


@dataclass(frozen=True)
class Plain:
    """Alg. 2: every entry of the delta in its own precision."""

    keeps = draws = False

    def send(self, delta: Tensor, own: State, rng: np.random.Generator) -> Sent:
        """Nothing is lost and nothing is kept."""
        return Sent(delta, delta.numel() * delta.element_size(), {})


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
