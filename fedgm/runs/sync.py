"""``fedgm sync``: send stored runs to W&B later: rows, configuration and summary."""

import sys
from pathlib import Path
from typing import Any

import click


@click.command()
@click.argument("folder", default="outputs")
@click.option("--filter", "conditions", multiple=True, metavar="KEY=VALUE", help="Only these.")
@click.option("--project", help="Another project than the one in the configuration.")
def sync(folder: str, conditions: tuple[str, ...], project: str | None) -> None:
    """Send the runs below FOLDER that are done to W&B; rounds that it has are not sent twice."""
    from fedgm.errors import FedGMError
    from fedgm.runs.find import find, matching
    from fedgm.track.wandb_run import resolve_mode

    try:
        found = matching(find([folder]), conditions)
        folders = [run.folder for run in found if run.is_done and run.folder is not None]
        if not folders:
            raise FedGMError(f"{folder}: no run that is done. Try fedgm list {folder}")
        if resolve_mode("online") != "online":
            raise FedGMError("no W&B key here. Try `wandb login`, or set WANDB_API_KEY")
        for number, home in enumerate(folders, start=1):
            sent = send(home, project)
            how = "sent" if sent else "W&B cannot be reached; recorded offline, and the rest is left"
            click.echo(f"[{number}/{len(folders)}] {home}: {how}")
            if not sent:
                sys.exit(1)
    except FedGMError as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(2)


def send(folder: Path, project: str | None = None) -> bool:
    """Replay one run's rows under its own id; False where the server could not be reached."""
    from omegaconf import OmegaConf

    from fedgm import config
    from fedgm.track import rows, summary
    from fedgm.track.wandb_run import WandbRecord

    config.register()
    cfg = config.stored(folder)
    track = config.validate(cfg).track
    track.mode, track.project = "online", project or track.project
    known = summary.read(folder)
    values: Any = OmegaConf.to_container(cfg, resolve=True)
    record = WandbRecord(track, folder, f"{known['hash'][:16]}-{known['seed']}", values)
    reached = record.run is not None and not record.run.offline
    for row in rows.read(folder / "metrics.jsonl"):
        record.log(row)
    record.finish(known, failed=False)
    return reached
