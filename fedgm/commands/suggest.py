"""Suggest eta, beta and nu from a short FedAvg run: no grid."""

import click


@click.command()
@click.argument("overrides", nargs=-1, metavar="[+experiment=NAME] [KEY=VALUE]...")
@click.option("--rounds", default=25, show_default=True, help="Rounds of the probe.")
def command(overrides: tuple[str, ...], rounds: int) -> None:
    """Measure how much of the mean update is noise, and choose the server's values by a model.

    \b
    fedgm suggest                                  # for what `python run.py` would run
    fedgm suggest profile=tiny --rounds 10
    fedgm suggest participation=autonomous data.alpha=0.1

    The probe is a run like any other: the same command again continues it, or reads it. docs/suggest.md says
    how good the suggestions were, and where they failed.
    """
    from fedgm.api import suggest

    suggest(overrides, probe_rounds=rounds)
