"""Curves of several lines as a paper prints them: single seeds, their mean, stage ends, direct labels."""

from collections.abc import Sequence
from math import log
from statistics import mean
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fedgm.figures import names
from fedgm.figures.names import End
from fedgm.figures.pane import Drawn, Pane, cut, ends_inside, reach, residual
from fedgm.figures.style import FAINT, INK, MUTED, line_styles, readable, sheet, wrapped, write_text
from fedgm.results.curve import fluctuation
from fedgm.tasks.metric import LOSS

AXES = {"round": "round", "clock/time": "virtual seconds"}
ALIKE = 0.5  # of the heights that rows of a column have together: where each has so much, they share them
SEEDS = "Thick lines are means over seeds, thin ones are single seeds."
STAGES = "Vertical lines: the last rounds of stages."
RESIDUALS = "Minus its trend: each seed without its own least-squares line; sd is the mean over seeds."


class Panel(NamedTuple):
    """A pane of one row as it is drawn."""

    axes: Axes
    pane: Pane
    ends: list[End]
    has_chance: bool

    @property
    def order(self) -> list[str]:
        """Names as the curves end, from below."""
        return [end.name for end in sorted(self.ends, key=lambda end: end.y)]


def draw(
    lines: Sequence[Drawn],
    panes: Sequence[Pane],
    title: str,
    caption: Sequence[str],
    ends: Sequence[int] = (),
) -> Figure:
    """All panes for each row of lines; the last one, and those that end in another order, carry names."""
    titles = list(dict.fromkeys(line.row for line in lines if line.row)) or [""]
    across = len(panes) if len(panes) < 4 else 2
    down = len(titles) * -(-len(panes) // across)
    figure, half = sheet(1, 1), reach(lines, panes)
    figure.set_layout_engine("constrained", w_pad=0.1)  # words beside an axis do not touch the panel before
    rows: list[list[Panel]] = []
    for row in titles:
        members = [line for line in lines if line.row in ("", row)]
        first = len(rows) * (down // len(titles)) * across
        rows.append([])
        for place, pane in enumerate(panes, start=first + 1):
            axes = figure.add_subplot(down, across, place)
            rows[-1].append(_panel(axes, members, pane, half))
            _dress(axes, pane, ends, row)
    for place in range(len(panes)):
        _share([panels[place].axes for panels in rows])
    named = [(place % across, panel) for panels in rows for place, panel in _named(panels)]
    words = [[end.name for end in panel.ends] for _, panel in named]
    tall = max([2.5, *(1.06 * names.height(some) * len(some) for some in words)])  # room for a label each
    beside = [[names.width(some) for (c, _), some in zip(named, words, strict=True) if c == column]
              for column in range(across)]  # fmt: skip
    width = 3.7 * across + sum(max(widths, default=0.0) for widths in beside)
    below = 0.13 * (1 + wrapped(caption, width).count("\n"))  # a long caption takes nothing from the axes
    figure.set_size_inches(width, (tall + 0.55) * down + below + 0.35)
    for _, panel in named:
        names.put(panel.axes, panel.ends, tall)
    write_text(figure, title, caption)
    return figure


def _named(panels: Sequence[Panel]) -> list[tuple[int, Panel]]:
    """Panels of a row that need names, with their places."""
    curves = [panel for panel in panels if not panel.pane.residual]
    return [
        (place, panel)
        for place, panel in enumerate(panels)
        if panel.pane.residual or panel.has_chance or panel is curves[-1] or panel.order != curves[-1].order
    ]


def _panel(axes: Axes, members: Sequence[Drawn], pane: Pane, half: float) -> Panel:
    """All lines of a row in one pane."""
    styles = line_styles([line.algorithm for line in members], [line.strength for line in members])
    if pane.residual:
        return Panel(
            axes, pane, _residuals(axes, members, pane, [colour for colour, _ in styles], half), False
        )
    ends: list[End] = []
    for line, (colour, dash) in zip(members, styles, strict=True):
        if (where := _line(axes, line, pane, colour, dash)) is not None:
            ends.append(End(line.name, colour, *where))
    chance = _chance(axes, members, pane)
    if chance is None:
        _without_start(axes, pane)
    else:
        x = max((end.x for end in ends), default=1.0)
        ends.append(End(f"guessing: ln {chance}", MUTED, x, log(chance)))
    return Panel(axes, pane, ends, chance is not None)


def _line(axes: Axes, line: Drawn, pane: Pane, colour: str, dash: Any) -> tuple[float, float] | None:
    """The mean where all seeds are, single seeds thin behind it. Returns where the line ends."""
    factor = pane.metric.scale
    curves = [cut(run, pane) for run in line.runs]
    present = [curve for curve in curves if curve]
    if not present:
        return None
    shared = sorted(set(present[0]).intersection(*present)) if len(present) == len(curves) else []
    if shared:
        table = factor * np.array([[curve[t] for t in shared] for curve in present])
        marker, thick = "o" if len(shared) < 8 else None, 2.6 if line.is_staged else 1.6
        dash = "-" if line.is_staged else dash
        axes.plot(shared, table.mean(0), color=colour, ls=dash, lw=thick, marker=marker, ms=3, zorder=3)
    for run, curve in zip(line.runs, curves, strict=True):
        places = sorted(curve)
        if places and (len(curves) > 1 or not shared):
            values, thin = [factor * curve[t] for t in places], readable(colour)
            axes.plot(places, values, color=thin, lw=0.6, alpha=0.45)
        if run.is_divergent and curve and ends_inside(run, pane):
            t = max(curve)
            axes.plot([t], [factor * curve[t]], marker="x", color=colour, ms=7, mew=1.6, zorder=4)
    where = shared[-1] if shared else max(max(curve) for curve in present)
    heights = [factor * curve[where] for curve in present if where in curve]
    furthest = max(max(curve) for curve in present)
    if furthest > where:
        where, heights = furthest, [factor * curve[furthest] for curve in present if furthest in curve]
    return where, float(np.mean(heights))


def _residuals(
    axes: Axes, members: Sequence[Drawn], pane: Pane, colours: Sequence[str], half: float
) -> list[End]:
    """Seeds of each line around a level of its own, ``half`` around it; names have their deviation."""
    ends: list[End] = []
    for place, (line, colour) in enumerate(zip(members, colours, strict=True)):
        level = 2 * half * place
        curves = [curve for run in line.runs if (curve := residual(run, pane))]
        for curve in curves:
            axes.plot(list(curve), [level + value for value in curve.values()], color=colour, lw=0.9)
        if curves:
            deviation = mean(fluctuation([int(t) for t in curve], list(curve.values())) for curve in curves)
            words = f"{line.name}: sd {deviation:.2g} {pane.metric.metric.difference}".rstrip()
            ends.append(End(words, colour, max(map(max, curves)), level))
    places = range(-1, 2 * max(1, len(members)))
    axes.set_yticks([half * place for place in places], [f"±{half:g}" if i % 2 else "0" for i in places])
    axes.set_ylim(-half, half * places[-1])
    return ends


def _without_start(axes: Axes, pane: Pane) -> None:
    """A loss that falls far in the first rounds is cut off there: it would press what follows together."""
    pairs = [pair for line in axes.get_lines() for pair in line.get_xydata().tolist()]  # type: ignore[union-attr]
    starts, after = [y for x, y in pairs if x == 0], [y for x, y in pairs if x > 0]
    if pane.metric.metric.better == "higher" or not starts or not after:
        return
    spread = max(after) - min(after)
    if max(starts) > max(after) + spread:
        axes.set_ylim(min(after) - 0.05 * spread, max(after) + 0.05 * spread)
        axes.annotate(
            f"{max(starts):.3g} at the start", (0, 1), xycoords="axes fraction", xytext=(2, 2),
            textcoords="offset points", fontsize=6.5, color=MUTED,
        )  # fmt: skip


def _chance(axes: Axes, lines: Sequence[Drawn], pane: Pane) -> int | None:
    """In a pane of a loss, a line at what a model that guesses all classes alike has: ln C. Returns C."""
    classes = {run.classes for line in lines for run in line.runs}
    if pane.metric.metric != LOSS or len(classes) != 1 or not (count := classes.pop()):
        return None
    axes.axhline(log(count), color=MUTED, ls=":", lw=1, zorder=1)
    return count


def _share(panels: Sequence[Axes]) -> None:
    """The same heights for the rows of a column, where none of them is pressed together by that."""
    limits = [axes.get_ylim() for axes in panels]
    low, high = min(limit[0] for limit in limits), max(limit[1] for limit in limits)
    if min(limit[1] - limit[0] for limit in limits) >= ALIKE * (high - low):
        for axes in panels:
            axes.set_ylim(low, high)


def _dress(axes: Axes, pane: Pane, ends: Sequence[int], row: str = "") -> None:
    """Axes, and a dashed line where a stage ends, as the paper draws it."""
    axes.set_xlabel(AXES.get(pane.abscissa, pane.abscissa), fontsize=8.5, color=INK)
    points = ", ".join(word for word in (pane.metric.words, pane.metric.metric.difference) if word)
    axes.set_ylabel(points if pane.residual else pane.metric.axis, fontsize=8.5, color=INK, labelpad=5)
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
