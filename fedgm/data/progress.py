"""How far a download is: a bar on a terminal, lines elsewhere."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from fedgm.data.cache import Progress


@contextmanager
def shown_progress() -> "Generator[Progress]":
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


def _plain_lines() -> "Progress":
    seen: set[tuple[str, int]] = set()

    def report(what: str, done: int, total: int | None) -> None:
        tenth = 10 * done // total if total else done // (20 << 20)
        if (what, tenth) in seen:
            return
        seen.add((what, tenth))
        amount = f"{done / 1e6:.0f} MB" if what == "download" else f"{done}/{total}"
        click.echo(f"{what}: {amount}", err=True)

    return report
