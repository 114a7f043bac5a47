"""curves.png: a run's training and test curves, with its stage ends and its caption."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from fedgm.figures.style import MUTED, colours, save
from fedgm.results.rows import Row, is_evaluation
from fedgm.tasks import Metric, Scoreboard

STAGE = MUTED
STYLES = {"train": ("--", 1.1), "test": ("-", 1.8)}  # in the algorithm's colour


def draw(
    path: Path, rows: list[Row], ends: list[int], title: str, caption: str, board: Scoreboard,
    initial: Mapping[str, float] | None = None, algorithm: str = "",
) -> None:  # fmt: skip
    """Every metric of the global model against rounds, the headline also against a virtual clock.

    ``initial`` is what the model scored before training: point 0.
    """
    measured = list(filter(is_evaluation, rows))
    panels = [("round", metric) for metric in board.metrics]
    if measured and "clock/time" in measured[0]:
        panels.append(("clock/time", board.judge))
    if initial:
        start: Row = {"round": 0, "clock/time": 0.0, **initial}
        measured = [start, *measured]
    colour = colours([algorithm])[algorithm]
    figure = Figure(figsize=(4.8 * len(panels), 4.4), dpi=120, layout="constrained")
    FigureCanvasAgg(figure)
    for place, (abscissa, metric) in enumerate(panels, start=1):
        axes = figure.add_subplot(1, len(panels), place)
        _draw_panel(axes, measured, abscissa, metric, colour)
        if abscissa == "round":
            axes.set_xlim(0, ends[-1])
            _mark_stages(axes, ends, bottom=metric.better == "higher")  # where the curve is not
    figure.suptitle(title, fontsize=12, fontweight="bold")
    figure.supxlabel(caption, fontsize=8, color=MUTED)
    save(figure, path)


def _draw_panel(axes: Axes, measured: list[Row], abscissa: str, metric: Metric, colour: str) -> None:
    """Train and test against one abscissa."""
    places: list[Any] = [row[abscissa] for row in measured]
    for split, (dash, width) in STYLES.items():
        values = [row.get(f"{split}/{metric.name}") for row in measured]
        points = [float("nan") if v is None else metric.scale * v for v in values]
        marker = "o" if len(points) < 12 else None
        axes.plot(places, points, color=colour, label=split, ls=dash, lw=width, marker=marker, ms=4)
    axes.set_xlabel("round" if abscissa == "round" else "virtual seconds")
    axes.set_ylabel(metric.axis)
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=2)  # off the curves


def _mark_stages(axes: Axes, ends: list[int], bottom: bool) -> None:
    """A dashed line where a stage ends, as the paper draws it."""
    for number, end in enumerate(ends[:-1], start=1):
        axes.axvline(end, color=STAGE, linestyle="--", linewidth=1)
        axes.annotate(
            f"stage {number} ends, round {end}",
            (end, 0 if bottom else 1),
            xycoords=("data", "axes fraction"),
            xytext=(-3, 4 if bottom else -4),
            textcoords="offset points",
            rotation=90,
            ha="right",
            va="bottom" if bottom else "top",
            fontsize=7,
            color=STAGE,
        )
