"""Runs side by side: a picture and a table, also in LaTeX."""

from pathlib import Path

import click


@click.command()
@click.argument("runs", nargs=-1, required=True)
@click.option("--out", default="compare.png", show_default=True, help="The picture: .png, .pdf or .svg.")
@click.option("--filter", "conditions", multiple=True, metavar="KEY=VALUE", help="Only runs that match.")
@click.option(
    "--to", "target", type=float, help="Also show the rounds needed to reach this value, such as 0.4."
)
@click.option("--latex", is_flag=True, help="Print the table in LaTeX.")
def command(
    runs: tuple[str, ...], out: str, conditions: tuple[str, ...], target: float | None, latex: bool
) -> None:
    """Compare RUNS: run folders, folders above them, or files of stored results."""
    from fedgm.errors import RefusedError
    from fedgm.figures.style import save
    from fedgm.results.choose import matching
    from fedgm.results.find import find
    from fedgm.results.labels import lines
    from fedgm.screen import Screen
    from fedgm.study import compare

    console = Screen()
    evaluated = [run for run in matching(find(runs), conditions) if run.evaluations]
    if not evaluated:
        raise RefusedError("none of these runs has been evaluated yet")
    grouped = lines(evaluated)
    made = compare.rows(grouped, target)
    path = save(compare.picture(grouped), Path(out))
    if latex:
        click.echo(compare.latex_table(made))
    else:
        console.print(compare.as_table(made))
    console.say(f"  {path}")
