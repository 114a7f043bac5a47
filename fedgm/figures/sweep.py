"""All pictures of a sweep in its folder."""

from collections.abc import Sequence
from pathlib import Path

from matplotlib.figure import Figure

from fedgm.figures import advantage, heatmap, importance, parallel
from fedgm.figures.points import Point, swept
from fedgm.figures.style import save
from fedgm.tasks.metric import Column


def draw_sweep(
    folder: Path,
    points: Sequence[Point],
    caption: str,
    metric: Column,
    goal: str,
    baseline: float | None,
    reference: str = "FedAvg's best",
) -> list[Path]:
    """Write the pictures that apply and return their paths.

    ``caption`` says profile, rounds and seeds; ``baseline`` is the score that the advantage map is drawn
    against, and ``reference`` its name, best with its eta.
    """
    figures: dict[str, Figure | None] = {"heatmap": heatmap.draw(points, caption, metric, goal)}
    if len(swept(points)) > 1:  # one key alone: its heat map says all
        figures["parallel"] = parallel.draw(points, caption, metric, goal)
        figures["importance"] = importance.draw(points, caption, metric, goal)
    if baseline is not None:
        figures["advantage"] = advantage.draw(points, caption, metric, goal, baseline, reference)
    folder.mkdir(parents=True, exist_ok=True)
    return [save(figure, folder / f"{name}.png") for name, figure in figures.items() if figure is not None]
