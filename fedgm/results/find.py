"""The one walker over stored runs: run folders, folders above them, and files of many runs."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any
from warnings import warn

from fedgm import intake, seals
from fedgm.config.identity import dotted
from fedgm.config.options import conf_dir
from fedgm.config.trust import text_of
from fedgm.errors import FedGMError, RefusedError
from fedgm.lock import is_alive
from fedgm.plain import message
from fedgm.results import archive, shape, summary
from fedgm.results.rows import Row
from fedgm.results.rows import read as read_rows
from fedgm.results.run import Run, Status, once

NOT_STORED = ("output_dir", "rerun", "stop_after", "track", "best", "winners", "figure", "checkpoint")
READ = ("summary.json", "config.yaml", "metrics.jsonl", "model.safetensors")  # what a run is read from
STORED = Path("docs/results")
BEGUN = "no summary.json: not a run folder, or one that has just begun"
DAMAGED = "summary.json is damaged"
UNREADABLE = (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError)
Stamp = tuple[tuple[int, int] | None, ...]


def read_folder(folder: Path, all_rows: bool = False) -> Run | None:
    """The run of a folder, with every row where asked for; None where none can be read."""
    facts = summary.read(folder)
    if not summary.is_run(facts):
        return None
    rows = read_rows(folder / "metrics.jsonl")
    kept = shape.facts_of(facts) | {"rounds_done": len(rows)}
    kept["status"] = status_now(folder, facts, rows)
    config = {} if seals.changed(folder, facts, [seals.CONFIG]) else configuration(folder)
    is_sealed = seals.KEY in facts
    return Run(kept, config, evaluations(rows), folder, rows if all_rows else [], is_sealed)


def status_now(folder: Path, facts: dict[str, Any], rows: list[Row]) -> Status:
    """The status of a summary, unless the folder shows that it is no longer true."""
    status = Status(facts["status"])
    if not summary.is_whole(folder, facts, rows) and not is_alive(folder):  # a process writes one by one
        return Status.DAMAGED  # its command says what is missing, and what to type
    if status == Status.RUNNING and not is_alive(folder):
        return Status.KILLED  # the same command continues it
    return status


def evaluations(rows: list[Row]) -> list[Row]:
    """Rows with an evaluation, with the local steps and bytes so far and without times."""
    steps, sent, measured = 0, 0, list[Row]()
    for row in rows:
        steps += int(row.get("cohort/steps") or 0)
        sent += int(row.get("bytes/up") or 0)
        if any(key.startswith("test/") and value is not None for key, value in row.items()):
            kept = {k: v for k, v in row.items() if not k.startswith("time/") and k != "samples_per_s"}
            measured.append({**kept, "total/steps": steps, "total/bytes": sent})
    return measured


def configuration(folder: Path) -> dict[str, Any]:
    """config.yaml with dotted keys."""
    try:
        content = intake.from_yaml(text_of(folder / "config.yaml"))
    except (OSError, ValueError):
        return {}
    if not isinstance(content, dict):
        return {}
    return dotted({key: value for key, value in content.items() if key not in NOT_STORED})


def located(place: Path) -> Path:
    """The place; ``docs/results`` and what is in it are those of the package where there is none here."""
    ours = conf_dir().parent / place
    return ours if place.parts[:2] == STORED.parts and not place.exists() else place


class Walker:
    """All runs of some places; walked again, it reads only the files that have changed."""

    def __init__(self, places: Iterable[str | Path], all_rows: bool = False) -> None:
        self.places, self.all_rows = [located(Path(place)) for place in places], all_rows
        self._read: dict[Path, tuple[object, list[Run | str]]] = {}

    def walk(self) -> Iterator[tuple[Path, Path, Run | str]]:
        """(place, folder or file, run or why there is none), folders before files of many runs."""
        for place in self.places:
            for path, run in (*self._folders(place), *self._archives(place)):
                yield place, path, run

    def _folders(self, place: Path) -> Iterator[tuple[Path, Run | str]]:
        names = ("summary.json", "metrics.jsonl") if place.is_dir() else ()
        for folder in sorted({file.parent for name in names for file in place.rglob(name)}):
            state = stamp(folder), is_alive(folder)
            if self._read.get(folder, (None,))[0] != state:
                self._read[folder] = state, [self._folder(folder)]
            yield folder, self._read[folder][1][0]

    def _folder(self, folder: Path) -> Run | str:
        if not (folder / "summary.json").exists():
            return BEGUN
        try:
            return read_folder(folder, self.all_rows) or DAMAGED
        except UNREADABLE as error:
            return f"cannot be read ({type(error).__name__}: {error})"

    def _archives(self, place: Path) -> Iterator[tuple[Path, Run | str]]:
        files = sorted(place.rglob("*.jsonl")) if place.is_dir() else [place] if place.exists() else []
        for file in files:
            if place.is_dir() and not archive.is_archive(file):
                continue
            state = stamp(file.parent, (file.name,))
            if self._read.get(file, (None,))[0] != state or state == (None,):
                self._read[file] = state, _archive(file)
            for run in self._read[file][1]:
                yield file, run


def _archive(file: Path) -> list[Run | str]:
    """The runs of a file, or why there are none."""
    try:
        return list(archive.read(file))
    except FedGMError as error:
        return [str(error).removeprefix(f"{file}: ")]


def stamp(folder: Path, names: Iterable[str] = READ) -> Stamp:
    """Time and size of files: what has not changed is not read again."""
    stamps: list[tuple[int, int] | None] = []
    for name in names:
        try:
            status = (folder / name).stat()
            stamps.append((status.st_mtime_ns, status.st_size))
        except OSError:
            stamps.append(None)
    return tuple(stamps)


def below(*places: str | Path, all_rows: bool = False) -> list[Run]:
    """Every run of the places once; what cannot be read is left out, with a warning."""
    runs, notes = list[Run](), dict[str, list[str]]()
    for place, path, run in Walker(places, all_rows).walk():
        if isinstance(run, Run):
            runs.append(run)
        elif path == place and not place.is_dir():
            raise RefusedError(f"{path}: {run}")  # asked for by name
        elif run != BEGUN:
            notes.setdefault(run, []).append(str(path))
    for note, paths in notes.items():
        warn(message(f"left out: {', '.join(paths)}: {note}"), stacklevel=2)
    return list(once(runs).values())


def find(places: Iterable[str | Path]) -> list[Run]:
    """All runs of the places, each once; a place without any is an error."""
    runs: list[Run] = []
    for place in map(Path, places):
        there = below(place)
        if not there:
            raise RefusedError(
                f"{place}: contains no run. Try outputs, outputs/NAME/RUN/seed=0 or a file of --export"
            )
        runs += there
    return list(once(runs).values())


def one(place: str | Path) -> Run:
    """The run of a folder, or the only one below it."""
    path = Path(place)
    run = read_folder(path)
    if run is not None:
        return run
    runs = below(path) if path.is_dir() else []
    if len(runs) == 1:
        return runs[0]
    near = f"Try {runs[0].folder}" if runs else "Try outputs/NAME/RUN/seed=0"
    raise RefusedError(f"{path} is not the folder of one run ({len(runs)} below it). {near}")
