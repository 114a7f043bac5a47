"""Where fetched data is stored once, and the lock that keeps two processes from fetching it twice."""

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Callable, Generator
from pathlib import Path

from fedgm.errors import DataError

Progress = Callable[[str, int, int | None], None]  # (what is being done, how far, of how much if known)


class Unavailable(DataError):  # noqa: N818 - it says that the next source should be tried
    """This source has nothing to offer here."""


def cache_folder(root: str | None = None) -> Path:
    """``root``, else ``$FEDGM_DATA``, else ``fedgm`` in the user's cache."""
    if chosen := root or os.environ.get("FEDGM_DATA"):
        return Path(chosen).expanduser().absolute()
    cache = os.environ.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path.home() / ".cache") / "fedgm"


@contextlib.contextmanager
def alone(folder: Path, name: str) -> Generator[None]:
    """Hold the lock of one data set: one process fetches it, others wait and then find it stored."""
    with _explained(folder):
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / f".{name}.lock").open("w")
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextlib.contextmanager
def scratch_folder(folder: Path, name: str) -> Generator[Path]:
    """A folder beside the target, so that the last step is a rename; what a killed fetch left is removed."""
    prefix = f".{name}-fetch-"
    with _explained(folder):
        for old in folder.glob(f"{prefix}*"):
            shutil.rmtree(old, ignore_errors=True)
        with tempfile.TemporaryDirectory(prefix=prefix, dir=folder, ignore_cleanup_errors=True) as made:
            yield Path(made)


def silent(what: str, done: int, total: int | None) -> None:
    """Progress that nobody watches."""
    del what, done, total


@contextlib.contextmanager
def _explained(folder: Path) -> Generator[None]:
    try:
        yield
    except OSError as error:
        raise DataError(
            f"the cache folder {folder} cannot be used: {error.strerror or error}.\n"
            "Choose another with data.root=DIR or the environment variable FEDGM_DATA"
        ) from error
