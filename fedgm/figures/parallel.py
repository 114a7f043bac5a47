"""Parallel coordinates of a sweep: one line for each run, through its values to its score."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from fedgm.figures.points import (
    Point,
    best,
    described,
    is_whole,
    label,
    levels,
    limits,
    scores,
    shown,
    swept,
)
from fedgm.figures.style import FAINT, INK, MUTED, sheet, write_text
from fedgm.results.curve import sign
from fedgm.tasks.metric import Column

MOST = 12  # values that each get a place; more are put on a linear axis
BAND = 0.7  # share of the room between two values over which the lines of one value are spread
DIVERGED = -0.1  # height on the score's axis at which lines of diverged runs end


def heights(points: Sequence[Point], key: str, goal: str) -> dict[int, float]:
    """Where each run's line crosses the axis of a key, from 0 to 1, by number.

    Runs that share a value are spread around it, the better ones higher, so that the lines of a grid do
    not lie on top of each other.
    """
    values = levels(points, key)
    numbers = [value for value in values if not isinstance(value, str)]
    if len(values) > MOST and len(numbers) == len(values):
        low, high = numbers[0], numbers[-1]
        return {p.number: (float(p.values[key]) - low) / (high - low) for p in points if key in p.values}
    room = 1 / len(values)
    places: dict[int, float] = {}
    for index, value in enumerate(values):
        sharing = sorted((p for p in points if p.values.get(key) == value), key=lambda p: _rank(p, goal))
        for place, point in enumerate(sharing):
            offset = (place + 0.5) / len(sharing) - 0.5
            places[point.number] = (index + 0.5 + BAND * offset) * room
    return places


def ends(points: Sequence[Point], goal: str) -> dict[int, float]:
    """Where each line ends on the score's axis, best at the top; runs without a score are left out."""
    low, high = limits(scores(points), goal)
    places = {p.number: DIVERGED for p in points if p.status == "diverged"}
    for point in points:
        if point.scored and point.score is not None:
            share = (min(max(point.score, low), high) - low) / (high - low)
            places[point.number] = share if sign(goal) > 0 else 1 - share
    return places


def draw(points: Sequence[Point], caption: str, metric: Column, goal: str) -> Figure | None:
    """One axis for each swept key and one for the score; None without either, or where a run was stopped."""
    keys = swept(points)
    whole = [p for p in points if all(key in p.values for key in keys)]
    shown_points = [p for p in whole if p.scored or p.status == "diverged"]
    if not keys or not scores(shown_points) or not is_whole(points):
        return None
    columns = [heights(shown_points, key, goal) for key in keys] + [ends(shown_points, goal)]
    figure = sheet(max(4.6, 1.7 * (len(keys) + 1) + 1.0), 4.9)
    axes = figure.add_subplot()
    winner = best(points, goal)
    _lines(axes, shown_points, columns, winner, goal)
    for place, key in enumerate(keys):
        _key_axis(axes, place, key, shown_points, keys)
    _score_axis(axes, len(keys), shown_points, metric, goal)
    axes.set_xlim(-0.35, len(keys) + 0.3)
    axes.set_ylim(-0.16 if any(not p.scored for p in shown_points) else -0.04, 1.08)
    axes.axis("off")
    title = f"{len(shown_points)} runs"
    if winner is not None:
        title += f"; best at {described(winner, keys)}"
    write_text(figure, title, [caption, *_notes(points)], _legend(shown_points, winner))
    return figure


def _notes(points: Sequence[Point]) -> list[str]:
    """How to read the lines, and how many runs are not there."""
    notes = ["Runs that share a value are spread around it, better ones higher."]
    left_out = sum(not p.scored and p.status != "diverged" for p in points)
    if left_out:
        notes.append(f"Runs without a score ({left_out}) are not drawn.")
    return notes


def _rank(point: Point, goal: str) -> tuple[float, int]:
    """Worse runs first, diverged ones before all."""
    score = point.score if point.scored and point.score is not None else None
    return (-np.inf if score is None else sign(goal) * score), point.number


