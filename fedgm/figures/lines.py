"""Curves of several lines as a paper prints them: single seeds, their mean, stage ends, direct labels."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite, log
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fedgm.figures.style import FAINT, INK, MUTED, line_styles, sheet, wrapped, write_text
from fedgm.results.rows import Row
from fedgm.results.run import Run
from fedgm.tasks.metric import LOSS, Column

AXES = {"round": "round", "clock/time": "virtual seconds"}
GAP = 0.16  # inches between two labels
SEEDS = "Thick lines are means over seeds, thin ones are single seeds."
STAGES = "Dashed: the last round of a stage."


@dataclass(frozen=True)
class Drawn:
    """A line: its name, its runs (one for each seed), its algorithm, and the row of panes it belongs to."""

    name: str
    runs: tuple[Run, ...]
    algorithm: str = ""
    row: str = ""  # the title of the row; a line without one is in every row


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
    """All panes for each row of lines; the last one of a row carries their names where the curves end."""
    titles = list(dict.fromkeys(line.row for line in lines if line.row)) or [""]
    rows = [(title, [line for line in lines if line.row in ("", title)]) for title in titles]
    most = max(len(members) for _, members in rows)
    width, tall = 3.7 * len(panes) + 1.5, max(2.5, 0.17 * most)  # room for a label each
    below = 0.13 * (1 + wrapped(caption, width).count("\n"))  # a long caption takes nothing from the axes
    figure = sheet(width, (tall + 0.55) * len(rows) + below + 0.35)
    for number, (row, members) in enumerate(rows):
        styles = line_styles([line.algorithm for line in members])
        for place, pane in enumerate(panes, start=1):
            axes = figure.add_subplot(len(rows), len(panes), number * len(panes) + place)
            last: list[tuple[str, str, float, float]] = []
            for line, (colour, dash) in zip(members, styles, strict=True):
                if (end := _line(axes, line, pane, colour, dash)) is not None:
                    last.append((line.name, colour, *end))
            _dress(axes, pane, ends, row)
            _chance(axes, members, pane)
            if place == len(panes):
                _label(axes, last, tall)
    write_text(figure, title, caption)
    return figure


def _line(axes: Axes, line: Drawn, pane: Pane, colour: str, dash: Any) -> tuple[float, float] | None:
    """The mean where all seeds are, single seeds thin behind it. Returns where the line ends."""
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
    for run, curve in zip(line.runs, curves, strict=True):
        places = sorted(curve)
        if places and (len(curves) > 1 or not shared):
            axes.plot(places, [factor * curve[t] for t in places], color=colour, lw=0.6, alpha=0.45)
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


def _chance(axes: Axes, lines: Sequence[Drawn], pane: Pane) -> None:
    """In a pane of a loss, what a model that guesses all classes alike has: ln C."""
    classes = {run.classes for line in lines for run in line.runs}
    if pane.metric.metric != LOSS or len(classes) != 1 or not (count := classes.pop()):
        return
    axes.axhline(log(count), color=MUTED, ls=":", lw=1, zorder=1)
    axes.annotate(
        f"guessing: ln {count}", (1, log(count)), xycoords=("axes fraction", "data"), xytext=(-2, 2),
        textcoords="offset points", ha="right", fontsize=6.5, color=MUTED,
    )  # fmt: skip


def _dress(axes: Axes, pane: Pane, ends: Sequence[int], row: str = "") -> None:
    """Axes, and a dashed line where a stage ends, as the paper draws it."""
    axes.set_xlabel(AXES.get(pane.abscissa, pane.abscissa), fontsize=8.5, color=INK)
    axes.set_ylabel(pane.metric.axis, fontsize=8.5, color=INK)
    if words := ", ".join(word for word in (row, pane.title) if word):
        axes.set_title(words, fontsize=8.5, color=MUTED)
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
