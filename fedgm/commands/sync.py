"""Send stored runs to W&B later."""

import click


@click.command()
@click.argument("folder", default="outputs")
@click.option("--filter", "conditions", multiple=True, metavar="KEY=VALUE", help="Only these.")
@click.option("--project", help="Another project than the one in the configuration.")
def command(folder: str, conditions: tuple[str, ...], project: str | None) -> None:
    """Send the runs below FOLDER that are done to W&B; rounds that it has are not sent twice."""
    from fedgm.errors import FedGMError, RefusedError
    from fedgm.runs.find import find, matching
    from fedgm.runs.sync import send
    from fedgm.track.wandb_run import resolve_mode

    found = matching(find([folder]), conditions)
    folders = [run.folder for run in found if run.is_done and run.folder is not None]
    if not folders:
        raise RefusedError(f"{folder}: no run that is done. Try fedgm list {folder}")
    if resolve_mode("online") != "online":
        raise RefusedError("no W&B key here. Try `wandb login`, or set WANDB_API_KEY")
    for number, home in enumerate(folders, start=1):
        if not send(home, project):
            raise FedGMError(f"[{number}/{len(folders)}] {home}: W&B cannot be reached; recorded offline")
        click.echo(f"[{number}/{len(folders)}] {home}: sent")
