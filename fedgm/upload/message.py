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
    kept: State  # what the client keeps until it takes part again; empty for most


class UploadRule(Protocol):
    """Called for every client's delta, before its weight and the mean; one class and one yaml each.

    A rule with ``draws = False`` says that it never touches ``rng``, and gets None: making one for
    every client costs time.
    """

    @property
    def keeps(self) -> bool:
        """Whether clients keep a state, e.g. the residual of error feedback."""
        ...

    def send(self, delta: Tensor, kept: State, rng: np.random.Generator) -> Sent:
        """``kept`` is what the client kept from its last round, empty at first; ``rng`` is the client's."""
        ...


@dataclass(frozen=True)
class Plain:
    """Alg. 2: every entry of the delta in its own precision."""

    keeps = draws = False

    def send(self, delta: Tensor, kept: State, rng: np.random.Generator) -> Sent:
        """Nothing is lost and nothing is kept."""
        return Sent(delta, delta.numel() * delta.element_size(), {})


@dataclass(frozen=True)
class Sketch:
    """``upload=sketch``: rows x columns numbers of 32 bits, for ``algorithm=fetchsgd``.

    A sketch is linear, so the server makes that of the mean itself: the delta passes through unchanged.
    """

    rows: int
    columns: int
    keeps = draws = False
    passes_on = True

    def send(self, delta: Tensor, kept: State, rng: np.random.Generator) -> Sent:
        """The bytes of a sketch."""
        return Sent(delta, 4 * self.rows * self.columns, {})


Compressor = Callable[[Tensor], tuple[Tensor, int]]  # what the server receives, and how many bytes it took


def with_feedback(compress: Compressor, delta: Tensor, kept: State) -> Sent:
    """``p = delta + e;  send C(p);  e' = p - C(p)`` (Stich 2018); e is the client's ``residual``, 0 at first.

    >>> from torch import tensor
    >>> def largest_alone(x: Tensor) -> tuple[Tensor, int]:
    ...     return x * (x.abs() == x.abs().max()), 8
    >>> first = with_feedback(largest_alone, tensor([3.0, 2.0]), {})
    >>> first.delta, first.kept["residual"]
    (tensor([3., 0.]), tensor([0., 2.]))
    >>> with_feedback(largest_alone, tensor([3.0, 2.0]), first.kept).delta
    tensor([0., 4.])
    """
    whole = delta + kept["residual"] if "residual" in kept else delta
    sent, size = compress(whole)
    return Sent(sent, size, {"residual": whole - sent})
