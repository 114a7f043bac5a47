"""The one walker over stored runs: run folders, folders above them, and files of many runs."""

import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any
from warnings import warn

from fedgm import intake, seals
from fedgm.config.identity import dotted
from fedgm.config.options import conf_dir
from fedgm.config.trust import LARGEST
from fedgm.errors import FedGMError, RefusedError
from fedgm.lock import is_alive
from fedgm.plain import message
from fedgm.results import archive, shape, summary
from fedgm.results.columns import Rows
from fedgm.results.index import Index, Stamp
from fedgm.results.rows import is_evaluation, stream
from fedgm.results.run import Run, Status, once

NOT_STORED = ("output_dir", "rerun", "stop_after", "track", "best", "winners", "figure", "checkpoint")
READ = ("summary.json", "config.yaml", "metrics.jsonl", "model.safetensors")  # what a run is read from
STORED = Path("docs/results")
BEGUN = "no summary.json: not a run folder, or one that has just begun"
DAMAGED = "summary.json is damaged"
UNREADABLE = (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError)


def read_folder(folder: Path, all_rows: bool = False) -> Run | None:
    """The run of a folder, with every row where asked for; None where none can be read."""
    facts = summary.read(folder)
    if not summary.is_run(facts):
        return None
    measured, rows, count = _rows(folder / "metrics.jsonl", all_rows)
    kept = shape.facts_of(facts) | {"rounds_done": count}
    kept["status"] = status_now(folder, facts, count)
    config = {} if seals.changed(folder, facts, [seals.CONFIG]) else configuration(folder)
    return Run(kept, config, measured, folder, rows, is_sealed=seals.KEY in facts)


def status_now(folder: Path, facts: dict[str, Any], rows: int) -> Status:
    """The status of a summary, unless the folder shows that it is no longer true."""
    status = Status(facts["status"])
    if not summary.is_whole(folder, facts, rows) and not is_alive(folder):  # a process writes one by one
        return Status.DAMAGED  # its command says what is missing, and what to type
    if status == Status.RUNNING and not is_alive(folder):
        return Status.KILLED  # the same command continues it
    return status


def _rows(path: Path, all_rows: bool) -> tuple[Rows, Rows, int]:
    """Rows with an evaluation, with the local steps and bytes so far and without times; all; how many."""
    steps, sent, count, measured, every = 0, 0, 0, Rows(), Rows()
    for row in stream(path):
        count += 1
        steps += int(row.get("cohort/steps") or 0)
        sent += int(row.get("bytes/up") or 0)
        if all_rows:
            every.append(row)
        if is_evaluation(row):
            kept = {k: v for k, v in row.items() if not k.startswith("time/") and k != "samples_per_s"}
            measured.append({**kept, "total/steps": steps, "total/bytes": sent})
    return measured, every, count


def configuration(folder: Path) -> dict[str, Any]:
    """config.yaml with dotted keys."""
    try:
        content = intake.from_yaml(intake.read_text(folder / "config.yaml", LARGEST), aliases=False)
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

    def __init__(self, places: Iterable[str | Path], all_rows: bool = False, index: bool = False) -> None:
        self.places, self.all_rows = [located(Path(place)) for place in places], all_rows
        self._index = index  # whether runs with their last evaluations alone will do
        self._read: dict[Path, tuple[object, list[Run | str]]] = {}

    def walk(self) -> Iterator[tuple[Path, Path, Run | str]]:
        """(place, folder or file, run or why there is none), folders before files of many runs."""
        for place in self.places:
            folders, files, errors = _below(place)
            with Index(place if self._index else None) as index:
                for folder in folders:
                    yield place, folder, self._folder(folder, index)
            for error in errors:
                yield place, Path(error.filename), f"cannot be read ({error.strerror})"
            for file in files:
                for run in self._archive(file, is_named=file == place):
                    yield place, file, run

    def _folder(self, folder: Path, index: Index) -> Run | str:
        state = stamp(folder)

        def read() -> Run | str:
            seen = state, is_alive(folder)
            if self._read.get(folder, (None,))[0] != seen:
                self._read[folder] = seen, [_run(folder, self.all_rows)]
            return self._read[folder][1][0]

        return index.read(folder, state, read)

    def _archive(self, file: Path, is_named: bool) -> list[Run | str]:
        if not is_named and not archive.is_archive(file):
            return []
        state = stamp(file.parent, (file.name,))
        if self._read.get(file, (None,))[0] != state or state == (None,):
            self._read[file] = state, _archive(file)
        return self._read[file][1]


def _below(place: Path) -> tuple[list[Path], list[Path], list[OSError]]:
    """Folders that look like runs, files that may hold many runs, and folders that cannot be listed."""
    folders, files, errors = list[Path](), list[Path](), list[OSError]()
    for folder, inner, names in os.walk(place, onerror=errors.append):
        if {"summary.json", "metrics.jsonl"} & {*inner, *names}:
            folders.append(Path(folder))
        files += [Path(folder, name) for name in names if name.endswith(".jsonl")]
    if not place.is_dir():
        files, errors = [place] if place.exists() else [], []
    return sorted(folders), sorted(files), errors


def _run(folder: Path, all_rows: bool) -> Run | str:
    """The run of a folder, or why there is none."""
    try:
        _require_readable(folder)
        if not (folder / "summary.json").exists():
            return BEGUN
        return read_folder(folder, all_rows) or DAMAGED
    except UNREADABLE as error:
        return f"cannot be read ({type(error).__name__}: {error})"


def _require_readable(folder: Path) -> None:
    """A file that we may not read says nothing about its run: it is not damaged."""
    for name in READ:
        try:
            intake.opened(folder / name, sys.maxsize).close()
        except PermissionError:
            raise
        except (OSError, ValueError):
            continue


def _archive(file: Path) -> list[Run | str]:
    """The runs of a file, or why there are none."""
    try:
        return list(archive.read(file))
    except FedGMError as error:
        return [str(error).removeprefix(f"{file}: ")]


def stamp(folder: Path, names: Iterable[str] = READ) -> Stamp:
    """Times and sizes of files: what has not changed is not read again."""
    stamps = list[tuple[int, int, int] | None]()
    for name in names:
        try:
            status = (folder / name).stat()
            stamps.append((status.st_mtime_ns, status.st_ctime_ns, status.st_size))
        except OSError:
            stamps.append(None)
    return tuple(stamps)


def below(*places: str | Path, all_rows: bool = False, index: bool = False) -> list[Run]:
    """Every run of the places once; what cannot be read is left out, with a warning.

    With an ``index`` a run may come from there, with its last evaluations alone.
    """
    runs, notes = list[Run](), dict[str, list[str]]()
    for place, path, run in Walker(places, all_rows, index).walk():
        if isinstance(run, Run):
            runs.append(run)
        elif path == place and not place.is_dir():
            raise RefusedError(f"{path}: {run}")  # asked for by name
        elif run != BEGUN:
            notes.setdefault(run, []).append(str(path))
    for note, paths in notes.items():
        warn(message(f"left out: {', '.join(paths)}: {note}"), stacklevel=2)
    return list(once(runs).values())


def find(places: Iterable[str | Path], index: bool = False) -> list[Run]:
    """All runs of the places, each once; a place without any is an error."""
    runs: list[Run] = []
    for place in map(Path, places):
        there = below(place, index=index)
        if not there:
            raise RefusedError(
                f"{place}: contains no run. Try a folder of runs, a file of --export, or a first run: "
                "fedgm run profile=tiny"
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
