"""Who worked when in a run under the virtual clock."""

from pathlib import Path

import click

from fedgm.errors import RefusedError


@click.command()
@click.argument("run", type=click.Path(path_type=Path))
@click.argument("trust", nargs=-1, metavar="[trust=[PACKAGE]]")
@click.option(
    "--rounds", type=click.IntRange(min=1), default=20, show_default=True, help="Server steps to draw."
)
@click.option(
    "--out", type=click.Path(path_type=Path), help="The picture's file  [default: RUN/timeline.png]."
)
def command(run: Path, trust: tuple[str, ...], rounds: int, out: Path | None) -> None:
    """Draw a Gantt picture of RUN, the folder of a run with participation=event (or fedbuff, sync ...).

    \b
    fedgm timeline outputs/run/fedgm,participation=event-.../seed=0
    fedgm timeline RUN trust=[my_package]    # the run was built with parts from there, and you trust it
    """
    from fedgm.config import reopened
    from fedgm.config.trust import trusted_words
    from fedgm.figures.timeline import draw_timeline
    from fedgm.participation.event import Event
    from fedgm.running.parts import build_parts

    if not (run / "config.yaml").exists():
        raise RefusedError(f"{run} is not a run folder: there is no config.yaml. Try outputs/NAME/RUN/seed=0")
    if unknown := [word for word in trust if not word.startswith("trust=")]:
        raise RefusedError(f"{' '.join(unknown)} is not understood. Allowed: trust=[PACKAGE]")
    config = reopened(run, trusted_words(trust))
    parts = build_parts(config)
    parts.load(config)
    scheme = parts.participation
    if not isinstance(scheme, Event):
        name = config.participation["name"]
        raise RefusedError(f"participation={name} has no clock. Try event, sync, fedbuff, fedasync, anarchic")
    path = out or run / "timeline.png"
    draw_timeline(scheme, min(rounds, config.rounds), path, f"{config.name}: {config.participation['name']}")
    click.echo(path)
