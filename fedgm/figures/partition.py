"""A picture of a split: who has how much of which class."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from numpy.typing import NDArray

from fedgm.data.partition import ClientSplit, Indices, label_counts
from fedgm.figures.style import CLASSES, EMPTY, FAINT, INK, MUTED, as_text

SHOWN = 60  # clients drawn one by one
COUNTED = 10_000  # clients whose size enters the caption of a virtual population


def draw_partition(
    partition: ClientSplit,
    labels: NDArray[np.integer],
    class_names: Sequence[str],
    path: str | Path,
    title: str,
) -> Path:
    """Stacked bars of client sizes over bubbles of class counts; the first clients if there are many."""
    shown = min(partition.count, SHOWN)
    counts = label_counts(partition, labels, len(class_names), shown)
    colours = _colours(len(class_names))
    figure = Figure(figsize=(max(7.5, 2.6 + 0.165 * shown), 3.6 + 0.27 * len(class_names)), dpi=150)
    FigureCanvasAgg(figure)
    bars, bubbles = figure.subplots(
        2, 1, sharex=True, gridspec_kw={"height_ratios": [1.0, 0.16 * len(class_names)], "hspace": 0.06}
    )
    _draw_sizes(bars, counts, colours)
    _draw_classes(bubbles, counts, colours, class_names)
    figure.subplots_adjust(
        left=1.25 / figure.get_figwidth(), right=0.985, top=1 - 0.85 / figure.get_figheight()
    )
    figure.subplots_adjust(bottom=0.6 / figure.get_figheight())
    corner = 0.2 / figure.get_figwidth()
    top = figure.get_figheight()
    figure.text(corner, 1 - 0.18 / top, title, fontsize=13, weight="bold", color=INK, va="top")
    figure.text(corner, 1 - 0.48 / top, _caption(partition, shown), fontsize=9, color=MUTED, va="top")
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    as_text(figure)
    figure.savefig(target, facecolor="white")
    return target


def _draw_sizes(axes: Any, counts: Indices, colours: NDArray[np.float64]) -> None:
    base = np.zeros(len(counts))
    for label, colour in enumerate(colours):
        axes.bar(np.arange(len(counts)), counts[:, label], 0.78, bottom=base, color=colour, linewidth=0)
        base += counts[:, label]
    axes.set_ylabel("images", color=INK)
    axes.set_axisbelow(True)
    axes.grid(axis="y", color=FAINT, linewidth=0.8)
    axes.margins(x=0.01)
    _bare(axes)


def _draw_classes(axes: Any, counts: Indices, colours: NDArray[np.float64], names: Sequence[str]) -> None:
    clients, labels = np.nonzero(counts)
    number = counts[clients, labels]
    # Area is proportional to the count; the fullest cell just touches its neighbours.
    axes.scatter(
        clients,
        labels,
        s=190.0 * number / counts.max(),
        color=colours[labels],
        alpha=0.9,
        linewidth=0,
        zorder=2,
    )
    axes.set_yticks(np.arange(len(names)), names)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.set_xlim(-0.8, len(counts) - 0.2)
    axes.set_xticks(np.arange(0, len(counts), 1 if len(counts) <= 25 else 5))
    axes.set_xlabel("client", color=INK)
    axes.grid(color=EMPTY, linewidth=0.8, zorder=0)
    axes.set_axisbelow(True)
    _bare(axes)


def _bare(axes: Any) -> None:
    for side in axes.spines.values():
        side.set_visible(False)
    axes.tick_params(length=0, colors=INK, labelsize=8.5)


def _colours(classes: int) -> NDArray[np.float64]:
    if classes <= len(CLASSES):
        return np.array([to_rgba(colour) for colour in CLASSES[:classes]])
    return np.asarray(colormaps["turbo"](np.linspace(0.05, 0.95, classes)))


def _caption(partition: ClientSplit, shown: int) -> str:
    sizes = [partition.size(client) for client in range(min(partition.count, COUNTED))]
    drawn = (
        f"all {shown:,} clients"
        if shown == partition.count
        else f"clients 0-{shown - 1} of {partition.count:,}"
    )
    return (
        f"{drawn}   |   images per client: min {min(sizes):,}, median {np.median(sizes):,.0f}, "
        f"max {max(sizes):,}   |   bubble area = images of a class"
    )
