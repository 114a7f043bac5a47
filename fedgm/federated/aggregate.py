"""The cohort's mean, as a stream: one flat float64 sum, whatever the number of clients."""

from typing import NamedTuple

import torch
from torch import Tensor


class Mean(NamedTuple):
    """What the server receives."""

    delta: Tensor  # D: mean of the weighted deltas
    buffers: Tensor  # mean of the clients' float buffers
    counters: Tensor  # integer mean of the clients' counters
    message: Tensor  # mean of what a client rule sends besides; empty for most


class CohortMean:
    """Mean over ``clients`` updates, added one by one in any order.

    Each weighted vector is rounded to float32 *before* it is added in float64: a sum of few float32
    numbers is then exact in float64 (unless they differ by more than about 2^27), so order and the
    way clients are spread over workers do not matter. A float32 sum, or one of unrounded products,
    depends on both.
    """

    def __init__(self, like: tuple[Tensor, Tensor, Tensor], clients: int, message: int = 0) -> None:
        self.sizes = [*(part.numel() for part in like), message]  # parameters, buffers, counters, message
        self.clients = clients
        self.shares: float = clients  # sum of the shares of those that were added
        self.total = torch.zeros(sum(self.sizes), dtype=torch.float64, device=like[0].device)

    def add(self, delta: Tensor, buffers: Tensor, counters: Tensor, weight: float, share: float) -> None:
        """Add one client.

        ``share`` is its part of the cohort times the number of clients (1 in a uniform mean);
        ``weight`` further scales its delta (uneven local work), never its buffers.
        """
        parts = self.total.split(self.sizes)
        parts[0].add_(scaled(delta, weight * share))
        if self.sizes[1]:
            parts[1].add_(scaled(buffers, share))
        if self.sizes[2]:
            parts[2].add_(counters)

    def add_message(self, message: Tensor) -> None:
        """Add what one client's rule sends besides its delta."""
        self.total.split(self.sizes)[3].add_(message)

    def mean(self, dtype: torch.dtype = torch.float32) -> Mean:
        """D and the mean buffers of all that was added."""
        delta, buffers, counters, message = self.total.split(self.sizes)
        return Mean(
            _divided(delta, self.shares).to(dtype),
            _divided(buffers, self.shares).to(dtype),
            _divided(counters, self.clients).to(torch.int64),
            _divided(message, self.clients).to(dtype),
        )


def scaled(value: Tensor, factor: float) -> Tensor:
    """``factor * value`` in the precision of ``value``; ``value`` itself at factor 1."""
    return value if factor == 1 else factor * value


def _divided(value: Tensor, by: float) -> Tensor:
    return value if by == 1 or not value.numel() else value / by


def shares(sizes: list[int], weights: str) -> list[float]:
    """Each client's part of the cohort times the number of clients: 1, or by its number of samples."""
    if weights == "uniform":
        return [1.0] * len(sizes)
    total = sum(sizes)
    return [len(sizes) * size / total for size in sizes]
