"""Where a sweep beats a baseline: its scores minus the baseline's best, eta against everything else."""

import math
from collections import Counter
from collections.abc import Sequence
from itertools import product
from statistics import mean

import numpy as np
from matplotlib import colormaps
from matplotlib.colors import LinearSegmentedColormap, Normalize
from matplotlib.figure import Figure

from fedgm.figures import cells
from fedgm.figures.importance import filled
from fedgm.figures.points import (
    Point,
    Value,
    coloured,
    is_whole,
    label,
    levels,
    named,
    swept,
)
from fedgm.figures.style import INK, sheet, write_text
from fedgm.results.curve import sign
from fedgm.tasks.metric import Column

ETA = "algorithm.eta"
MOST = 40  # rows or columns: more are not drawn as a grid


def advantages(points: Sequence[Point], goal: str, baseline: float) -> dict[int, float]:
    """Score minus baseline of each scored point by number; above 0 is better, whatever the goal."""
    way = sign(goal)
    return {p.number: way * (p.score - baseline) for p in points if p.scored and p.score is not None}


def reach(values: Sequence[float]) -> float:
    """Where the colours end, on both sides of 0: losses far below do not pale the gains."""
    sizes = sorted(abs(value) for value in values)
    return max([*values, sizes[len(sizes) // 2], 1e-9]) if sizes else 1.0


def grid(points: Sequence[Point], goal: str) -> tuple[str, list[dict[str, Value]], cells.Table] | None:
    """The column key, the values of each row, the cells; None where the points are not a grid.

    Rows of several keys lie by their mean, the best on top, where every point has come to its end.
    """
    keys = swept(points)
    if not keys:
        return None
    column = ETA if ETA in keys else max(keys, key=lambda key: len(levels(points, key)))
    rest = [key for key in keys if key != column]
    rows = [dict(zip(rest, row, strict=True)) for row in product(*(levels(points, key) for key in rest))]
    columns: list[dict[str, Value]] = [{column: value} for value in levels(points, column)]
    if max(len(rows), len(columns)) > MOST:
        return None
    if _are_ranked(points) and (worth := filled(points, goal)):
        rows.sort(key=lambda row: sign(goal) * mean(worth[p.number] for p in points if _is_in(p, row)))
    return column, rows, cells.arrange(points, rows, columns, goal)


def _are_ranked(points: Sequence[Point]) -> bool:
    """Whether rows lie by their mean: those of one key keep its order, and stopped runs have no rank."""
    return len(swept(points)) > 2 and is_whole(points)


def _is_in(point: Point, row: dict[str, Value]) -> bool:
    return row.items() <= point.values.items()


def draw(
    points: Sequence[Point],
    caption: str,
    metric: Column,
    goal: str,
    baseline: float,
    reference: str = "FedAvg's best",
) -> Figure | None:
    """The map, blue where the sweep is ahead; ``reference`` names the baseline, best with its eta."""
    laid_out = grid(points, goal)
    gains = advantages(points, goal, baseline)
    if laid_out is None or not gains:
        return None
    column, rows, table = laid_out
    kept = [gains[p.number] for p in points if p.ended]
    drawn = [sign(goal) * (score - baseline) for score in coloured(points)]
    norm = Normalize(-reach(drawn), reach(drawn))
    wide = cells.width(len(table[0])) * len(table[0])
    around = 1.75 if len(rows) >= cells.BAR else 2.2
    figure = sheet(max(6.0, wide + 2.6), cells.HEIGHT * len(rows) + around)
    axes = figure.add_subplot()
    factor = metric.scale
    colours = LinearSegmentedColormap.from_list("gain", colormaps["RdBu"](np.linspace(0.1, 0.9, 255)))
    digits = _digits(factor * (norm.vmax or 1.0))
    cells.paint(axes, table, lambda p: gains[p.number], lambda v: _signed(factor * v, digits), colours, norm)
    keys = swept(points)
    axes.set_xticks(*cells.ticks(levels(points, column)))
    axes.set_xlabel(label(column, keys), fontsize=10, color=INK)
    axes.set_yticks(range(len(rows)), [named(row, keys) for row in rows])
    if drawn:
        shown, far = [factor * gain for gain in drawn], factor * reach(drawn)
        cells.scale(figure, [axes], colours, (-far, far), shown, _difference(metric), len(rows))
    title = f"Ahead of {reference} at {sum(gain > 0 for gain in kept)} of {len(kept)} finished points"
    others = Counter(cells.WORDS[p.status].partition(":")[0] for p in points if not p.ended)
    if others:
        title += f" ({', '.join(f'{count} {word}' for word, count in others.items())})"
    level = f"{metric.number(baseline)}{metric.unit}"
    about = f"Baseline: {reference}, {level}. Means of the last 10 evaluations."
    order = "Rows by their mean, the best on top." if _are_ranked(points) else ""
    write_text(figure, title, [caption, about, order], cells.keys_of([table], best=False))
    return figure


def _digits(largest: float) -> int:
    """Decimals that show two figures of the largest gain."""
    return min(4, max(0, 1 - math.floor(math.log10(largest))))


def _signed(value: float, digits: int) -> str:
    """A gain with its sign, a true minus included; what rounds to 0 has no sign."""
    text = f"{value:+.{digits}f}"
    return text.replace("-", "−") if float(text) else text[1:]


def _difference(metric: Column) -> str:
    """What the colours say."""
    points_of = metric.metric.difference
    return f"{metric.words} gained, {points_of}" if points_of else f"{metric.words}: gain over the baseline"
