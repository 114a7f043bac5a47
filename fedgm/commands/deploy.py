"""A run on nodes, through Flower: write an app, or try it out on this machine."""

import shlex
from pathlib import Path

import click


@click.group()
def command() -> None:
    """Deploy a run on Flower (docs/deploy.md)."""


@command.command()
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False), metavar="DIR")
def new(folder: Path) -> None:
    """Write an app to DIR: pyproject.toml, server and client, a script for certificates and keys."""
    from fedgm.errors import RefusedError
    from fedgm.flower.loopback import write_app

    if folder.exists() and any(folder.iterdir()):
        raise RefusedError(f"{folder} is not empty, and nothing in it is replaced. Try another folder")
    for path in write_app(folder):
        click.echo(path)
    click.echo(f"Set words in {folder / 'pyproject.toml'}, then: flwr run {folder} SUPERLINK --stream")


@command.command(context_settings={"ignore_unknown_options": True})
@click.argument("words", nargs=-1, metavar="[OVERRIDES]")
@click.option("--nodes", default=2, show_default=True, help="So many nodes; clients.count unless it is set.")
@click.option("--tls", is_flag=True, help="HTTPS with a certificate, and a registered key for each node.")
@click.option("--min-replies", default=0, help="Answers without which a round ends the run; 0: all.")
@click.option("--timeout", default=3600.0, show_default=True, help="Seconds to wait for an answer.")
@click.option(
    "--wait", default=60.0, show_default=True, help="Seconds to wait for a node that is not online."
)
def local(
    words: tuple[str, ...], nodes: int, tls: bool, min_replies: int, timeout: float, wait: float
) -> None:
    """Run a configuration with N nodes on this machine, each a client; the same command continues it.

    OVERRIDES are those of `python run.py`. All processes are on 127.0.0.1 and end with the command.
    """
    from fedgm.config import compose, require_sound
    from fedgm.config.identity import identity
    from fedgm.errors import FedGMError, RefusedError, require
    from fedgm.flower.loopback import loopback
    from fedgm.results import summary
    from fedgm.running.folder import locate
    from fedgm.seals import name_of

    require(nodes >= 1, "--nodes", nodes, "at least 1", "--nodes 2")
    if not any(word.startswith("clients.count=") for word in words):
        words = (*words, f"clients.count={nodes}")
    cfg = compose(words)
    config = require_sound(cfg)
    if config.clients.count != nodes:
        raise RefusedError(
            f"clients.count={config.clients.count}: a node is a client. Try --nodes {config.clients.count}"
        )
    output = Path(config.output_dir).resolve()
    mark = identity(cfg)
    typed = [*(word for word in words if not word.startswith("output_dir=")), f"output_dir={output}"]
    folder, home = locate(compose(typed), typed, mark), output / ".deploy" / name_of(mark, config.seed)
    log = home / "server.log"
    log.unlink(missing_ok=True)
    settings = {"words": shlex.join(typed), "log": str(log)}
    settings |= {"wait": wait, "timeout": timeout, "min-replies": min_replies}
    with loopback(home, nodes, tls) as deployment:
        deployment.start()
        code = deployment.run(settings, click.echo)
    status = summary.read(folder).get("status")
    if status == "running":
        raise FedGMError(
            f"the ServerApp has ended before the run was done. The same command continues. Logs: {home}"
        )
    if status not in summary.WELL:
        raise FedGMError(f"the run is {status or 'not begun'} (flwr run ended with {code}). Logs: {home}")
