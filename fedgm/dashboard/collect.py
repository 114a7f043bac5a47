"""Find the runs below folders and in archives, and say what was left out and why."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fedgm import lock
from fedgm.errors import FedGMError
from fedgm.results import archive, record
from fedgm.results.record import RunRecord
from fedgm.results.rows import Row

OWN_FILES = ("config.yaml", "metrics.jsonl", "summary.json")
FILES = ("summary.json", "config.yaml", "metrics.jsonl", "curves.png", "timeline.png", "model.safetensors")
STATUSES = ("running", "paused", "finished", "diverged", "failed", "stopped", "killed")
UNREADABLE = (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError)


@dataclass(frozen=True)
class PageRun:
    """A record, its evaluations with the seconds until then, and how often each staleness occurred."""

    record: RunRecord
    evaluations: list[Row] = field(repr=False)
    staleness: list[tuple[float, int]]
    files: list[str]


@dataclass
class Collection:
    """The runs, sorted, and a line for each thing that is not on the page."""

    runs: list[PageRun]
    left_out: list[str]


class Collector:
    """Reads again only what has changed since the last time, so that a page can follow running jobs."""

    def __init__(self, paths: Iterable[Path]) -> None:
        self.paths = list(paths)
        self._known: dict[Path, tuple[object, PageRun | str]] = {}
        self._stored: dict[Path, tuple[object, list[PageRun | str]]] = {}

    def collect(self) -> Collection:
        """All runs; of two with the same hash and seed the first, folders before archives."""
        found: dict[tuple[str, int], PageRun] = {}
        left_out: list[str] = []
        for path in self.paths:
            for name, run in (*self._folders(path), *self._archives(path)):
                if isinstance(run, str):
                    left_out.append(f"{name}: {run}")
                elif run.record.key in found:
                    left_out.append(f"{name}: the same run (hash and seed) is already on the page")
                else:
                    found[run.record.key] = run
        return Collection(sorted(found.values(), key=_order), left_out)

    def _folders(self, path: Path) -> Iterator[tuple[str, PageRun | str]]:
        """Every folder below ``path`` that holds a file of a run."""
        if not path.is_dir():
            return
        names = ("summary.json", "metrics.jsonl")
        folders = {file.parent for name in names for file in path.rglob(name)}
        for folder in sorted(folders):
            yield _relative(folder, path), self._cached(folder)

    def _cached(self, folder: Path) -> PageRun | str:
        state = (tuple(_stamp(folder / name) for name in FILES), lock.is_alive(folder))
        if self._known.get(folder, (None,))[0] != state:
            self._known[folder] = (state, _read_folder(folder))
        return self._known[folder][1]

    def _archives(self, path: Path) -> Iterator[tuple[str, PageRun | str]]:
        """The runs of every file of stored results."""
        below = sorted(path.rglob("*.jsonl")) if path.is_dir() else [path]
        for file in below:
            if path.is_dir() and not archive.is_archive(file):
                continue
            state = _stamp(file)
            if self._stored.get(file, (None,))[0] != state or state is None:
                self._stored[file] = (state, _read_archive(file))
            for run in self._stored[file][1]:
                yield _relative(file, path), run


def _read_archive(file: Path) -> list[PageRun | str]:
    """The runs of a file, or why there are none."""
    try:
        return [_from_archive(stored) for stored in archive.read(file)]
    except FedGMError as error:
        return [str(error).removeprefix(f"{file}: ")]
    except UNREADABLE as error:
        return [f"stored results cannot be read ({type(error).__name__})"]


def _read_folder(folder: Path) -> PageRun | str:
    """A run, or why there is none."""
    if not (folder / "summary.json").exists():
        return "no summary.json: not a run folder, or one that has just begun"
    try:
        found = record.with_rows(folder)
        if found is None:
            return "summary.json is not that of a run"
        run, rows = found
        if run.status == "damaged" or (run.is_done and not rows):
            return "its rows are not those that the run has written"
        _check(run)
        files = [name for name in FILES if (folder / name).exists()]
        return PageRun(run, _with_seconds(run.evaluations, rows), _histogram(rows), files)
    except UNREADABLE as error:
        return f"cannot be read ({type(error).__name__}: {error})"


def _from_archive(stored: RunRecord) -> PageRun:
    _check(stored)
    return PageRun(stored, stored.evaluations, _histogram(stored.evaluations), [])


def _check(run: RunRecord) -> None:
    """Raise where the facts are not of the kinds that a run writes."""
    facts = run.facts
    if not isinstance(facts["hash"], str) or not isinstance(facts["seed"], int):
        raise TypeError("hash or seed has the wrong type")
    if facts["status"] not in STATUSES:
        raise ValueError(f"unknown status {facts['status']!r}")
    if not all(isinstance(row.get("round"), int) for row in run.evaluations):
        raise TypeError("a row without its round")


def _with_seconds(evaluations: list[Row], rows: list[Row]) -> list[Row]:
    """Evaluations with the wall time until then, where every row has one."""
    seconds, at = 0.0, dict[Any, float]()
    for row in rows:
        if row.get("time/round") is None:
            return evaluations
        seconds += float(row["time/round"] or 0) + float(row.get("time/eval") or 0)
        at[row["round"]] = seconds
    return [{**row, "total/seconds": at[row["round"]]} for row in evaluations]


def _histogram(rows: list[Row]) -> list[tuple[float, int]]:
    """How many rounds had which mean staleness; nothing where no model was ever stale."""
    values = [row.get("cohort/staleness") for row in rows]
    counts = Counter(round(float(value), 2) for value in values if value is not None)
    return sorted(counts.items()) if any(value > 0 for value in counts) else []


def _stamp(file: Path) -> tuple[int, int] | None:
    try:
        known = file.stat()
    except OSError:
        return None
    return known.st_mtime_ns, known.st_size


def _order(run: PageRun) -> tuple[str, str, str, int]:
    facts = run.record.facts
    return str(facts.get("name")), str(facts.get("algorithm")), facts["hash"], facts["seed"]


def _relative(path: Path, start: Path) -> str:
    """The path as the user would type it."""
    return str(start) if path == start else f"{start.name or start}/{path.relative_to(start)}"
