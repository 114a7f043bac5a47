"""What a served page is made of: the newest payload, and files of the runs on it."""

import hashlib
import os
import stat
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO

from fedgm.dashboard import payload, render
from fedgm.dashboard.collect import Collection, Collector
from fedgm.results.run import Run

LARGEST = 2**31  # bytes of a file that is given out
Splits = tuple[Sequence[dict[str, Any]], Sequence[str]]  # tables, and notes on what is missing


def run_key(run: Run) -> str:
    """How a served run is addressed."""
    return f"{run.facts['hash'][:16]}-{run.facts['seed']}"


class PayloadSource:
    """The newest payload, built once for all who ask."""

    def __init__(self, collector: Collector, title: str, splits: Splits = ((), ())) -> None:
        self.collector, self.title, self.splits = collector, title, splits
        self._lock = threading.Lock()
        self._folders: dict[str, tuple[Path, Path]] = {}  # as it was walked to, and what that was then
        self._collection: Collection | None = None
        self._state: object = None
        self._payload: dict[str, Any] = {}
        self._data, self._tag = b"", ""

    def data(self) -> tuple[bytes, str]:
        """The payload as JSON, and a tag that changes with it."""
        with self._lock:
            self._collect()
            return self._data, self._tag

    def page(self) -> bytes:
        """The page with the payload in it."""
        with self._lock:
            self._collect()
            return render.render(self._payload, live=True).encode()

    def _collect(self) -> None:
        """Read what has changed; build the payload again only if anything has."""
        collection = self.collector.collect()
        # Runs that were not read again are the same objects; keeping them keeps their ids theirs.
        state = ([id(run) for run in collection.runs], collection.left_out)
        if state == self._state:
            return
        folders = {run_key(run): run.folder for run in collection.runs if run.folder is not None}
        self._folders = {key: (folder, folder.resolve()) for key, folder in folders.items()}
        self._payload = payload.build(collection, self.title, _link, *self.splits)
        self._data = render.dumps(self._payload).encode()
        self._tag = f'"{hashlib.sha256(self._data).hexdigest()[:32]}"'
        self._state, self._collection = state, collection

    def file(self, key: str, name: str) -> BinaryIO | None:
        """A file of a run that is on the page, opened; nothing else can be asked for."""
        folder, real = self._folders.get(key, (None, None))
        if folder is None or real is None or name not in payload.FILES:
            return None
        try:
            # A folder on the way may have become a link since the page was built.
            return open_plain(folder / name) if (folder / name).resolve() == real / name else None
        except OSError:
            return None


def open_plain(path: Path) -> BinaryIO | None:
    """A regular file that is not too large: no link is followed, no pipe waited for, no device read."""
    file = os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb")
    status = os.fstat(file.fileno())
    if stat.S_ISREG(status.st_mode) and status.st_size <= LARGEST:
        return file
    file.close()
    return None


def _link(run: Run) -> str | None:
    return f"runs/{run_key(run)}/" if run.folder is not None else None
