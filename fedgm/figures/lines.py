"""Curves of several lines as a paper prints them: mean and band over seeds, stage ends, direct labels."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fedgm.figures.style import COLOURS, FAINT, INK, MUTED, sheet, wrapped, write_text
from fedgm.results.rows import Row
from fedgm.results.run import Run
from fedgm.tasks.metric import Column

# More lines than colours change the dashes.
DASHES: tuple[Any, ...] = ("-", (0, (5, 1.5)), (0, (1, 1)), (0, (5, 1.5, 1, 1.5)))
AXES = {"round": "round", "clock/time": "virtual seconds"}
GAP = 0.16  # inches between two labels
BAND = "Lines are means over seeds, bands reach from the lowest seed to the highest."
STAGES = "Dashed: the last round of a stage."


@dataclass(frozen=True)
class Drawn:
    """A line: its name and its runs, one for each seed."""

    name: str
    runs: tuple[Run, ...]


@dataclass(frozen=True)
class Pane:
    """A metric against rounds (or another abscissa), between two of them where given."""

    metric: Column
    low: float | None = None
    high: float | None = None
    abscissa: str = "round"
    title: str = ""


def draw(
    lines: Sequence[Drawn],
    panes: Sequence[Pane],
    title: str,
    caption: Sequence[str],
    ends: Sequence[int] = (),
) -> Figure:
    """All lines in each pane; the last one carries their names at the ends of the curves."""
    width, tall = 3.7 * len(panes) + 1.5, max(2.5, 0.17 * len(lines))  # room for a label each
    below = 0.13 * (1 + wrapped(caption, width).count("\n"))  # a long caption takes nothing from the axes
    figure = sheet(width, tall + below + 0.9)
    for place, pane in enumerate(panes, start=1):
        axes = figure.add_subplot(1, len(panes), place)
        last: list[tuple[str, str, float, float]] = []
        for number, line in enumerate(lines):
            colour, dash = style(number)
            if (end := _line(axes, line, pane, colour, dash)) is not None:
                last.append((line.name, colour, *end))
        _dress(axes, pane, ends)
        if place == len(panes):
            _label(axes, last, tall)
    write_text(figure, title, caption)
    return figure


def style(number: int) -> tuple[str, Any]:
    """Colour and dashes of a line: 32 that can be told apart."""
    return COLOURS[number % len(COLOURS)], DASHES[number // len(COLOURS) % len(DASHES)]


def _line(axes: Axes, line: Drawn, pane: Pane, colour: str, dash: Any) -> tuple[float, float] | None:
    """Mean and band where all seeds are; single seeds beyond. Returns where the line ends."""
    factor = pane.metric.scale
    curves = [_cut(points(run, pane), pane) for run in line.runs]
    present = [curve for curve in curves if curve]
    if not present:
        return None
    shared = sorted(set(present[0]).intersection(*present)) if len(present) == len(curves) else []
    if shared:
        table = factor * np.array([[curve[t] for t in shared] for curve in present])
        marker = "o" if len(shared) < 8 else None
        axes.plot(shared, table.mean(0), color=colour, ls=dash, lw=1.6, marker=marker, ms=3, zorder=3)
        if len(present) > 1:
            axes.fill_between(shared, table.min(0), table.max(0), color=colour, alpha=0.16, lw=0)
    for run, curve in zip(line.runs, curves, strict=True):
        beyond = [t for t in sorted(curve) if not shared or t >= shared[-1]]
        if len(beyond) > 1:  # this seed goes further than the others
            axes.plot(beyond, [factor * curve[t] for t in beyond], color=colour, ls=dash, lw=0.7, alpha=0.7)
        if run.is_divergent and curve and _ends_inside(run, pane):
            t = max(curve)
            axes.plot([t], [factor * curve[t]], marker="x", color=colour, ms=7, mew=1.6, zorder=4)
    where = shared[-1] if shared else max(max(curve) for curve in present)
    heights = [factor * curve[where] for curve in present if where in curve]
    furthest = max(max(curve) for curve in present)
    if furthest > where:
        where, heights = furthest, [factor * curve[furthest] for curve in present if furthest in curve]
    return where, float(np.mean(heights))


def points(run: Run, pane: Pane) -> dict[float, float]:
    """Place -> value as it was measured, the untrained model's first, without what was not finite."""
    start: Row = {"round": 0, "clock/time": 0.0, **(run.facts.get("initial") or {})}
    pairs = ((row.get(pane.abscissa), row.get(pane.metric.name)) for row in (start, *run.evaluations))
    return {float(t): float(v) for t, v in pairs if t is not None and v is not None and isfinite(v)}


