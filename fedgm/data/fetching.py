"""Fetched data: where it is stored, the lock under which one process fetches it, and the progress shown."""

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Callable, Generator
from pathlib import Path

from fedgm.errors import DataError
from fedgm.files import user_cache

Progress = Callable[[str, int, int | None], None]  # (what is being done, how far, of how much if known)


class Unavailable(DataError):  # noqa: N818 - it says that the next source should be tried
    """This source cannot deliver here."""


def cache_folder(root: str | None = None) -> Path:
    """``root``, else ``$FEDGM_DATA``, else ``fedgm`` in the user's cache."""
    if chosen := root or os.environ.get("FEDGM_DATA"):
        return Path(chosen).expanduser().absolute()
    return user_cache()


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
    """Progress that is not shown."""
    del what, done, total


@contextlib.contextmanager
def shown_progress() -> Generator[Progress]:
    """A bar on a terminal, one line per step elsewhere; nothing at all when the array is stored already."""
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_terminal:
        yield _plain_lines()
        return

    from rich.progress import BarColumn, DownloadColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    head = [TextColumn("{task.description:9}"), BarColumn()]
    bars = {"download": Bar(*head, DownloadColumn(), TimeElapsedColumn(), console=console)}
    counts = Bar(*head, MofNCompleteColumn(), TimeElapsedColumn(), console=console)
    running: dict[str, int] = {}

    def report(what: str, done: int, total: int | None) -> None:
        bar = bars.get(what, counts)
        if what not in running:
            for other in {counts, *bars.values()} - {bar}:
                other.stop()
            bar.start()
            running[what] = bar.add_task(what, total=total)
        bar.update(running[what], completed=done, total=total)  # pyright: ignore[reportArgumentType]

    try:
        yield report
    finally:
        for bar in (counts, *bars.values()):
            bar.stop()


@contextlib.contextmanager
def _explained(folder: Path) -> Generator[None]:
    try:
        yield
    except OSError as error:
        raise DataError(
            f"the cache folder {folder} cannot be used: {error.strerror or error}.\n"
            "Choose another with data.root=DIR or the environment variable FEDGM_DATA"
        ) from error


def _plain_lines() -> Progress:
    import click

    seen: set[tuple[str, int]] = set()

    def report(what: str, done: int, total: int | None) -> None:
        tenth = 10 * done // total if total else done // (20 << 20)
        if (what, tenth) in seen:
            return
        seen.add((what, tenth))
        amount = f"{done / 1e6:.0f} MB" if what == "download" else f"{done}/{total}"
        click.echo(f"{what}: {amount}", err=True)

    return report
