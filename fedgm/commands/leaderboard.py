"""Tune rules on eight points each, judge them on other seeds, rank them."""

import sys
from pathlib import Path

import click

from fedgm.commands._options import as_words, config_dir


@click.command()
@click.argument("board", metavar="BOARD")
@click.argument("overrides", nargs=-1)
@click.option("--add", "added", multiple=True, type=click.Path(path_type=Path), metavar="FILE",
              help="Rules of yours that join: mine: {name, overrides, points}.")  # fmt: skip
@click.option(
    "--only", metavar="RULES", help="Some rules alone: fedavg,fedgm. Several machines can share a board."
)
@click.option("--workers", type=click.IntRange(min=1), help="Runs side by side  [default: one per core].")
@config_dir
@click.option("--output-dir", default="outputs", show_default=True, help="Run folders.")
@click.option("--stored", multiple=True, metavar="PATH",
              help="Results that count as done: files of --export, or a folder of them.")  # fmt: skip
@click.option("--show", is_flag=True, help="The table so far; runs nothing.")
@click.option("--export", metavar="FILE", help="Store the rows of all runs that are done; runs nothing.")
@click.option("--page", type=click.Path(path_type=Path), metavar="FILE",
              help="Write the whole board into this page, a picture beside it; runs nothing.")  # fmt: skip
def command(
    board: str, overrides: tuple[str, ...], added: tuple[Path, ...], only: str | None, workers: int | None,
    config_dir: Path | None, output_dir: str, stored: tuple[str, ...], show: bool, export: str | None,
    page: Path | None,
) -> None:  # fmt: skip
    """Rank the rules of a BOARD: a file, or hapt or cifar10.

    Each rule is tuned on at most eight points on one seed, and judged at the
    best of them on others. The same command again continues.
    """
    from fedgm.errors import require_fits
    from fedgm.screen import Screen
    from fedgm.study import board as work
    from fedgm.study import board_page
    from fedgm.study.standings import standings
    from fedgm.study.sweep import default_workers

    console = Screen()
    words = [*as_words(None, config_dir), *overrides]
    chosen = only.split(",") if only is not None else []
    rest = [*overrides, *([f"--only {only}"] if only else []), *(f"--add {path}" for path in added)]
    reason = f"its section would show another board than its heading says ({' '.join(rest)})"
    hint = "the command without them, or a board file of your own"
    require_fits(page is None or not rest, "--page", page, reason, hint)
    planned = work.load(board, words, output_dir, stored, added, chosen, console)
    failed = {} if show or export or page else planned.run(workers or default_workers())
    found = standings(planned)
    console.print(board_page.table(found))
    for line in board_page.sentences(found):
        console.say(line)
    if export:
        console.say(f"  {planned.export(Path(export))} runs in {export}")
    if page:
        for path in board_page.write(found, page):
            console.say(f"  {path}")
    for (_, seed), reason in failed.items():
        console.say(f"failed on seed {seed}: {reason}")
    sys.exit(1 if failed else 0)
