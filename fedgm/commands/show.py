"""One run in full."""

import click


@click.command()
@click.argument("run")
def command(run: str) -> None:
    """Show one RUN: what it was, how it ended, its numbers, its configuration, its files."""
    from fedgm.results import table
    from fedgm.results.find import one
    from fedgm.screen import Screen

    table.show(one(run), Screen())
