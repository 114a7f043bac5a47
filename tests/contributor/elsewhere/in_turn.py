"""A sampler: clients in turn."""

from dataclasses import dataclass


@dataclass(frozen=True)
class InTurn:
    """Round t has the next m of n clients."""

    count: int
    per_round: int

    def cohort(self, t: int, draw: int = 0) -> list[int]:
        first = (t - 1 + draw) * self.per_round
        return [(first + i) % self.count for i in range(self.per_round)]
