"""curves.png: a run's training and test curves, with its stage ends and its caption."""

from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from fedgm.track.rows import Row, evaluations

TRAIN, TEST, STAGE = "#3b6fb6", "#d1495b", "#8a8a8a"


def draw(path: Path, rows: list[Row], ends: list[int], title: str, caption: str) -> None:
    """Loss and accuracy of the global model against rounds."""
    figure = Figure(figsize=(9.6, 4.4), dpi=120, layout="constrained")
    FigureCanvasAgg(figure)
    measured = evaluations(rows)
    rounds = [row["round"] for row in measured]
    for place, (metric, name, scale) in enumerate(
        (("loss", "loss", 1.0), ("acc", "accuracy, %", 100.0)), start=1
    ):
        axes = figure.add_subplot(1, 2, place)
        for split, colour in (("train", TRAIN), ("test", TEST)):
            values = [row[f"{split}/{metric}"] for row in measured]
            points = [float("nan") if v is None else scale * v for v in values]
            marker = "o" if len(points) < 12 else None
            axes.plot(rounds, points, color=colour, label=split, linewidth=1.8, marker=marker, markersize=4)  # pyright: ignore
        _mark_stages(axes, ends, bottom=place == 2)  # where the curve is not
        axes.set_xlabel("round")
        axes.set_ylabel(name)
        axes.set_xlim(0, ends[-1])
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
        if place == 2:
            axes.legend(frameon=False, loc="lower right")
    figure.suptitle(title, fontsize=12, fontweight="bold")
    figure.supxlabel(caption, fontsize=8, color="#555555")
    temporary = path.with_name(f".{path.name}.tmp")
    figure.savefig(temporary, format="png", metadata={"Software": None})
    temporary.replace(path)


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
