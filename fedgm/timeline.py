"""``fedgm timeline``: who worked when in a run under the virtual clock."""

from pathlib import Path

import click

from fedgm.errors import FedGMError


@click.command()
@click.argument("run", type=click.Path(path_type=Path))
@click.argument("trust", nargs=-1, metavar="[trust=[PACKAGE]]")
@click.option(
    "--rounds", type=click.IntRange(min=1), default=20, show_default=True, help="Server steps to draw."
)
@click.option(
    "--out", type=click.Path(path_type=Path), help="The picture's file  [default: RUN/timeline.png]."
)
def timeline(run: Path, trust: tuple[str, ...], rounds: int, out: Path | None) -> None:
    """Draw a Gantt picture of RUN, the folder of a run with participation=event (or fedbuff, sync ...).

    \b
    fedgm timeline outputs/run/fedgm,participation=event-.../seed=0
    fedgm timeline RUN trust=[my_package]    # the run was built with parts from there, and you trust it
    """
    from fedgm.assemble import build_participation, load_federation
    from fedgm.config import register, stored, validate
    from fedgm.participation.event import Event
    from fedgm.participation.timeline import draw_timeline
    from fedgm.trust import trusted_words

    register()
    try:
        if not (run / "config.yaml").exists():
            raise FedGMError(
                f"{run} is not a run folder: there is no config.yaml. Try outputs/NAME/RUN/seed=0"
            )
        if unknown := [word for word in trust if not word.startswith("trust=")]:
            raise FedGMError(f"{' '.join(unknown)} is not understood. Allowed: trust=[PACKAGE]")
        config = validate(stored(run, trusted_words(trust)))
        scheme = build_participation(config, load_federation(config))
        if not isinstance(scheme, Event):
            name = config.participation["name"]
            raise FedGMError(
                f"participation={name} has no clock. Allowed: event, sync, fedbuff, fedasync, anarchic"
            )
        path = out or run / "timeline.png"
        draw_timeline(
            scheme, min(rounds, config.rounds), path, f"{config.name}: {config.participation['name']}"
        )
    except FedGMError as error:
        click.echo(f"error: {error}", err=True)
        raise SystemExit(2) from error
    click.echo(path)
