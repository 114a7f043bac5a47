"""The winners of the grids, from stored runs."""

from pathlib import Path

import click


@click.command()
@click.argument("results", type=click.Path(path_type=Path, exists=True), default="docs/results/small")
@click.option("--page", type=click.Path(path_type=Path), default="docs/grids.md", show_default=True,
              help="The page whose table is replaced; pictures go to figures/grids beside it.")  # fmt: skip
def command(results: Path, page: Path) -> None:
    """Each grid's winner on seed 0, on other seeds and at FedAvg's budget; RESULTS holds stored results."""
    from fedgm.errors import FedGMError
    from fedgm.study.grids import HEAD, markdown
    from fedgm.study.page import replace_between

    page.parent.mkdir(parents=True, exist_ok=True)
    body = markdown(results, page.parent / "figures" / "grids", page.parent)
    if body.strip() == HEAD.strip():
        raise FedGMError(f"{results}: no run of the grids on seed 0. Try fedgm sweep FILE --export")
    replace_between(page, "fedgm winners", body, "The grids and their winners")
    click.echo(page)
