"""Translate between the momentum conventions of papers and tools."""

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:  # at run time only once the command runs: --help must not wait for torch
    from rich.table import Table

    from fedgm.screen import Screen
    from fedgm.server.momentum import Momentum


@click.command()
@click.option("--from", "source", metavar="SCHEME", help="The scheme that the parameters belong to.")
@click.option("--to", "target", metavar="SCHEME", help="The scheme to write it in  [default: every one].")
@click.option("--list", "show", is_flag=True, help="List all schemes with their parameters and recursions.")
@click.argument("parameters", nargs=-1, metavar="[NAME=VALUE]...")
def command(source: str | None, target: str | None, show: bool, parameters: tuple[str, ...]) -> None:
    """Write one momentum scheme in the parameters of another.

    \b
    fedgm convert --list
    fedgm convert --from flower-fedavgm lr=1 beta=.9 --to fedgm
    fedgm convert --from fedgm eta=1 beta=.9 nu=.9
    """
    from fedgm.errors import RefusedError

    if show:
        _list(_console())
    elif source is None:
        raise RefusedError("--from is missing. Try fedgm convert --list, then --from SCHEME NAME=VALUE ...")
    else:
        _convert(_console(), source, _numbers(parameters), target)


def _convert(console: "Screen", source: str, parameters: dict[str, float], target: str | None) -> None:
    """Print the scheme in the other form, or in all of them, and what its numbers mean."""
    from fedgm.server.family import SCHEMES, momentum_of, scheme, typed

    m = momentum_of(source, parameters)
    names = [scheme(target).name] if target else [name for name in SCHEMES if name != scheme(source).name]
    forms, without = _forms(m, names, strict=target is not None)
    console.print(f"{scheme(source).name}: {typed(parameters) or 'no parameters'}")
    table = _table(console, "is the same as", "with")
    for name, form in forms.items():
        table.add_row(name, typed(form) or "no parameters")
    console.print(table)
    if without:
        console.print(f"No such form (add --to NAME for the reason): {', '.join(without)}.")
    if target:
        form = typed(forms[scheme(target).name], prefix="algorithm.")
        console.print(
            f"To run it: python run.py algorithm={scheme(target).algorithm} {form}".rstrip(), soft_wrap=True
        )
    console.print(_meaning(m))


def _forms(m: "Momentum", names: list[str], strict: bool) -> tuple[dict[str, dict[str, float]], list[str]]:
    """The parameters in each scheme that can express ``m``, and the schemes that cannot."""
    from fedgm.errors import ConfigError
    from fedgm.server.family import SCHEMES

    forms: dict[str, dict[str, float]] = {}
    without: list[str] = []
    for name in names:
        try:
            forms[name] = dict(SCHEMES[name].from_momentum(m))
        except ConfigError:
            if strict:
                raise
            without.append(name)
    return forms, without


def _meaning(m: "Momentum") -> str:
    """First-round gain, and what is lost by taking a summed rate for a damped one."""
    from fedgm.server.momentum import gain

    first = f"First round: x -= {gain(m):.6g} D, the gain eta(1 - beta nu)."
    if m.beta * m.nu == 0:
        return f"{first} No momentum: damped and summed are the same."
    times = 1 / (1 - m.beta)
    return (
        f"{first} A steady update moves x by eta D = {m.eta:.6g} D a round.\n"
        "Damped or summed? Here momentum averages updates; Flower, TFF and torch sum them, which at "
        f"beta={m.beta:.6g} is {times:.6g} times as much. "
        f"So eta={m.eta:.6g} here is lr={m.eta / times:.6g} there: "
        f"that number typed as eta={m.eta / times:.6g} makes steps {times:.6g} times too small, "
        f"eta's typed as lr={m.eta:.6g} makes them {times:.6g} times too large."
    )


def _list(console: "Screen") -> None:
    """Print every scheme."""
    from fedgm.server.family import SCHEMES, typed

    table = _table(console, "scheme", "for example", "recursion, for mean update D and model x")
    table.columns[1].max_width = 21
    for member in SCHEMES.values():
        table.add_row(member.name, typed(member.example), f"{member.recursion}\n[{member.note}]")
    console.print(table)


def _numbers(parameters: tuple[str, ...]) -> dict[str, float]:
    """``("lr=1", "beta=.9")`` as numbers."""
    from fedgm.errors import RefusedError

    numbers: dict[str, float] = {}
    for text in parameters:
        name, _, value = text.partition("=")
        try:
            numbers[name.removeprefix("algorithm.")] = float(value)
        except ValueError:
            raise RefusedError(f"{text} is not NAME=NUMBER. Try {name}=0.9") from None
    return numbers


def _console() -> "Screen":
    """At most 80 columns, and neither colour nor markup."""
    from fedgm.screen import Screen

    console = Screen()
    console.width = min(80, console.width)
    return console


def _table(console: "Screen", *headings: str) -> "Table":
    """Lines on a terminal, bare columns in a pipe."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(
        *headings, box=SIMPLE_HEAD if console.is_terminal else None, pad_edge=False, header_style="bold"
    )
    table.columns[0].no_wrap = True
    return table
