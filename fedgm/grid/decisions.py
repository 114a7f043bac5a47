"""What the rungs of a sweep have decided: once, for every runner, kept in the sweep's folder."""

import hashlib
import json
import os
from pathlib import Path

from fedgm.grid.plan import SweepPlan


def read(plan: SweepPlan, until: int) -> list[int] | None:
    """The points that go on beyond round ``until``, or None while nobody has decided."""
    try:
        found = json.loads(_path(plan, until).read_text())
        return [int(point) for point in found["survivors"]]
    except (OSError, ValueError, KeyError, TypeError):
        return None


def keep(plan: SweepPlan, until: int, survivors: list[int]) -> list[int]:
    """Keep a decision, unless another runner was faster: then its decision counts."""
    path = _path(plan, until)
    path.parent.mkdir(parents=True, exist_ok=True)
    own = path.with_name(f".{path.name}.{os.getpid()}")
    own.write_text(json.dumps({"survivors": survivors, "round": until}) + "\n")
    try:
        os.link(own, path)  # fails where the name is taken, and shows no half-written file
    except FileExistsError:
        return read(plan, until) or survivors
    finally:
        own.unlink()
    return survivors


def _path(plan: SweepPlan, until: int) -> Path:
    """A file for each rung of exactly these runs: an edited sweep decides for itself."""
    runs = json.dumps([(job.hash, job.seed) for job in plan.jobs if job.seed == plan.seeds[0]])
    return plan.folder / f"rung-{until}-{hashlib.sha256(runs.encode()).hexdigest()[:8]}.json"
