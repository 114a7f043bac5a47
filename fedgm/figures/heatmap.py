"""Heat maps of a sweep: the score over two keys, a panel for each value of a third."""

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from matplotlib.figure import Figure

from fedgm.figures import cells
from fedgm.figures.points import (
    Point,
    Value,
    best,
    coloured,
    described,
    label,
    levels,
    limits,
    named,
    swept,
)
from fedgm.figures.style import INK, sheet, write_text
from fedgm.results.curve import sign
from fedgm.tasks.metric import Column

PAGE = 8.0  # inches: panels stand side by side as long as they fit
MOST = 40  # more values on an axis than this are a random search, not a grid


@dataclass(frozen=True)
class Layout:
    """What stands where; ``folded`` keys have no axis, and a cell shows their best."""

    columns: str
    rows: str | None
    panels: str | None
    folded: list[str]


def layout(points: Sequence[Point], axes: Sequence[str] = ()) -> Layout | None:
    """Columns, rows, panels as asked; by default the key with most values lies along the bottom."""
    keys = swept(points)
    chosen = [key for key in axes if key in keys]
    free = [key for key in keys if key not in chosen]
    if not chosen and free:
        chosen.append(max(free, key=lambda key: len(levels(points, key))))
        free.remove(chosen[0])
    chosen += free[: 3 - len(chosen)]
    if not chosen or max(len(levels(points, key)) for key in chosen) > MOST:
        return None
    rows, panels = (*chosen[1:3], None, None)[:2]
    return Layout(chosen[0], rows, panels, [key for key in keys if key not in chosen])


def tables(points: Sequence[Point], plan: Layout, goal: str) -> dict[Value | None, cells.Table]:
    """The cells of each panel, by the value of its key."""
    columns: list[dict[str, Value]] = [{plan.columns: v} for v in levels(points, plan.columns)]
    rows: list[dict[str, Value]] = [{}]
    if plan.rows:
        rows = [{plan.rows: value} for value in levels(points, plan.rows)]
    if plan.panels is None:
        return {None: cells.arrange(points, rows, columns, goal)}
    return {
        value: cells.arrange([p for p in points if p.values.get(plan.panels) == value], rows, columns, goal)
        for value in levels(points, plan.panels)
    }


def draw(
    points: Sequence[Point],
    caption: str,
    metric: Column,
    goal: str,
    axes: Sequence[str] = (),
    shared: tuple[float, float] | None = None,
) -> Figure | None:
    """All panels on one colour scale, or on a ``shared`` one, with the best cell outlined.

    None where there is nothing to compare.
    """
    plan = layout(points, axes)
    if plan is None or not any(p.scored or p.status == "diverged" for p in points):
        return None
    panels = tables(points, plan, goal)
    colours = colormaps["viridis" if sign(goal) > 0 else "viridis_r"]
    visible = coloured([p for table in panels.values() for row in table for p in row if p is not None])
    low, high = shared or limits(visible, goal)
    norm = Normalize(low, high)
    first = next(iter(panels.values()))
    across = max(1, min(len(panels), int(PAGE / (cells.width(len(first[0])) * len(first[0]) + 0.5))))
    down = -(-len(panels) // across)
    figure = sheet(*_size(len(first[0]), len(first), across, down))
    grid = figure.subplots(down, across, squeeze=False, sharex=True, sharey=True)
    winner = best(points, goal)
    for place, (value, table) in enumerate(panels.items()):
        panel = grid[place // across][place % across]
        cells.paint(panel, table, lambda p: p.score or 0.0, lambda v: metric.number(v), colours, norm)
        cells.outline(panel, table, winner)
        _name(panel, points, plan, value, left=place % across == 0, bottom=place + across >= len(panels))
    for spare in range(len(panels), across * down):
        grid[spare // across][spare % across].set_visible(False)
    if visible:
        ends, shown = ([metric.scale * value for value in some] for some in ((low, high), visible))
        places = grid.ravel().tolist()
        cells.scale(figure, places, colours, (ends[0], ends[1]), shown, metric.axis, len(first) * down)
    entries = cells.keys_of(list(panels.values()), winner is not None)
    text = [caption, _folding(plan, swept(points)), "One colour scale for all grids." if shared else ""]
    write_text(figure, _title(winner, swept(points), metric), text, entries)
    return figure


def _size(columns: int, rows: int, across: int, down: int) -> tuple[float, float]:
    """Inches of the page: cells keep their size, the page grows."""
    body = cells.width(columns) * columns + 0.35
    overhead = 1.75 if rows * down >= cells.BAR else 1.8
    return max(6.0, across * body + 1.6), down * (cells.HEIGHT * rows + 0.32) + overhead


def _name(
    axes: Axes, points: Sequence[Point], plan: Layout, value: Value | None, left: bool, bottom: bool
) -> None:
    """Ticks, and the labels that this panel's place on the page asks for."""
    keys = swept(points)
    axes.set_xticks(*cells.ticks(levels(points, plan.columns)))
    if plan.rows:
        axes.set_yticks(*cells.ticks(levels(points, plan.rows)))
    else:
        axes.set_yticks([])
    if bottom:
        axes.set_xlabel(label(plan.columns, keys), fontsize=10, color=INK)
        axes.tick_params(labelbottom=True)
    if left and plan.rows:
        axes.set_ylabel(label(plan.rows, keys), fontsize=10, color=INK)
    if plan.panels is not None and value is not None:
        axes.set_title(named({plan.panels: value}, keys), fontsize=9, color=INK, loc="left", pad=3)


def _title(winner: Point | None, keys: Sequence[str], metric: Column) -> str:
    """The result in a line."""
    if winner is None or winner.score is None:
        return f"{metric.axis}: no finished run yet"
    name = metric.words
    return f"Best {name}: {metric.number(winner.score)}{metric.unit} at {described(winner, keys)}"


def _folding(plan: Layout, keys: Sequence[str]) -> str:
    """What a cell shows, where it stands for several runs."""
    mean = "Mean of the last 10 evaluations."
    if not plan.folded:
        return mean
    return f"{mean} A cell shows the best over {', '.join(label(key, keys) for key in plan.folded)}."
