"""Stored runs: status, parameters, numbers, size; --prune."""

import click


@click.command()
@click.argument("folder", default="outputs")
@click.option(
    "--filter",
    "conditions",
    multiple=True,
    metavar="KEY=VALUE",
    help="Only runs that match; also KEY<VALUE, KEY>VALUE.",
)
@click.option("--sort", "key", default="name", show_default=True, metavar="KEY", help="-KEY: descending.")
@click.option("--prune", is_flag=True, help="Delete listed runs that failed or were killed, after asking.")
def command(folder: str, conditions: tuple[str, ...], key: str, prune: bool) -> None:
    """List the runs below FOLDER, or of a file of stored results: status, parameters, final numbers, size."""
    from fedgm.results import table
    from fedgm.results.choose import matching, order
    from fedgm.results.find import find
    from fedgm.screen import Screen

    runs = order(matching(find([folder], index=True), conditions), key)
    Screen().say(table.of_runs(runs))
    if prune:
        table.prune(runs)
