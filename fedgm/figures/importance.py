"""Which key matters: the share of a sweep's variance that each key explains alone (functional ANOVA)."""

from collections.abc import Sequence
from itertools import pairwise
from math import prod

from matplotlib.figure import Figure

from fedgm.figures.points import Point, is_whole, label, levels, scores, swept
from fedgm.figures.style import FAINT, INK, MUTED, plain, sheet, write_text
from fedgm.results.curve import sign
from fedgm.tasks.metric import Column

MOST = 12  # more values than this are put into groups
GROUPS = 4
INTERACTIONS = "interactions"


def filled(points: Sequence[Point], goal: str) -> dict[int, float]:
    """A score for every point: one that diverged, failed or waits counts as the worst that was measured."""
    measured = scores(points)
    if not measured:
        return {}
    worst = min(measured) if sign(goal) > 0 else max(measured)
    return {p.number: p.score if p.scored and p.score is not None else worst for p in points}


def importance(points: Sequence[Point], goal: str) -> dict[str, float]:
    """Variance of the marginal mean over total variance, for each swept key; on a full grid at most 1 in all.

    What is left on a full grid is due to several keys together, and is given as ``interactions``.
    """
    values = filled(points, goal)
    if not values or max(values.values()) == min(values.values()):
        return {}
    mean = sum(values.values()) / len(values)
    total = sum((value - mean) ** 2 for value in values.values())
    shares: dict[str, float] = {}
    for key in swept(points):
        between = 0.0
        for group in _groups(points, key):
            here = [values[point.number] for point in group]
            between += len(here) * (sum(here) / len(here) - mean) ** 2
        shares[key] = between / total
    if len(shares) > 1 and full_grid(points):
        shares[INTERACTIONS] = max(0.0, 1.0 - sum(shares.values()))
    return shares


def full_grid(points: Sequence[Point]) -> bool:
    """Whether every combination of values occurs equally often, so that the shares add up."""
    keys = swept(points)
    cells: dict[tuple[object, ...], int] = {}
    for point in points:
        place = tuple(point.values.get(key) for key in keys)
        cells[place] = cells.get(place, 0) + 1
    return len(cells) == prod(len(levels(points, key)) for key in keys) and len(set(cells.values())) == 1


def draw(points: Sequence[Point], caption: str, metric: Column, goal: str) -> Figure | None:
    """Bars with their shares, the largest on top; None where no score differs, or a run was stopped."""
    shares = importance(points, goal) if is_whole(points) else {}
    if not shares:
        return None
    keys = swept(points)
    ranked = sorted(keys, key=lambda key: shares[key])
    if INTERACTIONS in shares:
        ranked = [INTERACTIONS, *ranked]
    figure = sheet(5.2, 0.42 * len(ranked) + 1.5)
    axes = figure.add_subplot()
    for place, key in enumerate(ranked):
        share = 100 * shares[key]
        axes.barh(place, share, height=0.62, color=FAINT if key == INTERACTIONS else MUTED)
        axes.text(share + 1.2, place, f"{share:.1f} %", va="center", fontsize=8.5, color=INK)
    axes.set_yticks(range(len(ranked)), [_name(key, keys) for key in ranked], fontsize=10)
    axes.set_xlim(0, 100)
    axes.set_xlabel("share of the variance, %", fontsize=9, color=INK)
    axes.grid(axis="x", color=FAINT, lw=0.7)
    axes.set_axisbelow(True)
    plain(axes)
    title = f"What decides {metric.words}"
    write_text(figure, title, [caption, *_notes(points)])
    return figure


def _groups(points: Sequence[Point], key: str) -> list[list[Point]]:
    """The points by value; a number that takes many values is cut into groups of equal size."""
    values = levels(points, key)
    having = [p for p in points if key in p.values]
    if len(values) <= MOST or any(isinstance(value, str) for value in values):
        return [[p for p in having if p.values[key] == value] for value in values]
    ordered = sorted(having, key=lambda p: (float(p.values[key]), p.number))
    cuts = [round(part * len(ordered) / GROUPS) for part in range(GROUPS + 1)]
    return [ordered[a:b] for a, b in pairwise(cuts) if b > a]


def _name(key: str, keys: Sequence[str]) -> str:
    """A key's label; the rest keeps its word."""
    return key if key == INTERACTIONS else f"{label(key, keys)} alone" if len(keys) > 1 else label(key, keys)


def _notes(points: Sequence[Point]) -> list[str]:
    """What a reader must know of the numbers."""
    notes = ["Variance of the mean score at each value, over the variance of all scores."]
    worst = sum(not p.scored for p in points)
    if worst:
        notes.append(f"Runs without a score ({worst} of {len(points)}) count as the worst that was measured.")
    if not full_grid(points):
        notes.append("The points are not a full grid, so that the shares overlap.")
    if any(len(levels(points, key)) > MOST for key in swept(points)):
        notes.append(f"A number with more than {MOST} values is cut into {GROUPS} groups.")
    return notes
