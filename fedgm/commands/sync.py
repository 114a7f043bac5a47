"""Send stored runs to W&B later."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click


@click.command()
@click.argument("words", nargs=-1, metavar="[FOLDER] [trust=[PACKAGE]]")
@click.option("--filter", "conditions", multiple=True, metavar="KEY=VALUE", help="Only runs that match.")
@click.option("--project", help="A project other than the one in the configuration.")
def command(words: tuple[str, ...], conditions: tuple[str, ...], project: str | None) -> None:
    """Send the runs below FOLDER that are done to W&B; rounds that W&B already has are not sent twice.

    trust=[PACKAGE] admits runs that were built with parts from there.
    """
    from fedgm.config.trust import trusted_words
    from fedgm.errors import FedGMError, RefusedError
    from fedgm.plain import message, plain
    from fedgm.results.choose import matching
    from fedgm.results.find import find
    from fedgm.running.wandb_run import resolve_mode

    trust = trusted_words(words)
    places = [word for word in words if not word.startswith("trust=")] or ["outputs"]
    runs = matching(find(places), conditions)
    folders = [run.folder for run in runs if run.is_done and run.folder is not None]
    if not folders:
        raise RefusedError(f"{' '.join(places)}: no finished run. Try fedgm list {' '.join(places)}")
    if resolve_mode("online") != "online":
        raise RefusedError("no W&B key here. Try `wandb login`, or set WANDB_API_KEY")
    refused = 0
    for number, home in enumerate(folders, start=1):
        label = f"[{number}/{len(folders)}] {plain(home)}"
        try:
            reached = send(home, project, trust)
        except RefusedError as error:  # the others are sent
            refused += 1
            click.echo(f"{label}: {message(error)}", err=True)
            continue
        if not reached:
            raise FedGMError(f"{label}: W&B cannot be reached; recorded offline")
        click.echo(f"{label}: sent")
    if refused:
        raise RefusedError(f"{refused} of {len(folders)} runs were not sent, for the reasons above")


def send(folder: Path, project: str | None = None, trust: Sequence[str] = ()) -> bool:
    """Replay one run's rows under its own id; False where the server could not be reached."""
    from omegaconf import OmegaConf

    from fedgm import config
    from fedgm.results import rows, summary
    from fedgm.running.wandb_run import WandbRecord

    config.register()
    cfg = config.stored(folder, trust)
    track = config.validate(cfg).track
    track.mode, track.project = "online", project or track.project
    facts = summary.read(folder)
    values: Any = OmegaConf.to_container(cfg, resolve=True)
    record = WandbRecord(track, folder, f"{facts['hash'][:16]}-{facts['seed']}", values, facts)
    reached = record.run is not None and not record.run.offline
    before: list[rows.Row] = [{"round": 0, **facts["initial"]}] if facts.get("initial") else []
    for row in [*before, *rows.read(folder / "metrics.jsonl")]:
        record.log(row)
    record.finish(facts, failed=False)
    return reached
