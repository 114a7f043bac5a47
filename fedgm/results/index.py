"""What was read of runs that are done, kept for the next command, by the times and sizes of their files.

It is in the cache of the user, not in a run folder, which can come from anybody. Of the evaluations the last
ones are kept: enough for a list and for the scores in it. If anything is wrong with the file, runs are read.
"""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from fedgm.files import make_folder, user_cache, write_atomically
from fedgm.results.curve import LAST
from fedgm.results.run import Run
from fedgm.results.summary import Status
from fedgm.seals import digest

LEAST = 100  # runs; fewer are read as fast
Found = TypeVar("Found")
Stamp = tuple[tuple[int, int, int] | None, ...]  # (modified, changed, size) of each file; None: not there


class Index:
    """The runs of a place: those that were asked for are written when it is left."""

    def __init__(self, place: Path | None) -> None:
        self._path = _path(place) if place is not None else None  # None: nothing is kept
        self._stored: dict[str, list[Any]] = _read(self._path) if self._path else {}
        self._kept: dict[str, list[Any]] = {}
        self._shared: dict[str, Any] = {}  # the configuration that the others are compared with
        program, shared = self._stored.pop("", ["", {}])
        if self._path and program == _program():
            self._shared = shared
        else:
            self._stored = {}
        self._is_new = False

    def __enter__(self) -> "Index":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None and self._path and self._is_new and len(self._kept) >= LEAST:
            _write(self._path, {"": [_program(), self._shared], **self._kept})

    def read(self, folder: Path, stamp: Stamp, reader: Callable[[], Found]) -> Run | Found:
        """The run of a folder: from here, or else by ``reader``, and here the next time if it is done."""
        if run := self._get(folder, stamp):
            return run
        found = reader()
        if isinstance(found, Run) and found.is_done and self._path is not None:
            self._put(folder, stamp, found)
        return found

    def _get(self, folder: Path, stamp: Stamp) -> Run | None:
        """The run as it was read, if its files have not been touched since."""
        entry = self._stored.get(str(folder))
        if entry is None or entry[0] != [None if part is None else list(part) for part in stamp]:
            return None
        _, facts, differs, missing, evaluations, is_sealed, mark = entry
        config = {**self._shared, **differs}
        for key in missing:
            del config[key]
        self._kept[str(folder)] = entry
        facts = {**facts, "status": Status(facts["status"])}
        return Run(facts, config, evaluations, folder, is_sealed=is_sealed, mark=mark)

    def _put(self, folder: Path, stamp: Stamp, run: Run) -> None:
        shared = self._shared = self._shared if self._kept or self._stored else run.config
        differs = {k: v for k, v in run.config.items() if k not in shared or not _same(shared[k], v)}
        missing = [key for key in shared if key not in run.config]
        last = list(run.evaluations[-LAST:])
        self._kept[str(folder)] = [stamp, run.facts, differs, missing, last, run.is_sealed, run.key[0]]
        self._is_new = True


def _same(one: Any, other: Any) -> bool:
    """Equal, and of the same kind: 1, 1.0 and true are not the same text."""
    return type(one) is type(other) and one == other and str(one) == str(other)


def _path(place: Path) -> Path | None:
    """One file for a place."""
    try:
        name = hashlib.sha256(f"{place.absolute()}\n{place}".encode(errors="surrogateescape")).hexdigest()
        return user_cache() / "runs" / f"{name[:32]}.json"
    except (OSError, RuntimeError):  # no home folder, no working directory
        return None


def _program() -> str:
    """The program that reads: a changed one reads everything again."""
    sources = sorted(Path(__file__).parents[1].glob("*/*.py"))
    return digest(repr([(str(file), file.stat().st_mtime_ns) for file in sources]).encode())


def _read(path: Path) -> dict[str, list[Any]]:
    """What was written, or nothing."""
    try:
        checksum, _, content = path.read_bytes().partition(b"\n")
        return json.loads(content) if digest(content).encode() == checksum else {}
    except (OSError, ValueError, RecursionError):
        return {}


def _write(path: Path, content: dict[str, list[Any]]) -> None:
    """As far as it can be: a full disk, or a home that may not be written, costs time and nothing else."""
    try:
        text = json.dumps(content, separators=(",", ":")).encode()
        make_folder(path.parent)
        write_atomically(path, b"".join((digest(text).encode(), b"\n", text)))
    except (OSError, ValueError):
        return
