"""Run a W&B sweep file without an account; resumable, several at once."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fedgm.commands._options import as_words, config_dir

if TYPE_CHECKING:
    from fedgm.study.sweep import Sweep


def _seeds(context: click.Context, parameter: click.Parameter, value: str) -> list[int]:
    """``0,1,2`` as numbers."""
    try:
        return [int(word) for word in value.split(",")]
    except ValueError:
        raise click.BadParameter(f"{value!r} is not a list of seeds. Try --seeds 0,1,2") from None


@click.command(context_settings={"ignore_unknown_options": False})
@click.argument("file", metavar="FILE")
@click.argument("overrides", nargs=-1)
@click.option("--workers", type=click.IntRange(min=1), help="Runs side by side  [default: one per core].")
@click.option(
    "--seeds",
    default="0",
    show_default=True,
    callback=_seeds,
    help="A list: 0,1,2. Winners are chosen on the first.",
)
@click.option("--profile", help="small, full, paper or tiny: what profile=... is to run.py.")
@config_dir
@click.option(
    "--output-dir", default="outputs", show_default=True, help="Run folders; several sweeps may share it."
)
@click.option("--status", is_flag=True, help="Report progress; runs nothing.")
@click.option("--best", is_flag=True, help="Show the winners; runs nothing.")
@click.option("--write", is_flag=True, help="With --best: save the winner in conf/best/<profile>.yaml.")
@click.option(
    "--dry-run", is_flag=True, help="Show points, rounds and expected hours; runs a few first rounds at most."
)
@click.option(
    "--stored",
    multiple=True,
    metavar="PATH",
    help="Results that count as done: files of --export, or a folder of them.",
)
@click.option(
    "--export", metavar="FILE", help="Store the rows of all runs that are done in one compact file."
)
def command(
    file: str, overrides: tuple[str, ...], workers: int | None, seeds: list[int], profile: str | None,
    config_dir: Path | None, output_dir: str, status: bool, best: bool, write: bool, dry_run: bool,
    stored: tuple[str, ...], export: str | None,
) -> None:  # fmt: skip
    """Run every point of a W&B sweep FILE, or of a bundled one by its name.

    The same command again continues.

    OVERRIDES go to every run: `fedgm sweep autonomous_fedgm_grid
    participation=autonomous_current`.
    """
    from fedgm.screen import Screen
    from fedgm.study import sweep as work

    if write and not best:
        raise click.UsageError("--write goes with --best")
    console = Screen()
    words = [*as_words(profile, config_dir), *overrides]
    planned = work.load(file, words, seeds, output_dir, stored, console)
    count = workers or work.default_workers()
    if dry_run:
        _dry_run(planned, count)
    elif status or best or export:
        planned.conclude({}, send=planned.asks_for_wandb) if best else planned.status()
        if write:
            console.say(f"  {planned.write_winner()}")
        if export:
            console.say(f"  {planned.export(Path(export))} runs in {export}")
    else:
        failed = planned.run(count)
        planned.conclude(failed)
        sys.exit(1 if failed else 0)


def _dry_run(planned: "Sweep", workers: int) -> None:
    """What would be run, and how long it would take."""
    from fedgm.plain import plain
    from fedgm.results.summary import DONE
    from fedgm.study.hours import in_words, rounds_left
    from fedgm.study.sweep_progress import rung_rounds

    plan = planned.plan
    jobs = len(plan.jobs)
    done = sum(planned.results.state(job) in DONE for job in plan.jobs)
    points = f"{len(plan.file.points)} points"
    points += "" if "seed" in plan.file.points[0] else f" x {len(plan.seeds)} seeds"
    lengths = sorted({job.rounds for job in plan.jobs})
    rounds = f"{lengths[0]}" if len(lengths) == 1 else f"{lengths[0]} to {lengths[-1]}"
    click.echo(f"{plain(plan.file.name)}: {points} = {jobs} runs, {done} done")
    click.echo(f"rounds:  {rounds} each, profile {plan.profile}, experiment {plain(plan.experiment)}")
    if rungs := rung_rounds(plan):
        left, whole = (sum(rounds_left(planned.results, halving)) for halving in (True, False))
        places = ", ".join(map(str, rungs))
        click.echo(
            f"halving: decides after rounds {places}; {left:.0f} rounds to run, {whole:.0f} without it"
        )
    for job in plan.jobs[:5]:
        click.echo(f"  {plain(' '.join(job.overrides), 4096)}")
    if jobs > 5:
        click.echo(f"  ... and {jobs - 5} more")
    if not any(rounds_left(planned.results)):
        click.echo("time:    nothing is left to run")
        return
    hours = planned.expected_hours(workers)  # last: it may have to try some rounds out
    click.echo(f"time:    about {in_words(hours)} with {workers} workers")
