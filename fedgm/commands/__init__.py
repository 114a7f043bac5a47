"""The ``fedgm`` command: a command is a module of this folder, imported when it is called.

Other installed packages add theirs by entry points of the group ``fedgm.commands``. All end in the same way:
0, 2 for what is refused, 1 for what failed, 130 for Ctrl-C; with a line, not a traceback.
"""

import sys
from collections.abc import Generator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any

import click

from fedgm import __version__
from fedgm.errors import FedGMError, near, require_working_folder
from fedgm.plain import message
from fedgm.starting import output_error, ready

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

FOLDER = Path(__file__).parent
REFUSED, FAILED, INTERRUPTED = 2, 1, 130


class CommandFolder(click.Group):
    """Finds commands by file name and imports the one that is asked for, so that --help answers at once."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """In alphabetical order."""
        return sorted({*own_commands(), *other_commands()})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """``command`` of the module that has the command's name."""
        if cmd_name in own_commands():
            command: click.Command = import_module(f"fedgm.commands.{cmd_name}").command
        elif other := other_commands().get(cmd_name):
            command = other.load()
        else:
            names = self.list_commands(ctx)
            meant = near(cmd_name, names) or "--help"
            ctx.fail(f"{cmd_name}: expected one of {', '.join(names)}. Try fedgm {meant}")
        command.name = cmd_name
        ready()
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The overview, read from the files."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary(name)) for name in self.list_commands(ctx)])

    def invoke(self, ctx: click.Context) -> Any:
        """Every command ends in the same way."""
        with ends_plainly():
            require_working_folder()
            return super().invoke(ctx)


def own_commands() -> list[str]:
    """Commands of fedgm itself, by file name."""
    return [module.name for module in iter_modules([str(FOLDER)]) if not module.name.startswith("_")]


def other_commands() -> dict[str, "EntryPoint"]:
    """Commands of other installed packages; where names clash, fedgm's command wins."""
    from importlib.metadata import entry_points  # fedgm's own commands do not need it

    return {point.name: point for point in entry_points(group="fedgm.commands")}


def summary(name: str) -> str:
    """The first line of a command's docstring, or the package that it comes from; nothing is imported."""
    if name not in own_commands():
        owner = other_commands()[name].dist
        return f"From the package {owner.name}." if owner else "From another package."
    text = (FOLDER / f"{name}.py").read_text(encoding="utf-8")
    return text.split('"""')[1].splitlines()[0]


@click.command(cls=CommandFolder, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="fedgm")
def main() -> None:
    """Server momentum in federated learning (FedGM, AAAI 2024).

    Start with `fedgm versus --profile tiny` (no download), then
    `fedgm run +experiment=multistage` (Figure 2 on real CIFAR-10, minutes).
    """


@contextmanager
def ends_plainly() -> Generator[None]:
    """Turn errors that a user can act on into a line and an exit code; bugs keep their traceback."""
    try:
        yield
    except (KeyboardInterrupt, Exception) as error:
        if is_interrupted(error):
            print("stopped; the same command continues", file=sys.stderr)
            raise SystemExit(INTERRUPTED) from None
        code = exit_code(error)
        if code is None:
            raise
        if isinstance(error, OSError) and (output := output_error()):
            error = FedGMError(f"standard output cannot be written ({output.strerror})")
        print(f"error: {message(error)}", file=sys.stderr)
        raise SystemExit(code) from None


def is_interrupted(error: BaseException | None) -> bool:
    """Whether Ctrl-C is behind it: in the middle of an import it may come out as any other error."""
    return error is not None and (isinstance(error, KeyboardInterrupt) or is_interrupted(error.__context__))


def exit_code(error: BaseException) -> int | None:
    """The code of an error that has one; what Hydra cannot compose counts as refused."""
    if isinstance(error, FedGMError):
        return error.exit_code
    if isinstance(error, OSError):
        return FAILED
    # Hydra and OmegaConf need not be imported to recognise their errors.
    origins = {kind.__module__.partition(".")[0] for kind in type(error).__mro__}
    return REFUSED if origins & {"hydra", "omegaconf"} else None
