"""``fedgm data``: fetch a dataset ahead of time, and draw the split that a run will train on."""

from typing import Any

import click

from fedgm.data.command import data as fetching


class DataGroup(click.Group):
    """Datasets by name; with ``--show`` what follows are the overrides of a run."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """``--show`` may stand anywhere: ``data cifar10 --show`` is ``data --show data=cifar10``."""
        if "--show" in args:
            words = [word for word in args if word != "--show"]
            chosen = [f"data={word}" if word in self.commands else word for word in words]
            args = ["show", *chosen]
        return super().parse_args(ctx, args)


@click.group(cls=DataGroup, commands=fetching.commands)
@click.option(
    "--show", is_flag=True, expose_value=False, help="Draw the split of the run with these overrides."
)
@click.option(
    "--out", metavar="FILE", expose_value=False, help="Where --show draws  [default: partition.png]."
)
def data() -> None:
    """Fetch datasets, and draw how they are split over the clients of a run.

    \b
    fedgm data cifar10                                    fetch it now
    fedgm data --show                                     the split of `python run.py`
    fedgm data --show profile=tiny data.partition=shards  of the run with these overrides
    """


@data.command(hidden=True)
@click.argument("overrides", nargs=-1, metavar="[KEY=VALUE]...")
@click.option("--out", metavar="FILE", default="partition.png", show_default=True, help="The picture.")
def show(overrides: tuple[str, ...], out: str) -> None:
    """Draw the split of exactly the run that the overrides describe."""
    from hydra.errors import HydraException
    from omegaconf.errors import OmegaConfBaseException

    from fedgm.errors import FedGMError

    try:
        click.echo(f"picture:  {draw_split(overrides, out)}")
    except (FedGMError, HydraException, OmegaConfBaseException) as error:
        click.echo(f"error: {error}", err=True)
        raise SystemExit(2) from error


def draw_split(overrides: tuple[str, ...], out: str) -> Any:
    """Compose, load and split as the run would, then draw."""
    from fedgm.assemble import load_federation
    from fedgm.config import compose, validate
    from fedgm.data.federation import Federation
    from fedgm.data.picture import draw_partition
    from fedgm.errors import require

    run = validate(compose(overrides))
    clients, d = load_federation(run), run.data
    images = isinstance(clients, Federation)
    require(images, "data", d.name, "images: only they are split by label", "fedgm data --show data=cifar10")
    assert isinstance(clients, Federation)
    how = {
        "dirichlet": f"Dirichlet alpha = {d.alpha:g}",
        "virtual": f"Dirichlet alpha = {d.alpha:g}, drawn on demand",
        "capped": f"capped Dirichlet alpha = {d.alpha:g}",
        "quantity": f"sizes ~ Dirichlet alpha = {d.alpha:g}",
        "shards": f"{d.shards} shards a client",
        "classes": f"{d.classes_per_client} classes a client",
    }[d.partition]
    title = f"{d.name} over {clients.count:,} clients, {how}, seed {d.seed}"
    labels, names = clients.images.train_labels.numpy(), clients.images.class_names
    return draw_partition(clients.partition, labels, names, out, title)
