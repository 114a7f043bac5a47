"""Compare stored runs in the browser: one page, from disk, offline."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import click

if TYPE_CHECKING:
    from fedgm.dashboard.collect import Collection, Collector
    from fedgm.results.run import Run

    Trust = tuple[str, ...] | None  # packages that splits may be built from; None: no splits


@click.command()
@click.argument("paths", nargs=-1, metavar="DIR... [trust=[PACKAGE]]", type=click.Path(path_type=Path))
@click.option(
    "--out", default="dashboard.html", show_default=True, type=click.Path(path_type=Path), help="The page."
)
@click.option("--open", "show", is_flag=True, help="Open the page in the browser.")
@click.option(
    "--serve",
    is_flag=True,
    help="Serve the page on this machine and follow running jobs; no file is written.",
)
@click.option("--port", default=8123, show_default=True, type=click.IntRange(0, 65535), help="With --serve.")
@click.option("--partition", is_flag=True, help="Also show how data is split over clients (loads the data).")
@click.option(
    "--wandb", "project", metavar="[ENTITY/]PROJECT", help="Save the comparison as a W&B workspace."
)
def command(
    paths: tuple[Path, ...],
    out: Path,
    show: bool,
    serve: bool,
    port: int,
    partition: bool,
    project: str | None,
) -> None:
    """One self-contained page of all runs below DIR... (default: outputs).

    DIR may also be a file of stored results (*.jsonl). With --partition,
    trust=[PACKAGE] admits parts from there. The page needs no network
    and no server: send it to whoever should see it.
    """
    from fedgm.config.trust import trusted_words
    from fedgm.dashboard.collect import Collector
    from fedgm.errors import RefusedError
    from fedgm.results.find import located

    trust = trusted_words(map(str, paths))
    paths = tuple(path for path in paths if not str(path).startswith("trust="))
    places = [located(path) for path in paths] or [Path("outputs")]
    for place in places:
        if not place.exists():
            raise RefusedError(f"{place}: no such folder or file. Try a first run: fedgm run profile=tiny")
    collector = Collector(places)
    wanted = trust if partition else None
    title = ", ".join(place.resolve().name for place in places)
    if project:
        _save_workspace(project, collector)
    elif serve:
        _serve(collector, title, port, show, wanted)
    else:
        _write(collector, title, out, show, wanted)


def _write(collector: "Collector", title: str, out: Path, show: bool, trust: "Trust") -> None:
    """The page as a file."""
    from fedgm.dashboard import payload, render
    from fedgm.files import write_atomically

    collection = collector.collect()
    text = render.render(
        payload.build(collection, title, lambda run: link(run, out), *_splits(collection, trust))
    )
    out.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(out, text)
    click.echo(f"{out}: {len(collection.runs)} runs, {len(text) / 1e6:.1f} MB")
    if collection.left_out:
        count = sum(map(len, collection.left_out.values()))
        click.echo(f"left out: {count} (the page says what)")
    if show:
        click.launch(out.resolve().as_uri())


def link(run: "Run", out: Path) -> str | None:
    """The run folder as seen from the page, so that both can move together."""
    if run.folder is None:
        return None
    return quote(os.path.relpath(run.folder.resolve(), out.resolve().parent).replace(os.sep, "/")) + "/"


def _serve(collector: "Collector", title: str, port: int, show: bool, trust: "Trust") -> None:
    """Serve until Ctrl-C."""
    from asyncio import run

    from fedgm.dashboard.serve import Server
    from fedgm.dashboard.source import PayloadSource
    from fedgm.errors import RefusedError

    splits = _splits(collector.collect(), trust) if trust is not None else ([], [])
    try:
        server = Server(PayloadSource(collector, title, splits), port)
    except OSError as error:
        raise RefusedError(f"port {port} cannot be used ({error.strerror}). Try --port 0") from None
    click.echo(f"{server.address(server.access.token)}  (Ctrl-C ends it)")
    if show:
        click.launch(server.address(server.access.once()))
    try:
        run(server.serve())
    except KeyboardInterrupt:
        click.echo("")


def _splits(collection: "Collection", trust: "Trust") -> tuple[list[dict[str, Any]], list[str]]:
    """Tables of class counts; without the flag nothing is loaded."""
    from fedgm.dashboard.split import splits

    return splits(collection, trust) if trust is not None else ([], [])


def _save_workspace(project: str, collector: "Collector") -> None:
    from fedgm.dashboard.workspace import save

    click.echo(f"saved: {save(project, collector.collect())}")
    click.echo("Tested against a stand-in for W&B's server only, not against the real service.")
