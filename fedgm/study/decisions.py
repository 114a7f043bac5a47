"""What the rungs of a sweep have decided: once, for every runner, kept in the sweep's folder."""

import hashlib
import json
import os
from pathlib import Path

from fedgm.files import beside
from fedgm.study.points import SweepPlan


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
    try:
        _create(path, json.dumps({"survivors": survivors, "round": until}) + "\n")
    except FileExistsError:
        found = read(plan, until)
        return survivors if found is None else found
    return survivors


def _create(path: Path, text: str) -> None:
    """A file that was not there before; raises :class:`FileExistsError` where the name is taken."""
    own = beside(path)
    own.write_text(text)
    try:
        os.link(own, path)  # shows no half-written file
    except FileExistsError:
        raise
    except OSError:  # a disk without hard links
        with path.open("x") as file:
            file.write(text)
    finally:
        own.unlink(missing_ok=True)


def _path(plan: SweepPlan, until: int) -> Path:
    """A file for each rung of exactly these runs: an edited sweep decides for itself."""
    runs = json.dumps([(job.hash, job.seed) for job in plan.jobs if job.seed == plan.seeds[0]])
    return plan.folder / f"rung-{until}-{hashlib.sha256(runs.encode()).hexdigest()[:8]}.json"
