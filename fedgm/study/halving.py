"""Successive halving: which points of a rung go on, as a function of their curves alone.

Rungs count evaluations, as W&B's hyperband does: ``min_iter: 3, eta: 3`` means 3, 9, 27 and so on. W&B
decides as values arrive; here a rung decides once all of its points are in, so that any number of runners
take the same decision and a sweep that was killed takes it again.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil


@dataclass(frozen=True)
class Halving:
    """W&B's ``early_terminate``: ``min_iter``, or ``max_iter`` with ``s`` rungs below it."""

    eta: float
    min_iter: int | None = None
    max_iter: int | None = None
    s: int | None = None

    def rungs(self, evaluations: int) -> list[int]:
        """Evaluations after which a rung decides, ascending, below the run's own number."""
        if self.min_iter is not None:
            rungs, rung = set[int](), float(self.min_iter)
            while rung < evaluations:
                rungs.add(int(rung))
                rung *= self.eta
            return sorted(rungs)
        assert self.max_iter is not None
        assert self.s is not None
        counts = {int(self.max_iter / self.eta**power) for power in range(1, self.s + 1)}
        return sorted(count for count in counts if 1 <= count < evaluations)

    def kept(self, points: int) -> int:
        """How many of so many points go on: ``1/eta`` of them, rounded up."""
        return max(1, ceil(points / self.eta - 1e-9))

    def survivors(self, scores: Mapping[int, float | None], higher: bool) -> list[int]:
        """The best of the points; None (diverged) loses, ties go to the lower."""
        sign = -1.0 if higher else 1.0
        alive = [point for point, score in scores.items() if score is not None]
        ranked = sorted(alive, key=lambda point: (sign * (scores[point] or 0.0), point))
        return sorted(ranked[: self.kept(len(scores))])
