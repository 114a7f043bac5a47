"""summary.json as readers see it: what a run was, how it ended, and whether its results are still whole."""

import math
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any

from fedgm.errors import FedGMError
from fedgm.files import digest, read_json
from fedgm.results import rows, shape
from fedgm.tasks.metric import scoreboard


class Status(StrEnum):
    """How a run stands; the first six are written by the run itself, the others are seen by readers."""

    RUNNING = "running"
    PAUSED = "paused"
    FINISHED = "finished"
    DIVERGED = "diverged"
    FAILED = "failed"
    STOPPED = "stopped"
    KILLED = "killed"  # it says `running`, and no process works on it
    DAMAGED = "damaged"  # it is done, and its files are not those that it wrote
    MISSING = "missing"  # planned, and not there


STATUSES = frozenset(map(str, Status))  # what a summary may say
DONE = (Status.FINISHED, Status.DIVERGED)  # nothing is left to run
WELL = (*DONE, Status.PAUSED)  # ends that nobody has to look after: their scores count
RESULTS = ("metrics.jsonl", "model.safetensors")  # without which a run is not done


def read(folder: Path) -> dict[str, Any]:
    """The summary, or nothing where there is none, or a damaged one."""
    found = read_json(folder / "summary.json") or {}
    return found if shape.is_summary(found) else {}


def own(folder: Path) -> dict[str, Any]:
    """The summary as the command of the run needs it; nothing where it lacks a key."""
    found = read(folder)
    return found if shape.is_own(found) else {}


def is_damaged(folder: Path) -> bool:
    """Whether there is a summary that the command of the run cannot use."""
    return (folder / "summary.json").exists() and not own(folder)


def digests(folder: Path, names: Sequence[str] = RESULTS) -> dict[str, str]:
    """Checksums of a run's results, as far as they are there."""
    paths = [folder / name for name in names]
    return {path.name: digest(path.read_bytes()) for path in paths if path.is_file()}


def require_whole(folder: Path, done: dict[str, Any]) -> None:
    """A run that is done has its results: else it is refused, because only the user knows where they went."""
    now, own = digests(folder), rows.read(folder / "metrics.jsonl")
    lost = [name for name in RESULTS if name not in now] or _changed(done, now, own)
    if not lost and not agrees(done, own):
        lost = ["summary.json (changed: its results are not those of the rows)"]
    if lost:
        raise FedGMError(
            f"{folder}: the run is {done['status']}, but damaged: {', '.join(lost)} "
            f"{'is' if len(lost) == 1 else 'are'} no longer there as written. "
            "Put it back, or type rerun=true to run it again"
        )


def is_whole(folder: Path, done: dict[str, Any], own: list[rows.Row]) -> bool:
    """The same for readers of many runs: of a model they only see whether it is there."""
    known = done.get("digests") or {}
    gone = [name for name in known if not (folder / name).is_file()]
    return not gone and not _changed(done, digests(folder, RESULTS[:1]), own)


def agrees(known: dict[str, Any], own: list[rows.Row]) -> bool:
    """Whether a summary says what its rows say; a sum may differ in its last bit between versions."""
    try:
        found = rows.summarise(own, scoreboard(known))
    except (KeyError, StopIteration):  # a metric that the rows, or the summary itself, do not have
        return False
    return all(_agree(found[key], known.get(key)) for key in ("final", "best", "last10"))


def _agree(ours: dict[str, Any] | None, theirs: Any) -> bool:
    """Whether two entries of a summary have the same keys and numbers."""
    if ours is None or not isinstance(theirs, dict) or ours.keys() != theirs.keys():
        return ours == theirs
    pairs = [(ours[key], theirs[key]) for key in ours]
    return all(a == b or (None not in (a, b) and math.isclose(a, b, rel_tol=1e-12)) for a, b in pairs)


def _changed(done: dict[str, Any], now: dict[str, str], own: list[rows.Row]) -> list[str]:
    """Results that are there, but not as the run has written them; older versions kept no checksums."""
    known = done.get("digests") or {}
    if changed := [f"{name} (changed)" for name in now if known.get(name, now[name]) != now[name]]:
        return changed
    whole = done.get("rounds_done") in (None, len(own))
    return [] if whole else [f"metrics.jsonl (changed: it has {len(own)} rows)"]


def changes(before: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """What differs between the program that began a run and the one that continues it."""
    old, new = before.get("versions") or {}, now["versions"]
    notes = [f"{k} {old[k]} -> {new[k]}" for k in new if k in old and old[k] != new[k]]
    if before.get("commit") != now["commit"]:
        notes.append(f"commit {before.get('commit')} -> {now['commit']}")
    return notes
