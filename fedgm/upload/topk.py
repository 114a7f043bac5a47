"""Top-k sparsification: the k entries of largest magnitude, each with its index."""

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from fedgm.errors import require
from fedgm.upload.feedback import Compressed, kept_residual, with_feedback
from fedgm.upload.rule import Sent, State

VALUE_BITS = 32


@dataclass(frozen=True)
class TopK:
    """``upload=topk``: a share of the entries; with feedback, clients keep the rest as ``residual``."""

    share: float
    feedback: bool = True
    draws = False

    def __post_init__(self) -> None:
        entries(self.share, 1)  # refuses a wrong share before training

    @property
    def keeps(self) -> bool:
        """The residual."""
        return self.feedback

    def send(self, delta: Tensor, own: State, rng: np.random.Generator) -> Sent:
        """The largest entries, of the delta alone or with what earlier rounds left out."""
        k = entries(self.share, delta.numel())
        if not self.feedback:
            return Sent(*top_k(delta, k), {})
        return kept_residual(top_k_with_feedback(delta, own.get("residual"), k))


def top_k(x: Tensor, k: int) -> tuple[Tensor, int]:
    """``x`` with all but its k largest magnitudes set to 0, and its bytes.

    It contracts: ``|x - top_k(x)|^2 <= (1 - k/n) |x|^2``, with equality where all magnitudes are equal.
    """
    if k >= x.numel():
        return x.clone(), plain_bytes(x.numel())
    kept = largest(x, k)
    sparse = torch.zeros_like(x)
    sparse[kept] = x[kept]
    return sparse, top_k_bytes(x.numel(), k)


def largest(x: Tensor, k: int) -> Tensor:
    """Indices of the k largest magnitudes in rising order; all of them where there are no more than k."""
    return x.abs().topk(min(k, x.numel()), sorted=False).indices.sort().values


def top_k_with_feedback(delta: Tensor, residual: Tensor | None, k: int) -> Compressed:
    """Top-k of the delta plus what earlier rounds left out."""
    return with_feedback(lambda x: top_k(x, k), delta, residual)


def entries(share: float, n: int) -> int:
    """k for a share of n entries, rounded up, so that something is always sent."""
    require(0 < share <= 1, "upload.share", share, "0 < share <= 1", "upload.share=0.01")
    return min(n, math.ceil(share * n - 1e-9))  # .1 of 30 is 3, not the 4 of floating point


def top_k_bytes(n: int, k: int) -> int:
    """A 32-bit value and an index of ceil(log2 n) bits for each entry, packed, rounded up to whole bytes.

    Never more than the dense vector, which a client would send instead.
    """
    return min(plain_bytes(n), math.ceil(k * (VALUE_BITS + index_bits(n)) / 8))


def index_bits(n: int) -> int:
    """Bits that number n entries."""
    return max(1, (n - 1).bit_length())


def plain_bytes(n: int) -> int:
    """All n values in 32 bits."""
    return n * VALUE_BITS // 8