def _lines(
    axes: Axes, points: Sequence[Point], columns: list[dict[int, float]], winner: Point | None, goal: str
) -> None:
    """All lines, the better ones on top, the best one on a dark edge."""
    norm = Normalize(0, 1)
    colours = colormaps["viridis"]
    for depth, point in enumerate(sorted(points, key=lambda p: _rank(p, goal))):
        places = [column[point.number] for column in columns if point.number in column]
        x, y = _curve(places)
        order = 2 + depth / len(points)
        if not point.scored:
            axes.plot(x, y, color="#9aa0a8", lw=0.8, ls=(0, (4, 3)), zorder=1)
            continue
        colour = colours(norm(columns[-1][point.number]))
        if winner is not None and point.number == winner.number:
            axes.plot(x, y, color=INK, lw=4.0, zorder=4)
            axes.plot(x, y, color=colour, lw=2.2, zorder=4.1)
        else:
            axes.plot(x, y, color=colour, lw=1.0, alpha=0.85, zorder=order)


def _curve(places: Sequence[float]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """A smooth line that crosses every axis level, so that the eye can follow it through."""
    steps = np.linspace(0, 1, 24)
    ease = steps * steps * (3 - 2 * steps)
    x = [index + steps for index in range(len(places) - 1)]
    y = [a + (b - a) * ease for a, b in pairwise(places)]
    return np.concatenate(x), np.concatenate(y)


def _key_axis(axes: Axes, place: int, key: str, points: Sequence[Point], keys: Sequence[str]) -> None:
    """A vertical axis with the values of a key beside it."""
    axes.plot([place, place], [0, 1], color=FAINT, lw=1.2, zorder=0)
    axes.text(place, 1.04, label(key, keys), ha="center", va="bottom", fontsize=10.5, color=INK)
    values = levels(points, key)
    many = len(values) > MOST
    for index, value in enumerate(values):
        if many and index not in (0, len(values) - 1):
            continue
        height = index / (len(values) - 1) if many else (index + 0.5) / len(values)
        axes.text(
            place - 0.03,
            height,
            shown(value),
            ha="right",
            va="center",
            fontsize=8.5,
            color=INK,
            zorder=6,
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.8, "alpha": 0.8},
        )


def _score_axis(axes: Axes, place: int, points: Sequence[Point], metric: Column, goal: str) -> None:
    """The score's axis, coloured as the lines are."""
    low, high = limits(scores(points), goal)
    edges = np.linspace(0, 1, 65)
    colours = colormaps["viridis"]
    for a, b in pairwise(edges.tolist()):
        axes.fill_between([place, place + 0.05], a, b, color=colours((a + b) / 2), lw=0, zorder=3)
    beyond = min(scores(points)) < low or max(scores(points)) > high
    for tick in range(6):
        share = tick / 5
        value = low + (high - low) * (share if sign(goal) > 0 else 1 - share)
        bound = ("≤ " if sign(goal) > 0 else "≥ ") if tick == 0 and beyond else ""
        text = f"{bound}{metric.number(value)}"
        axes.text(place + 0.08, share, text, ha="left", va="center", fontsize=8.5, color=INK)
    axes.text(place, 1.04, metric.axis, ha="center", va="bottom", fontsize=9.5, color=INK)
    if any(p.status == "diverged" for p in points):
        axes.text(place + 0.08, DIVERGED, "diverged", ha="left", va="center", fontsize=8.5, color=MUTED)


def _legend(points: Sequence[Point], winner: Point | None) -> list[Line2D]:
    """What the kinds of line mean."""
    entries: list[Line2D] = []
    if winner is not None:
        entries.append(Line2D([], [], color=INK, lw=3.6, label="best"))
    if any(p.status == "diverged" for p in points):
        entries.append(Line2D([], [], color="#9aa0a8", lw=1.0, ls=(0, (4, 3)), label="diverged"))
    return entries
