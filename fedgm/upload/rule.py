"""What every upload rule offers: delta and state in, what the server receives and the bytes of it out."""

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
