"""A figure of the paper, or one of yours: run what is missing, draw it, judge its claims."""

import sys
from pathlib import Path
from typing import Any

import click

from fedgm.commands._options import as_words, config_dir

STORED = "docs/results"
TABLE = "fedgm reproduce"  # the marks around the table of a README


def parse_seeds(words: str) -> int | list[int]:
    """``3``: how many; ``1,2,5``: which."""
    try:
        numbers = [int(word) for word in words.split(",") if word.strip()]
    except ValueError:
        numbers = []
    if not numbers or min(numbers) < (0 if "," in words else 1):
        raise click.BadParameter(f"{words!r}: how many, or a list. Try --seeds 3 or --seeds 1,2,5")
    return numbers if "," in words else numbers[0]


@click.command()
@click.argument("figure", metavar="FIGURE")
@click.argument("overrides", nargs=-1)
@click.option("--seeds", help="How many, or a list: 1,2,5  [default: those of docs/claims.md].")
@click.option("--workers", type=click.IntRange(min=1), help="Runs side by side  [default: one per core].")
@click.option("--profile", help="small, full, paper or tiny: what profile=... is to run.py.")
@config_dir
@click.option("--output-dir", default="outputs", show_default=True, help="Run folders.")
@click.option(
    "--stored",
    is_flag=False,
    flag_value=STORED,
    metavar="[PATH]",
    help=f"Draw and judge stored results (a file, a folder) and train nothing  [{STORED}].",
)
@click.option(
    "--known",
    "archives",
    multiple=True,
    metavar="PATH",
    help="Results that count as done beside run folders, whole or as the beginning of a longer run: files of "
    "--export, or a folder of them.",
)
@click.option(
    "--out", metavar="DIR", help="Pictures and verdicts  [default: <output-dir>/figures/<profile>]."
)
@click.option(
    "--report", metavar="FILE", help="Write the page of all verdicts, such as docs/reproduction.md."
)
@click.option(
    "--table", metavar="FILE", help="Replace the table between the marks of a page, such as README.md."
)
@click.option("--export", metavar="FILE", help="Store the rows of the runs in one compact file.")
@click.option(
    "--dry-run", is_flag=True, help="Show the plan and the expected time; runs a few first rounds at most."
)
def command(
    figure: str, overrides: tuple[str, ...], seeds: str | None, workers: int | None, profile: str | None,
    config_dir: Path | None, output_dir: str, stored: str | None, out: str | None, report: str | None,
    table: str | None, export: str | None, dry_run: bool, archives: tuple[str, ...],
) -> None:  # fmt: skip
    """Run what is missing for FIGURE, draw it, and judge the paper's claims.

    FIGURE is fig1ab, fig1cd, fig2 ... fig9, all (every figure that judges a claim), or an experiment that has
    a figure:, such as outer, or one of yours with --config-dir.

    The same command again continues. --seeds 3 means 1, 2, 3 where winners were chosen on seed 0, else
    0, 1, 2. OVERRIDES go to every run. all --stored judges profile full, too, where it has rows.
    """
    from fedgm.plain import plain
    from fedgm.screen import Screen
    from fedgm.study import reproduce as work
    from fedgm.study.report import require_marks
    from fedgm.study.sweep import default_workers

    if archives and stored:
        raise click.UsageError("--known adds to run folders, --stored leaves them out: use one of them")
    if table and figure != "all":
        raise click.UsageError("--table needs all figures. Try fedgm reproduce all --table README.md")
    if table:
        require_marks(Path(table), TABLE)
    console = Screen()
    if stored and "=" in stored and not Path(stored).exists():  # `--stored profile=tiny`: an override
        overrides, stored = (stored, *overrides), STORED
    words = [*as_words(profile, config_dir), *overrides]
    count = workers or default_workers()
    chosen = None if seeds is None else parse_seeds(seeds)
    works = work.load_all(figure, words, chosen, output_dir, stored, console, archives)
    for planned in works:
        planned.show_plan(count, timed=stored is None)
    if dry_run:
        return
    failed = works[0].run(count) if stored is None else {}
    folder = Path(out) if out else work.folder_of(works[0])
    verdicts = work.conclude(works, folder)
    if export:
        console.say(f"  {work.export(works, Path(export))} runs in {export}")
    for path in _pages(verdicts, folder, report, table):
        console.say(f"  {path}")
    for reason in sorted(set(failed.values())):
        click.echo(f"failed: {plain(reason)}", err=True)
    sys.exit(1 if failed else 0)


def _pages(
    verdicts: list[dict[str, Any]], pictures: Path, report: str | None, table: str | None
) -> list[str]:
    """Write the pages that were asked for, and return their paths."""
    from fedgm.study import report as pages

    if report:
        Path(report).parent.mkdir(parents=True, exist_ok=True)
        Path(report).write_text(pages.markdown(verdicts, pictures, Path(report).parent))
    if table:
        pages.replace_between(Path(table), TABLE, pages.table(verdicts), "The paper's figures")
    return [path for path in (report, table) if path]
