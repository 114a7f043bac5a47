"""When FedGM helps: its gain over FedAvg's best by eta and delay, and the etas that each rule can use."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from matplotlib import colormaps
from matplotlib.figure import Figure

from fedgm.figures.style import BLUE, EMPTY, INK, MUTED, plain, sheet, write_text


def draw_gains(
    rows: Mapping[str, Mapping[float, float]], stopped: Mapping[str, Sequence[float]], caption: str
) -> Figure:
    """A cell for each setting and eta, blue where FedGM is ahead; grey was not run to its end."""
    etas = sorted({eta for name, gains in rows.items() for eta in (*gains, *stopped.get(name, ()))})
    table = np.array([[gains.get(eta, np.nan) for eta in etas] for gains in rows.values()])
    reach = max(1.0, float(np.nanmax(np.abs(np.clip(table, -15, 15)))))
    figure = sheet(max(5.0, 0.55 * len(etas) + 2.6), 0.42 * len(rows) + 1.7)
    axes = figure.add_subplot()
    colours = colormaps["RdBu"].with_extremes(bad=EMPTY)
    axes.imshow(np.ma.masked_invalid(table), cmap=colours, vmin=-reach, vmax=reach, aspect="auto")
    for (y, x), value in np.ndenumerate(table):
        if np.isfinite(value):
            shade = "white" if abs(value) > 0.65 * reach else INK
            axes.text(
                x, y, f"{value:+.1f}".replace("-", "−"), ha="center", va="center", fontsize=7.5, color=shade
            )
    for y, name in enumerate(rows):
        for eta in stopped.get(name, ()):
            axes.text(etas.index(eta), y, "stopped", ha="center", va="center", fontsize=6, color=MUTED)
    axes.set_xticks(range(len(etas)), [f"{eta:g}" for eta in etas])
    axes.set_yticks(range(len(rows)), list(rows))
    axes.set_xlabel("server rate eta", fontsize=9, color=INK)
    plain(axes)
    write_text(figure, "FedGM (beta = nu = 0.9) minus FedAvg's best, in points", [caption])
    return figure


class Etas(NamedTuple):
    """Of one rule: all that were run to their end, those of them that it can use, those stopped early."""

    ended: Sequence[float]
    usable: Sequence[float]
    stopped: Sequence[float]


def draw_ranges(rules: Mapping[str, Etas], caption: str) -> Figure:
    """For each rule the etas that were run to their end (rings), usable (filled) or stopped early (dots)."""
    figure = sheet(6.4, 0.27 * len(rules) + 1.5)
    axes = figure.add_subplot()
    for y, (ended, usable, stopped) in enumerate(reversed(list(rules.values()))):
        axes.plot(ended, [y] * len(ended), "o", ms=4.5, mfc="white", mec=MUTED, mew=0.7)
        axes.plot(stopped, [y] * len(stopped), "o", ms=1.5, color=MUTED)
        if usable:
            axes.plot([min(usable), max(usable)], [y, y], color=BLUE, lw=1.6, alpha=0.5)
            axes.plot(usable, [y] * len(usable), "o", ms=5.5, color=BLUE)
    axes.set_yticks(range(len(rules)), list(reversed(list(rules))))
    axes.set_xlabel("server rate eta", fontsize=9, color=INK)
    axes.set_ylim(-0.7, len(rules) - 0.3)
    plain(axes)
    write_text(figure, "Server rates that each rule can use", [caption])
    return figure
