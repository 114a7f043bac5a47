"""summary.json as readers see it: what a run was, how it ended, and whether its results are still whole."""

import math
from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path
from typing import Any

from fedgm.errors import FedGMError
from fedgm.files import read_json
from fedgm.results import shape
from fedgm.results.rows import Row, summarise
from fedgm.results.rows import read as read_rows
from fedgm.seals import CONFIG, SUMMARY, changed, is_as_written
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
    """The summary with every key that the command of the run needs; else nothing.

    Nothing where it was changed, either, unless it says that the run is done: then the command is refused.
    """
    content = read(folder)
    usable = is_as_written(content, SUMMARY) or content.get("status") in DONE
    return content if usable and shape.is_complete(content) else {}


def is_damaged(folder: Path) -> bool:
    """Whether there is a summary that the command of the run cannot use."""
    return (folder / "summary.json").exists() and not complete(folder)


def covered(status: str) -> tuple[str, ...]:
    """The files whose checksums a summary holds: while a run is running, rows are added to the others."""
    if status == Status.RUNNING:
        return (CONFIG,)
    return (CONFIG, *RESULTS) if status in DONE else (CONFIG, RESULTS[0])


def require_whole(folder: Path, done: dict[str, Any]) -> None:
    """Refuse a run that is done but lacks its results: only the user knows where they went."""
    rows = read_rows(folder / RESULTS[0])
    lost = [name for name in RESULTS if not (folder / name).is_file()] or _changed(
        folder, done, RESULTS, len(rows)
    )
    if not is_as_written(done, SUMMARY):
        lost = ["summary.json (changed)"]
    if not lost and not agrees(done, rows):
        lost = ["summary.json (changed: its results are not those of the rows)"]
    if lost:
        raise FedGMError(
            f"{folder}: the run is {done['status']}, but damaged: {', '.join(lost)} "
            f"{'is' if len(lost) == 1 else 'are'} no longer there as written. "
            "Put it back, or type rerun=true to run it again"
        )


def is_whole(folder: Path, facts: dict[str, Any], rows: int) -> bool:
    """Whether the files of a folder fit each other, for readers of many runs: a model need only be there."""
    gone = [name for name in facts.get("digests") or {} if not (folder / name).is_file()]
    small = (CONFIG, RESULTS[0])
    return is_as_written(facts, SUMMARY) and not gone and not _changed(folder, facts, small, rows)


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


def _changed(folder: Path, facts: dict[str, Any], files: Iterable[str], rows: int) -> list[str]:
    """Files that are there, but not as the run has written them; older versions kept no checksums."""
    if unlike := [f"{name} (changed)" for name in changed(folder, facts, files)]:
        return unlike
    whole = facts["status"] not in DONE or facts.get("rounds_done") in (None, rows)
    return [] if whole else [f"metrics.jsonl (changed: it has {rows} rows)"]


def changes(before: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """What differs between the program that began a run and the one that continues it."""
    old, new = before.get("versions") or {}, now["versions"]
    notes = [f"{k} {old[k]} -> {new[k]}" for k in new if k in old and old[k] != new[k]]
    if before.get("commit") != now["commit"]:
        notes.append(f"commit {before.get('commit')} -> {now['commit']}")
    return notes
