"""The ``fedgm`` command: every tool is imported when it is called, so that --help answers at once."""

import sys
from difflib import get_close_matches
from importlib import import_module
from typing import Any

import click

from fedgm import __version__
from fedgm.starting import quietly, ready

# name -> (where the command is, what the overview says of it)
COMMANDS = {
    "run": ("fedgm.cli:run", "One run or many: what `python run.py` does, from an installed package."),
    "sweep": (
        "fedgm.grid.command:sweep",
        "Run a W&B sweep file without an account; resumable, several at once.",
    ),
    "reproduce": (
        "fedgm.paper.command:reproduce",
        "A figure of the paper: run what is missing, draw it, judge its claims.",
    ),
    "list": ("fedgm.runs.table:list_runs", "Stored runs: status, parameters, numbers, size; --prune."),
    "show": ("fedgm.runs.table:show", "One run in full."),
    "compare": ("fedgm.runs.compare:compare", "Runs side by side: a picture and a table, also in LaTeX."),
    "sync": ("fedgm.runs.sync:sync", "Send stored runs to W&B later."),
    "dashboard": (
        "fedgm.dashboard.command:dashboard",
        "Compare stored runs in the browser: one page, from disk, offline.",
    ),
    "data": ("fedgm.split:data", "Fetch CIFAR-10 or Shakespeare; --show OVERRIDES draws the split of a run."),
    "convert": (
        "fedgm.server.command:convert",
        "Translate between the momentum conventions of papers and tools.",
    ),
    "timeline": ("fedgm.timeline:timeline", "Who worked when in a run under the virtual clock."),
    "theory": ("fedgm.diagnosis:theory", "What Theorems 1-3 say about a configuration, or about a run."),
}


class LazyGroup(click.Group):
    """Knows its commands by name and imports the one that is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """In the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command."""
        if cmd_name not in COMMANDS:
            meant = get_close_matches(cmd_name, COMMANDS, n=1) or ["--help"]
            ctx.fail(f"{cmd_name}: expected one of {', '.join(COMMANDS)}. Try fedgm {meant[0]}")
        module, name = COMMANDS[cmd_name][0].split(":")
        found = getattr(import_module(module), name)
        ready()
        return found

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The overview, without importing anything."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])


@click.command(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="fedgm")
def main() -> None:
    """Server momentum in federated learning (FedGM, AAAI 2024).

    Start with `fedgm run profile=tiny` (half a minute, no download), then
    `fedgm run +experiment=multistage` (Figure 2 on real CIFAR-10, minutes).
    """


@click.command(context_settings={"ignore_unknown_options": True, "help_option_names": []})
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def run(arguments: tuple[str, ...]) -> Any:
    """Run with Hydra's arguments; `fedgm run --help` lists them."""
    quietly()
    from fedgm.main import main as hydra_main

    sys.argv = ["fedgm run", *arguments]
    hydra_main()


if __name__ == "__main__":
    main()
