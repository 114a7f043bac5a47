"""A Gantt picture of the virtual clock: who worked when, on which model, and what became of it."""

from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from fedgm.figures.style import EMPTY, FAINT, INK, MUTED, ORANGE, RED, SKY, as_text
from fedgm.files import write_atomically
from fedgm.participation.event import Event
from fedgm.participation.virtual_clock import Outcome, WorkSpan

ROWS = 30  # clients that fit on a page
COLOURS: dict[Outcome, tuple[str, str]] = {
    "used": (SKY, "used; the number is its staleness"),
    "discarded": (ORANGE, "discarded: too old"),
    "dropped": (RED, "never returned"),
}
ONGOING = (EMPTY, "still at work")


class Bar(NamedTuple):
    """One interval with the round in which it ended."""

    t: int
    work: WorkSpan


def draw_timeline(
    participation: Event, rounds: int, path: str | Path, title: str, seconds: float | None = None
) -> None:
    """Draw the first ``rounds`` server steps, or as many as fall into the first ``seconds``, to ``path``."""
    steps = [participation.log(t)["clock/time"] for t in range(1, rounds + 1)]
    end = min(steps[-1], seconds or steps[-1])
    # Some of what is at work at the end comes back only later.
    bars = [
        Bar(t, work)
        for t in range(1, rounds + participation.history + 1)
        for work in participation.trace(t)
        if work.start < end
    ]
    seen = list(dict.fromkeys(bar.work.client for bar in sorted(bars, key=lambda bar: bar.work.start)))
    shown = seen[:ROWS]
    figure = Figure(figsize=(11, 1.9 + _height(shown)), dpi=140, facecolor="white", layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    _draw_bars(axes, [bar for bar in bars if bar.work.client in set(shown)], shown, end)
    _draw_steps(axes, [step for step in steps if step <= end])
    _label(axes, shown, end)
    note = f"{len(shown)} of {len(seen)} clients that worked" if len(seen) > ROWS else f"{len(seen)} clients"
    m, slots = participation.server.per_round, participation.server.concurrency
    note += f", {slots} at a time; a vertical line is a server step ({m} update{'s' if m > 1 else ''})"
    axes.set_title(title, loc="left", fontsize=13, fontweight="bold", color=INK, pad=26)
    axes.annotate(note, (0, 1), (0, 8), "axes fraction", "offset points", fontsize=9.5, color=MUTED)
    as_text(figure)
    picture = BytesIO()
    figure.savefig(picture, format=Path(path).suffix.removeprefix(".") or "png")
    write_atomically(Path(path), picture.getbuffer())  # replaces a link instead of following it


def _height(shown: Sequence[int]) -> float:
    """Inches of the rows."""
    return 0.24 * max(len(shown), 4)


def _draw_bars(axes: Axes, bars: Sequence[Bar], shown: Sequence[int], end: float) -> None:
    rows = {client: row for row, client in enumerate(shown)}
    room = 0.011 * end  # what a digit needs
    present: dict[str, str] = {}
    for t, work in bars:
        over = work.end > end
        colour, word = ONGOING if over else COLOURS[work.outcome]
        present[word] = colour
        width = min(work.end, end) - work.start
        axes.barh(rows[work.client], width, left=work.start, height=0.72, color=colour, ec="white", lw=0.8)
        if work.outcome == "used" and not over and width > room:
            middle = work.start + width / 2
            axes.text(middle, rows[work.client], str(t - work.version), fontsize=7.5, color=INK,
                      ha="center", va="center_baseline")  # fmt: skip
    order = [word for _, word in [*COLOURS.values(), ONGOING] if word in present]
    handles = [Patch(facecolor=present[word], label=word) for word in order]
    below = -0.42 / _height(shown)  # the same distance whatever the height
    axes.legend(handles=handles, loc="upper center", bbox_to_anchor=(0.5, below), ncols=len(COLOURS) + 1,
                frameon=False, fontsize=9.5)  # fmt: skip


def _draw_steps(axes: Axes, steps: Sequence[float]) -> None:
    """Thin lines behind the bars, fainter where there are many."""
    alpha = min(1.0, 60 / max(len(steps), 1))
    for step in steps:
        axes.axvline(step, color=MUTED, lw=0.8, alpha=alpha, zorder=0)


def _label(axes: Axes, shown: Sequence[int], end: float) -> None:
    axes.set_xlim(0, end * 1.003 or 1)
    axes.set_ylim(len(shown) - 0.4, -0.6)
    axes.set_yticks(range(len(shown)), [str(client) for client in shown], fontsize=8)
    axes.set_ylabel("client", color=MUTED)
    axes.set_xlabel("virtual seconds", color=MUTED)
    axes.tick_params(colors=MUTED, length=0)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(FAINT)
