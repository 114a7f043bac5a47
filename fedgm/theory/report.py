"""A theorem's answer for people: what it asks, what fails and by how much, what it would promise."""

from math import isfinite

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from fedgm.theory.statement import Condition, Report

WIDTH = 80


def render(report: Report) -> RenderableType:
    """Conditions, bound and rate of one theorem, at most 80 columns wide."""
    title = f"{report.theorem} ({report.variant})"
    body = Group(
        *(Text(line, style="green" if report.holds else "red") for line in verdict(report)),
        Text(),
        _conditions(report),
        Text(),
        _bound(report),
        Text(),
        Text(f"Rate {report.rate.text}, here {number(report.rate.number)}"),
        Text(f"without constants: {report.rate.regime}."),
        Text(),
        *(Text(f"Note: {note}") for note in report.notes),
        *([Text()] if report.notes else []),
        Text("A diagnostic, never a gate: no run is refused or changed because of it.", style="dim"),
    )
    return Panel(body, title=title, title_align="left", width=WIDTH)


def verdict(report: Report) -> list[str]:
    """One plain sentence for each kind of failure, the worst case of eta_l first."""
    if report.holds:
        eta_l, limit = number(report.setting.eta_l), number(report.eta_l_limit)
        return [f"Every condition of {report.theorem} holds: eta_l = {eta_l}, allowed is {limit}."]
    failed = [c for c in report.conditions if not c.holds]
    rates = sorted((c for c in failed if c.subject == "eta_l"), key=lambda c: c.limit)
    lines = [_sentence(c, report.theorem) for c in rates[:1]]
    return lines + [_sentence(c, report.theorem) for c in failed if c.subject != "eta_l"]


def number(value: float) -> str:
    """Three digits, with a power of ten only where it is needed."""
    return f"{value:.3g}" if not isfinite(value) or value == 0 or 1e-3 <= abs(value) < 1e5 else f"{value:.2e}"


def times(factor: float) -> str:
    """``9,467 times``, ``1.5 times``."""
    if not isfinite(factor):
        return "infinitely many times"
    return f"{factor:,.0f} times" if factor >= 100 else f"{factor:.3g} times"


def _sentence(c: Condition, theorem: str) -> str:
    """What fails and by what factor."""
    if c.subject == "eta_l":
        return (
            f"eta_l = {number(c.value)} is {times(c.factor)} above what {theorem} allows, {number(c.limit)}."
        )
    if not c.is_known:
        return f"{c.subject} is not known: {c.text} may fail."
    if c.limit == 0:
        return f"{c.subject} = {number(c.value)} is not 0: {c.text}."
    return f"{c.subject} = {number(c.value)} is {times(c.factor)} above {number(c.limit)}: {c.text} fails."


def _conditions(report: Report) -> Table:
    """One row a condition."""
    table = Table("condition", "value", "limit", "", box=None, pad_edge=False, header_style="bold")
    for column in table.columns[1:3]:
        column.justify, column.no_wrap = "right", True
    table.columns[3].no_wrap = True
    for c in report.conditions:
        table.add_row(Text(c.text), number(c.value) if c.is_known else "?", number(c.limit), _mark(c))
    return table


def _mark(c: Condition) -> Text:
    """Whether it holds, else by how much it fails."""
    if c.holds:
        return Text("holds", style="green")
    if not c.is_known:
        return Text("not known", style="red")
    return Text(f"fails, {times(c.factor)}" if isfinite(c.factor) else "fails", style="red")


def _bound(report: Report) -> Table:
    """The bound by its terms; a promise only where the conditions hold."""
    note = "holds for this setting" if report.holds else "not a promise: a condition fails"
    bound = report.bound
    table = Table("bound on E||grad f||^2", "", "", box=None, pad_edge=False, header_style="bold")
    table.columns[1].justify = "right"
    for name, value in [
        ("optimisation, f(x_0) - f*", bound.optimisation),
        ("sigma_l, local noise", bound.sigma_l),
        ("sigma_g, unlike clients", bound.sigma_g),
    ]:
        table.add_row(name, number(value), f"{value / bound.total:.0%}" if bound.total else "")
    table.add_row(Text("total", style="bold"), number(bound.total), note)
    return table
