"""Many lines by where they end: a row for each, a ring for the mean and a dot for each seed."""

from collections.abc import Sequence
from itertools import groupby
from statistics import mean

from matplotlib.figure import Figure

from fedgm.figures.pane import Drawn
from fedgm.figures.style import FAINT, INK, MUTED, colours, plain, sheet, wrapped, write_text
from fedgm.tasks.metric import Column

SEEDS = "Mean of the last 10 evaluations: rings are means over seeds, dots single seeds."


def draw(lines: Sequence[Drawn], columns: Sequence[Column], title: str, caption: Sequence[str]) -> Figure:
    """A panel for each column; lines of one ``row`` stand together below its title."""
    rows: list[tuple[str, Drawn | None]] = []
    for row, members in groupby(lines, key=lambda line: line.row):
        rows += [(row, None)] if row else []
        rows += [(line.name, line) for line in members]
    width = 2.2 + 3.0 * len(columns)
    figure = sheet(width, 0.95 + 0.24 * len(rows) + 0.13 * (1 + wrapped(caption, width).count("\n")))
    own = colours([line.algorithm for line in lines])
    panels = figure.subplots(1, len(columns), sharey=True, squeeze=False)[0]
    for axes, column in zip(panels, columns, strict=True):
        for place, (_, line) in enumerate(rows):
            scores = [run.score(column.name) for run in line.runs] if line else []
            values = [column.scale * score for score in scores if score is not None]
            if line and values:
                colour, centre = own[line.algorithm], mean(values)
                axes.plot(values, [place] * len(values), ".", color=colour, ms=5, zorder=3)
                axes.plot([centre], [place], "o", color=colour, mfc="white", ms=9, zorder=2)
                axes.annotate(
                    column.number(centre / column.scale), (1.01, place),
                    xycoords=("axes fraction", "data"), va="center", fontsize=7.5, color=MUTED,
                )  # fmt: skip
        axes.set_xlabel(column.axis, fontsize=8.5, color=INK)
        axes.grid(color=FAINT, lw=0.6)
        axes.set_axisbelow(True)
        plain(axes)
    panels[0].set_ylim(len(rows) - 0.4, -0.6)
    panels[0].set_yticks(range(len(rows)), [name for name, _ in rows])
    for tick, (_, line) in zip(panels[0].get_yticklabels(), rows, strict=True):
        tick.set_color(INK if line else MUTED)
    write_text(figure, title, caption)
    return figure
