"""Successive halving: which points of a rung go on, and what the rungs of a sweep have decided.

Rungs count evaluations, as W&B's hyperband does: ``min_iter: 3, eta: 3`` means 3, 9, 27 and so on. W&B
decides as values arrive; here a rung decides once all of its points are in, so that any number of runners
take the same decision and a sweep that was killed takes it again. A decision is kept in the sweep's folder.
"""

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING
from warnings import warn

from fedgm.files import beside, read_json
from fedgm.seals import is_as_written, with_seal, write_json

if TYPE_CHECKING:
    from fedgm.study.points import SweepPlan


@dataclass(frozen=True)
class Halving:
    """W&B's ``early_terminate``: ``min_iter``, or ``max_iter`` with ``s`` rungs below it."""

    eta: float
    min_iter: int | None = None
    max_iter: int | None = None
    s: int | None = None

    def rungs(self, evaluations: int) -> list[int]:
        """Evaluations after which a rung decides, ascending, below the run's number."""
        if self.min_iter is not None:
            rungs, rung = set[int](), float(self.min_iter)
            while rung < evaluations:
                rungs.add(int(rung))
                rung *= self.eta
            return sorted(rungs)
        assert self.max_iter is not None
        assert self.s is not None
        counts = set[int]()
        for power in range(1, self.s + 1):
            counts.add(count := int(self.max_iter / self.eta**power))
            if count < 1:
                break
        return sorted(count for count in counts if 1 <= count < evaluations)

    def kept(self, points: int) -> int:
        """How many of so many points go on: ``1/eta`` of them, rounded up."""
        return max(1, ceil(points / self.eta - 1e-9))

    def survivors(self, scores: Mapping[int, float | None], higher: bool) -> list[int]:
        """The best of the points; None (diverged) loses, ties go to the lower number."""
        sign = -1.0 if higher else 1.0
        alive = [point for point, score in scores.items() if score is not None]
        ranked = sorted(alive, key=lambda point: (sign * (scores[point] or 0.0), point))
        return sorted(ranked[: self.kept(len(scores))])


def read(plan: "SweepPlan", until: int) -> list[int] | None:
    """The points that go on beyond round ``until``, or None before the rung has decided."""
    path = _path(plan, until)
    decision = read_json(path) or {}
    try:
        return [int(point) for point in decision["survivors"]] if is_as_written(decision, path.name) else None
    except (ValueError, KeyError, TypeError):
        return None


def keep(plan: "SweepPlan", until: int, survivors: list[int]) -> list[int]:
    """Keep a decision, unless another runner was faster: then its decision counts. A changed one does not."""
    path = _path(plan, until)
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        _create(path, json.dumps(with_seal({"survivors": survivors, "round": until}, path.name)) + "\n")
    except FileExistsError:
        if (decided := read(plan, until)) is not None:
            return decided
        warn(f"{path} is damaged: the rung decides again", stacklevel=2)
        write_json(path, {"survivors": survivors, "round": until})
    return survivors


def _create(path: Path, text: str) -> None:
    """A file that was not there before; raises :class:`FileExistsError` where the name is taken."""
    draft = beside(path)
    draft.write_text(text)
    try:
        os.link(draft, path)  # shows no half-written file
    except FileExistsError:
        raise
    except OSError:  # a disk without hard links
        with path.open("x") as file:
            file.write(text)
    finally:
        draft.unlink(missing_ok=True)


def _path(plan: "SweepPlan", until: int) -> Path:
    """A file for each rung of exactly these runs: an edited sweep decides for itself."""
    runs = json.dumps([(job.hash, job.seed) for job in plan.jobs if job.seed == plan.seeds[0]])
    return plan.folder / f"rung-{until}-{hashlib.sha256(runs.encode()).hexdigest()[:8]}.json"
