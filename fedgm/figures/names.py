"""Names of lines right of a pane, where the curves end, as far as they do not touch."""

from collections.abc import Sequence
from textwrap import wrap
from typing import NamedTuple

from matplotlib.axes import Axes

from fedgm.figures.style import readable

GAP = 0.16  # inches that a line of a label has
WIDEST, MOST = 28, 4  # characters of a line of a label, and lines


class End(NamedTuple):
    """A curve's name and colour, and where it ends."""

    name: str
    colour: str
    x: float
    y: float


def folded(name: str) -> str:
    """A name in short lines."""
    return "\n".join(wrap(name, WIDEST, max_lines=MOST, placeholder=" ..."))


def height(names: Sequence[str]) -> float:
    """Inches from one label to the next: all have as much as the tallest."""
    return GAP * max((folded(name).count("\n") + 1 for name in names), default=1)


def width(names: Sequence[str]) -> float:
    """Inches beside a pane that labels take."""
    longest = max((len(line) for name in names for line in folded(name).splitlines()), default=0)
    return 0.2 + 0.058 * longest


def put(axes: Axes, ends: Sequence[End], tall: float) -> None:
    """Names right of axes of ``tall`` inches, at the height of their curves as far as they do not touch."""
    low, high = axes.get_ylim()
    ordered = sorted(ends, key=lambda end: end.y)
    wanted = [min(1.0, max(0.0, (end.y - low) / (high - low))) for end in ordered]
    gap = height([end.name for end in ends]) / tall
    for end, place in zip(ordered, apart(wanted, gap), strict=True):
        colour = readable(end.colour)
        axes.annotate(
            folded(end.name), (end.x, end.y), xycoords="data", xytext=(1.03, place),
            textcoords="axes fraction", va="center", fontsize=8, color=colour, annotation_clip=False,
            arrowprops={
                "arrowstyle": "-", "color": colour, "lw": 0.5, "alpha": 0.6, "shrinkB": 2, "relpos": (0, 0.5),
            },
        )  # fmt: skip


def apart(wanted: Sequence[float], gap: float) -> list[float]:
    """Ascending places moved as little as needed so that neighbours are ``gap`` apart, between 0 and 1."""
    blocks: list[tuple[float, int]] = []  # (centre, members) of labels that touch
    for place in wanted:
        centre, members = place, 1
        while blocks and centre - (members - 1) * gap / 2 < blocks[-1][0] + blocks[-1][1] * gap / 2 + gap / 2:
            before, count = blocks.pop()
            centre = (before * count + centre * members) / (count + members)
            members += count
        blocks.append((centre, members))
    places = [centre + (i - (members - 1) / 2) * gap for centre, members in blocks for i in range(members)]
    last = len(places) - 1
    return [min(max(place, i * gap), 1 - (last - i) * gap) for i, place in enumerate(places)]
