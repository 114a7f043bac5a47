"""summary.json as readers see it: what a run was, how it ended, and whether its results are still whole."""

import math
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any

from fedgm.errors import FedGMError
from fedgm.files import digest, read_json
from fedgm.results import shape
from fedgm.results.rows import Row, summarise
from fedgm.results.rows import read as read_rows
from fedgm.tasks.metric import scoreboard


class Status(StrEnum):
    """How a run stands; the first six are written by the run itself, the others are seen by readers."""

    RUNNING = "running"
    PAUSED = "paused"
    FINISHED = "finished"
    DIVERGED = "diverged"
    FAILED = "failed"
    STOPPED = "stopped"
    KILLED = "killed"  # its summary says `running`, but no process works on it
    DAMAGED = "damaged"  # it is done, but its files are not those that it wrote
    MISSING = "missing"  # planned, but not there


STATUSES = frozenset(map(str, Status))  # what a summary may say
DONE = (Status.FINISHED, Status.DIVERGED)  # nothing is left to run
WELL = (*DONE, Status.PAUSED)  # ends that need no attention: their scores count
RESULTS = ("metrics.jsonl", "model.safetensors")  # without which a run is not done


def read(folder: Path) -> dict[str, Any]:
    """The summary, or nothing where there is none, or a damaged one."""
    content = read_json(folder / "summary.json") or {}
    return content if shape.is_summary(content) else {}


def is_run(facts: dict[str, Any]) -> bool:
    """Whether it says which run it is, and how that stands."""
    return None not in (facts.get("hash"), facts.get("seed")) and facts.get("status") in STATUSES


def complete(folder: Path) -> dict[str, Any]:
    """The summary with every key that the command of the run needs; else nothing."""
    content = read(folder)
    return content if shape.is_complete(content) else {}


def is_damaged(folder: Path) -> bool:
    """Whether there is a summary that the command of the run cannot use."""
    return (folder / "summary.json").exists() and not complete(folder)


def digests(folder: Path, names: Sequence[str] = RESULTS) -> dict[str, str]:
    """Checksums of a run's results, as far as they are there."""
    paths = [folder / name for name in names]
    return {path.name: digest(path.read_bytes()) for path in paths if path.is_file()}


def require_whole(folder: Path, done: dict[str, Any]) -> None:
    """Refuse a run that is done but lacks its results: only the user knows where they went."""
    now, rows = digests(folder), read_rows(folder / "metrics.jsonl")
    lost = [name for name in RESULTS if name not in now] or _changed(done, now, rows)
    if not lost and not agrees(done, rows):
        lost = ["summary.json (changed: its results are not those of the rows)"]
    if lost:
        raise FedGMError(
            f"{folder}: the run is {done['status']}, but damaged: {', '.join(lost)} "
            f"{'is' if len(lost) == 1 else 'are'} no longer there as written. "
            "Put it back, or type rerun=true to run it again"
        )


def is_whole(folder: Path, done: dict[str, Any], rows: list[Row]) -> bool:
    """The same for readers of many runs, who check of a model only that it is there."""
    written = done.get("digests") or {}
    gone = [name for name in written if not (folder / name).is_file()]
    return not gone and not _changed(done, digests(folder, RESULTS[:1]), rows)


def agrees(stored: dict[str, Any], rows: list[Row]) -> bool:
    """Whether a summary says what its rows say; a sum may differ in its last bit between versions."""
    try:
        computed = summarise(rows, scoreboard(stored))
    except KeyError:  # a metric that the rows do not have
        return False
    return all(_agree(computed[key], stored.get(key)) for key in ("final", "best", "last10"))


def _agree(computed: dict[str, Any] | None, stored: Any) -> bool:
    """Whether two entries of a summary have the same keys and numbers."""
    if computed is None or not isinstance(stored, dict) or computed.keys() != stored.keys():
        return computed == stored
    pairs = [(computed[key], stored[key]) for key in computed]
    return all(a == b or (None not in (a, b) and math.isclose(a, b, rel_tol=1e-12)) for a, b in pairs)


def _changed(done: dict[str, Any], now: dict[str, str], rows: list[Row]) -> list[str]:
    """Results that are there, but not as the run has written them; older versions kept no checksums."""
    written = done.get("digests") or {}
    if changed := [f"{name} (changed)" for name in now if written.get(name, now[name]) != now[name]]:
        return changed
    whole = done.get("rounds_done") in (None, len(rows))
    return [] if whole else [f"metrics.jsonl (changed: it has {len(rows)} rows)"]


def changes(before: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """What differs between the program that began a run and the one that continues it."""
    old, new = before.get("versions") or {}, now["versions"]
    notes = [f"{k} {old[k]} -> {new[k]}" for k in new if k in old and old[k] != new[k]]
    if before.get("commit") != now["commit"]:
        notes.append(f"commit {before.get('commit')} -> {now['commit']}")
    return notes
