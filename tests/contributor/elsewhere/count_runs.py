"""Say how many runs a folder has."""

from pathlib import Path

import click

from fedgm.errors import RefusedError


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
def command(folder: Path) -> None:
    """Count the summaries below FOLDER."""
    if not folder.is_dir():
        raise RefusedError(f"{folder}: no such folder")
    click.echo(f"{len(list(folder.rglob('summary.json')))} runs")
