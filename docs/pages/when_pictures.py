"""When FedGM helps: its gain over FedAvg's best by eta and delay, and the etas that each rule can use."""

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle

from fedgm.figures.style import EMPTY, INK, MUTED, colours, plain, sheet, write_text

NEXT = 0.5  # etas further apart are no neighbours: those between them were not run
LOST = {"chance", "diverged"}
# How an eta ended: marker, size, whether it is filled, and what the legend says.
MARKS = {
    "usable": ("o", 5.5, True, "usable"),
    "learned": ("o", 4.5, False, "learned, not usable"),
    "chance": ("x", 4.0, False, "near chance, or diverged"),
    "stopped": ("o", 1.5, True, "stopped early"),
}


def draw_gains(rows: Mapping[str, Mapping[float, float | str]], caption: Sequence[str]) -> Figure:
    """A cell for each setting and eta, blue where FedGM is ahead; grey was not run to its end."""
    etas = sorted({eta for cells in rows.values() for eta in cells})
    known = [[cells.get(eta, "") for eta in etas] for cells in rows.values()]
    table = np.array([[np.nan if isinstance(value, str) else value for value in line] for line in known])
    reach = max(1.0, float(np.nanmax(np.abs(table), initial=0.0)))
    figure = sheet(max(5.0, 0.55 * len(etas) + 3.2), 0.42 * len(rows) + 1.9)
    axes = figure.add_subplot()
    scale = colormaps["RdBu"].with_extremes(bad=EMPTY)
    axes.imshow(np.ma.masked_invalid(table), cmap=scale, vmin=-reach, vmax=reach, aspect="auto")
    for (y, x), value in np.ndenumerate(table):
        word = known[y][x]
        if isinstance(word, str):
            axes.text(x, y, word, ha="center", va="center", fontsize=6, color=MUTED)
            if word in LOST:
                corner = (x - 0.5, y - 0.5)
                axes.add_patch(Rectangle(corner, 1, 1, fill=False, hatch="////", ec="#b9bec8", lw=0))
        else:
            shade = "white" if abs(value) > 0.65 * reach else INK
            text = f"{value:+.1f}".replace("-", "\N{MINUS SIGN}")
            axes.text(x, y, text, ha="center", va="center", fontsize=7.5, color=shade)
    axes.set_xticks(range(len(etas)), [f"{eta:g}" for eta in etas])
    axes.set_yticks(range(len(rows)), list(rows))
    axes.set_xlabel("server rate η", fontsize=9, color=INK)
    plain(axes)
    write_text(figure, "FedGM on two lines of its grid, minus FedAvg's best, in points", caption)
    return figure


def draw_ranges(
    settings: Mapping[str, Mapping[str, tuple[str, Mapping[float, str]]]], caption: str
) -> Figure:
    """By setting and rule (its algorithm, and how each eta ended); lines join usable neighbours."""
    own = colours(algorithm for rules in settings.values() for algorithm, _ in rules.values())
    figure = sheet(6.8, 0.2 * sum(1.4 + len(rules) for rules in settings.values()) + 1.3)
    axes = figure.add_subplot()
    y, ticks = 0.0, dict[float, str]()
    for setting, rules in settings.items():
        axes.text(0, y, setting, fontsize=8.5, fontweight="bold", color=INK, va="center")
        for rule, (algorithm, ends) in rules.items():
            y += 1
            ticks[y] = rule
            _rule(axes, y, ends, own[algorithm])
        y += 1.4
    axes.set_yticks(list(ticks), list(ticks.values()))
    axes.set_xlabel("server rate η", fontsize=9, color=INK)
    axes.set_ylim(y - 0.6, -0.8)
    plain(axes)
    entries = [_mark(end, MUTED) for end in MARKS]
    write_text(figure, "Server rates that each rule can use", [caption], entries)
    return figure


def _rule(axes: Axes, y: float, ends: Mapping[float, str], colour: str) -> None:
    for one, other in pairwise(sorted(ends)):
        if ends[one] == ends[other] == "usable" and other - one <= NEXT:
            axes.plot([one, other], [y, y], color=colour, lw=1.6, alpha=0.5)
    for eta, end in ends.items():
        mark = _mark("chance" if end in LOST else end, colour)
        mark.set_data([eta], [y])
        axes.add_line(mark)


def _mark(end: str, colour: str) -> Line2D:
    marker, size, filled, words = MARKS[end]
    face, edge = (colour if filled else "white"), (colour if end != "stopped" else MUTED)
    return Line2D(
        [], [], ls="", marker=marker, ms=size, mfc=face, mec=edge, mew=0.9, label=words
    )  # fmt: skip