def _cut(curve: dict[float, float], pane: Pane) -> dict[float, float]:
    """The points between the pane's ends."""
    low = -np.inf if pane.low is None else pane.low
    high = np.inf if pane.high is None else pane.high
    return {t: value for t, value in curve.items() if low <= t <= high}


def _ends_inside(run: Run, pane: Pane) -> bool:
    """Whether the run's last evaluation is in the pane."""
    return pane.high is None or max(points(run, pane)) <= pane.high


def _dress(axes: Axes, pane: Pane, ends: Sequence[int]) -> None:
    """Axes, and a dashed line where a stage ends, as the paper draws it."""
    axes.set_xlabel(AXES.get(pane.abscissa, pane.abscissa), fontsize=8.5, color=INK)
    axes.set_ylabel(pane.metric.axis, fontsize=8.5, color=INK)
    if pane.title:
        axes.set_title(pane.title, fontsize=8.5, color=MUTED)
    if pane.abscissa == "round" and pane.high is not None:
        axes.set_xlim(pane.low or 0, pane.high)
    for end in ends if pane.abscissa == "round" else ():
        if pane.high is None or (pane.low or 0) < end < pane.high:
            axes.axvline(end, color=MUTED, ls="--", lw=0.8, zorder=1)
            axes.annotate(
                f"{end}", (end, 1), xycoords=("data", "axes fraction"), xytext=(2, -2),
                textcoords="offset points", va="top", fontsize=6.5, color=MUTED,
            )  # fmt: skip
    axes.grid(color=FAINT, lw=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelsize=8, colors=INK)


def _label(axes: Axes, last: list[tuple[str, str, float, float]], tall: float) -> None:
    """Names right of axes of ``tall`` inches, at the height of their curves as far as they do not touch."""
    low, high = axes.get_ylim()
    ordered = sorted(last, key=lambda entry: entry[3])
    wanted = [min(1.0, max(0.0, (entry[3] - low) / (high - low))) for entry in ordered]
    for (name, colour, x, y), place in zip(ordered, apart(wanted, GAP / tall), strict=True):
        axes.annotate(
            name, (x, y), xycoords="data", xytext=(1.03, place), textcoords="axes fraction", va="center",
            fontsize=8, color=colour, annotation_clip=False,
            arrowprops={
                "arrowstyle": "-", "color": colour, "lw": 0.5, "alpha": 0.6, "shrinkB": 2, "relpos": (0, 0.5),
            },
        )  # fmt: skip


def apart(wanted: Sequence[float], gap: float) -> list[float]:
    """Ascending places moved as little as needed so that neighbours are ``gap`` apart."""
    blocks: list[tuple[float, int]] = []  # (centre, members) of labels that touch
    for place in wanted:
        centre, members = place, 1
        while blocks and centre - (members - 1) * gap / 2 < blocks[-1][0] + blocks[-1][1] * gap / 2 + gap / 2:
            before, count = blocks.pop()
            centre = (before * count + centre * members) / (count + members)
            members += count
        blocks.append((centre, members))
    return [centre + (i - (members - 1) / 2) * gap for centre, members in blocks for i in range(members)]
