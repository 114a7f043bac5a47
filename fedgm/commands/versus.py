"""Compare algorithms over seeds: a table, a figure, a page and one sentence."""

from pathlib import Path

import click

from fedgm.commands._options import as_words, config_dir
from fedgm.commands.reproduce import parse_seeds


@click.command()
@click.argument("words", nargs=-1, metavar="[ALGORITHM]... [KEY=VALUE]...")
@click.option("--seeds", default="3", show_default=True, help="How many, or a list: 1,2,5.")
@click.option("--tuned", is_flag=True, help="Each at the values that a grid has chosen  [default].")
@click.option("--eta", type=float, help="All at this server rate instead.")
@click.option("--workers", type=click.IntRange(min=1), help="Runs side by side  [default: one per core].")
@click.option("--profile", help="small, full, paper or tiny: what profile=... is to run.py.")
@config_dir
@click.option("--output-dir", default="outputs", show_default=True, help="Run folders.")
@click.option(
    "--known", multiple=True, metavar="PATH", help="Stored results that count as done: docs/results."
)
def command(
    words: tuple[str, ...], seeds: str, tuned: bool, eta: float | None, workers: int | None,
    profile: str | None, config_dir: Path | None, output_dir: str, known: tuple[str, ...],
) -> None:  # fmt: skip
    """Run each ALGORITHM (default: fedavg fedavgm fedgm) on the same seeds and say who leads.

    \b
    fedgm versus                                   # FedAvg, FedAvgM, FedGM at their stored values
    fedgm versus fedavg fedadam fedgm --eta 1      # all at server rate 1
    fedgm versus fedavg fedgm --profile tiny data.alpha=1
    fedgm versus --known docs/results              # from the rows of the repository: trains nothing

    The same command again continues. Seeds count from 1 where seed 0 has chosen the values.
    """
    from fedgm.api import versus

    if tuned and eta is not None:
        raise click.UsageError("--tuned takes stored values, --eta sets one for all: give one of them")
    algorithms = [word for word in words if "=" not in word]
    overrides = [*as_words(profile, config_dir), *(word for word in words if "=" in word)]
    versus(
        *algorithms, overrides=overrides, seeds=parse_seeds(seeds), eta=eta, workers=workers,
        output_dir=output_dir, known=known,
    )  # fmt: skip
