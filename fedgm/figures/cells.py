"""Tables of coloured cells, one for each point of a sweep: what heat map and advantage map share."""

from collections.abc import Callable, Sequence
from typing import Any

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Colormap, Normalize, to_rgb
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle

from fedgm.figures.points import Mark, Point, Value, shown
from fedgm.figures.style import EMPTY, FAINT, INK, MUTED, plain
from fedgm.results.curve import sign

Table = list[list[Point | None]]  # rows from the bottom up, columns from the left
WIDTH, HEIGHT = 0.5, 0.36  # of a cell, in inches
NARROWEST = 0.36  # a cell in which a number such as 12.3 can still be read
BAR = 5  # rows beside which the words of a colour bar have room; below that it lies under the map
HATCH: dict[Mark, str] = {"near chance": "//", "running": ".."}
ORDER: tuple[Mark, ...] = ("finished", "near chance", "paused", "running", "failed", "diverged", "waiting")
WORDS: dict[Mark, str] = {
    "finished": "finished",
    "near chance": "near chance",
    "paused": "stopped early: score so far",
    "running": "running: score so far",
    "failed": "failed",
    "diverged": "diverged",
    "waiting": "not run yet",
}


def pick(points: Sequence[Point], goal: str) -> Point | None:
    """The point that stands for a cell: the one furthest on, of those the best, of equals the first."""
    way = sign(goal)

    def rank(point: Point) -> tuple[int, float, int]:
        score = point.score if point.scored and point.score is not None else 0.0
        return ORDER.index(point.status), -way * score, point.number

    return min(points, key=rank, default=None)


def arrange(
    points: Sequence[Point], rows: Sequence[dict[str, Value]], columns: Sequence[dict[str, Value]], goal: str
) -> Table:
    """A table whose rows and columns are given by the values that their points have."""

    def of(wanted: dict[str, Value]) -> list[Point]:
        return [p for p in points if all(p.values.get(key) == value for key, value in wanted.items())]

    return [[pick(of({**row, **column}), goal) for column in columns] for row in rows]


def width(columns: int) -> float:
    """Inches of a cell: many columns make it narrower."""
    return min(WIDTH, max(0.12, 7.0 / columns))


def paint(
    axes: Axes,
    table: Table,
    value: Callable[[Point], float],
    text: Callable[[float], str],
    colours: Colormap,
    norm: Normalize,
) -> None:
    """Draw the cells: a number where there is a score; a colour where it is one of a run's end."""
    rows, columns = len(table), len(table[0])
    for y, row in enumerate(table):
        for x, point in enumerate(row):
            status = point.status if point else "waiting"
            score = value(point) if point is not None and point.scored else None
            style = look(status)
            if score is not None and status == "finished":
                style = {"facecolor": colours(norm(score)), "edgecolor": "white"}
            _cell(axes, x, y, status, style)
            if score is not None and width(columns) >= NARROWEST:
                small = point is not None and not point.ended
                _write(axes, x, y, text(score), to_rgb(style["facecolor"]), 6.0 if small else 7.5)
    axes.set_xlim(-0.5, columns - 0.5)
    axes.set_ylim(-0.5, rows - 0.5)
    plain(axes)


def look(status: Mark) -> dict[str, Any]:
    """How a cell without a colour is drawn: grey, white where nothing was run, hatched by its mark."""
    if status in HATCH:
        return {"facecolor": FAINT, "edgecolor": "white", "hatch": HATCH[status]}
    return {"facecolor": "white" if status == "waiting" else EMPTY, "edgecolor": FAINT}


def _cell(axes: Axes, x: int, y: int, status: Mark, style: dict[str, Any]) -> None:
    """One rectangle, crossed where its run did not end well."""
    axes.add_patch(Rectangle((x - 0.5, y - 0.5), 1, 1, lw=0.8, **style))
    if status == "diverged":
        axes.plot([x], [y], marker="x", markersize=10, markeredgewidth=1.1, color=MUTED)
    if status == "failed":
        axes.text(x, y, "!", ha="center", va="center", fontsize=9, color=MUTED, weight="bold")


def _write(axes: Axes, x: int, y: int, text: str, face: tuple[float, float, float], size: float) -> None:
    """A number that is readable on the colour of its cell, with the cell's hatching kept away from it."""
    light = 0.299 * face[0] + 0.587 * face[1] + 0.114 * face[2]
    axes.text(
        x,
        y,
        text,
        ha="center",
        va="center",
        fontsize=size,
        color=INK if light > 0.5 else "white",
        bbox={"facecolor": face, "edgecolor": "none", "pad": 1.2},
    )


def scale(
    figure: Figure,
    panels: Sequence[Axes],
    colours: Colormap,
    ends: tuple[float, float],
    values: Sequence[float],
    words: str,
    rows: int,
) -> None:
    """The colour bar of all panels, ``rows`` high; an arrow and a word say that ``values`` lie beyond it."""
    low, high = ends
    cut = {"min": f"below {low:.3g}"} if min(values) < low else {}
    cut |= {"max": f"above {high:.3g}"} if max(values) > high else {}
    tall = rows >= BAR
    bar = figure.colorbar(
        ScalarMappable(Normalize(low, high), colours),
        ax=panels,
        location="right" if tall else "bottom",
        extend="both" if len(cut) == 2 else next(iter(cut), "neither"),
        fraction=0.05 if tall else 0.12 / (HEIGHT * rows),
        aspect=24 if tall else 36,
        pad=0.02 if tall else 0.06 / (HEIGHT * rows),
    )
    said = f"\none colour {' and '.join(cut.values())}".replace("-", "−") if cut else ""
    bar.set_label(words + said, fontsize=8.5, color=INK)
    bar.ax.tick_params(labelsize=8, length=2)
    bar.outline.set_visible(False)


def outline(axes: Axes, table: Table, point: Point | None) -> bool:
    """Frame the cell of ``point``; False where the table does not show it."""
    for y, row in enumerate(table):
        for x, other in enumerate(row):
            if point is not None and other is not None and other.number == point.number:
                for colour, line in (("white", 4.2), (INK, 2.0)):  # dark on light: seen on any colour
                    frame = Rectangle((x - 0.5, y - 0.5), 1, 1, fill=False, edgecolor=colour, lw=line)
                    frame.set_clip_on(False)
                    frame.set_zorder(4)
                    axes.add_patch(frame)
                return True
    return False


def ticks(values: Sequence[Value]) -> tuple[list[int], list[str]]:
    """Places and words of an axis; at most 16 of them."""
    step = -(-len(values) // 16)
    places = list(range(0, len(values), step))
    return places, [shown(values[place]) for place in places]


def keys_of(tables: Sequence[Table], best: bool) -> list[Artist]:
    """Legend entries for the marks that occur."""
    seen = {p.status if p else "waiting" for table in tables for row in table for p in row}
    entries: list[Artist] = []
    if best:
        entries.append(Patch(facecolor="white", edgecolor=INK, lw=2.0, label="best"))
    for status in ORDER[1:]:
        if status not in seen:
            continue
        if status in ("diverged", "failed"):
            marker = "x" if status == "diverged" else "$!$"
            entries.append(Line2D([], [], ls="", marker=marker, color=MUTED, label=WORDS[status]))
        else:
            entries.append(Patch(label=WORDS[status], **look(status)))
    return entries
