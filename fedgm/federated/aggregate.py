"""The cohort's mean, as a stream: one flat float64 sum, whatever the number of clients."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from fedgm.client.weights import Snapshot

HALF = 32  # bits of a half of an integer


class Mean(NamedTuple):
    """What the server receives."""

    delta: Tensor  # D: mean of the weighted deltas
    buffers: Tensor  # mean of the clients' float buffers
    counters: Tensor  # integer mean of the clients' counters
    message: Tensor  # mean of what a client rule sends besides; empty for most

    def over(self, x: Tensor) -> Snapshot:
        """The global model of parameters ``x`` and the mean buffers."""
        return Snapshot(x, self.buffers, self.counters)


class CohortMean:
    """Mean over ``clients`` updates, added one by one in any order.

    Each weighted vector is rounded to float32 *before* it is added in float64: a sum of few float32
    numbers is then exact in float64 (unless they differ by more than about 2^27), so order and the
    way clients are spread over workers do not matter. A float32 sum, or one of unrounded products,
    depends on both. Integers are added in two halves, which are exact up to 64 bits.
    """

    def __init__(self, like: Snapshot, clients: int, message: int = 0, buffers: int = 0) -> None:
        x, floats, counters = like
        # Parameters, float buffers, counters (both halves), message, and of each buffer whether it changed.
        self.sizes = [x.numel(), floats.numel(), counters.numel(), counters.numel(), message, buffers]
        self.like, self.clients = like, clients
        self.shares: float = clients  # sum of the shares of those that were added
        self.whole: float | None = None  # what D is divided by, where only some have sent
        self.total = torch.zeros(sum(self.sizes), dtype=torch.float64, device=x.device)
        self.unchanged = list(range(buffers))  # buffers of which no client that was added has changed a bit

    def add(
        self, delta: Tensor, after: Snapshot, weight: float, share: float, unchanged: Sequence[int] = ()
    ) -> None:
        """Add one client.

        ``share`` is its part of the cohort times the number of clients (1 in a uniform mean);
        ``weight`` further scales its delta (uneven local work), never its buffers. ``unchanged`` are the
        buffers that neither this client nor those before it have changed.
        """
        parts = self.total.split(self.sizes)
        parts[0].add_(scaled(delta, weight * share))
        if self.sizes[1]:
            parts[1].add_(scaled(after.buffers, share))
        if self.sizes[2]:
            parts[2].add_(after.counters >> HALF)
            parts[3].add_(after.counters & (2**HALF - 1))
        if self.sizes[5]:
            self.unchanged = list(unchanged)
            parts[5].fill_(1)[self.unchanged] = 0

    def add_message(self, message: Tensor) -> None:
        """Add what one client's rule sends besides its delta."""
        self.total.split(self.sizes)[4].add_(message)

    def take(self) -> Tensor:
        """What was added since the last time, which is then 0 again: the part of a single client."""
        taken, self.total = self.total, torch.zeros_like(self.total)
        return taken

    def mean(self) -> Mean:
        """D and the mean buffers of all that was added, in the types of the global model."""
        delta, buffers, high, low, message, changed = self.total.split(self.sizes)
        self.unchanged = [number for number, times in enumerate(changed.tolist()) if not times]
        dtype = self.like.x.dtype
        return Mean(
            _divided(delta, self.shares if self.whole is None else self.whole).to(dtype),
            _divided(buffers, self.shares).to(self.like.buffers.dtype),
            integer_mean(high, low, self.clients) if high.numel() else self.like.counters.clone(),
            _divided(message, self.clients).to(dtype),
        )


def integer_mean(high: Tensor, low: Tensor, clients: int) -> Tensor:
    """The mean of 64-bit integers, rounded towards zero, from the sums of their upper and lower halves.

    >>> integer_mean(torch.tensor([2.0**31]), torch.tensor([3.0]), clients=2).item() == 2**62 + 1
    True
    """
    high, low = high.to(torch.int64), low.to(torch.int64)
    whole = high.div(clients, rounding_mode="floor")
    rest = ((high - whole * clients) << HALF) + low
    floor = (whole << HALF) + rest.div(clients, rounding_mode="floor")
    return floor + ((floor < 0) & (rest % clients > 0))


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
