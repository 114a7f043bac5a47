"""A leaderboard as a picture: a line for each rule, best above, its mean with the interval, a dot a seed."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from fedgm.figures.style import FAINT, INK, MUTED, colours, plain, sheet, write_text
from fedgm.results.interval import Interval
from fedgm.tasks.metric import Column, Metric

SHAPES = "oDv^P"  # of server rules' means, in turn where one colour has several
CLIENT = "s"


class Bar(NamedTuple):
    """One rule: its words, the key that its colour belongs to, and its scores by seed."""

    words: str
    key: str
    kind: str  # server | client
    interval: Interval
    scores: Sequence[float]
    diverged: Sequence[int] = ()  # seeds that count with chance


def draw(bars: Sequence[Bar], title: str, column: str, metric: Metric, caption: str) -> Figure:
    """Whole intervals; one wider than thrice the spread of all scores, or with chance in it, is cut."""
    figure = sheet(7.2, 1.3 + 0.27 * max(1, len(bars)))
    axes = figure.subplots()
    own = colours([bar.key for bar in bars])
    drawn = [own[bar.key] if bar.kind == "server" else MUTED for bar in bars]
    for place, (bar, colour) in enumerate(zip(bars, drawn, strict=True)):
        shape = SHAPES[drawn[:place].count(colour) % len(SHAPES)] if bar.kind == "server" else CLIENT
        values = [metric.scale * score for score in bar.scores]
        low, high = (metric.scale * end for end in (bar.interval.low, bar.interval.high))
        axes.plot([low, high], [place, place], color=colour, linewidth=1.6, alpha=0.45, zorder=2)
        mean = metric.scale * bar.interval.mean
        # Hollow, and below the seeds, which it would hide.
        axes.plot([mean], [place], shape, color=colour, markerfacecolor="white", markersize=8, zorder=3)
        axes.plot(values, [place] * len(values), ".", color=colour, markersize=5, zorder=4)
    calm = [bar for bar in bars if not bar.diverged] or bars
    every = [metric.scale * score for bar in calm for score in bar.scores]
    if every:
        spread = (max(every) - min(every)) or 1.0
        low = min(metric.scale * bar.interval.low for bar in calm)
        high = max(metric.scale * bar.interval.high for bar in calm)
        room = 0.05 * spread
        axes.set_xlim(max(low, min(every) - spread) - room, min(high, max(every) + spread) + room)
    axes.set_ylim(max(0, len(bars) - 1) + 0.6, -0.6)
    axes.set_yticks(range(len(bars)), [_words(bar) for bar in bars])
    axes.set_xlabel(Column(column, metric).axis, fontsize=8.5, color=INK)
    axes.grid(axis="x", color=FAINT, linewidth=0.6)
    axes.set_axisbelow(True)
    plain(axes)
    hollow: dict[str, Any] = {"linestyle": "", "color": MUTED, "markerfacecolor": "white", "markersize": 8}
    marks = [
        Line2D([], [], marker=SHAPES[0], label="server rule, mean", **hollow),
        Line2D([], [], marker=CLIENT, label="client rule, mean", **hollow),
        Line2D([], [], marker=".", linestyle="", color=MUTED, markersize=5, label="a seed"),
        Line2D([], [], color=MUTED, alpha=0.6, label="95 % interval"),
    ]
    write_text(figure, title, [caption], marks)
    return figure


def _words(bar: Bar) -> str:
    lost = ", ".join(map(str, bar.diverged))
    return f"{bar.words}\ndiverged on seed {lost}" if lost else bar.words
