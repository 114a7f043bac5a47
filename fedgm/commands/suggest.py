"""Suggest eta, beta and nu from a short range test of FedAvg: no grid."""

from pathlib import Path

import click

from fedgm.commands._options import as_words, config_dir


@click.command()
@click.argument("overrides", nargs=-1, metavar="[+experiment=NAME] [KEY=VALUE]...")
@click.option("--rounds", default=48, show_default=True, help="Rounds of the test, at most.")
@config_dir
def command(overrides: tuple[str, ...], rounds: int, config_dir: Path | None) -> None:
    """Raise FedAvg's eta until its training loss rises, and derive the values of FedGM from there.

    \b
    fedgm suggest                                  # for what `python run.py` would run
    fedgm suggest profile=tiny --rounds 80
    fedgm suggest participation=autonomous data.alpha=0.1

    The test is a run like any other: the same command again continues it, or reads it. docs/suggest.md says
    how good the suggestions were, and where they failed.
    """
    from fedgm.api import suggest

    suggest([*as_words(None, config_dir), *overrides], test_rounds=rounds)
