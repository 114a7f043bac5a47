"""One run or many: what `python run.py` does, from an installed package."""

import sys

import click

from fedgm.starting import quietly


@click.command(context_settings={"ignore_unknown_options": True, "help_option_names": []})
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def command(arguments: tuple[str, ...]) -> None:
    """Run with Hydra's arguments; `fedgm run --help` lists them."""
    quietly()
    from fedgm.running.main import main

    sys.argv = ["fedgm run", *arguments]
    main()
