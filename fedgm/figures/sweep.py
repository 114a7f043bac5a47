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
    shared: tuple[float, float] | None = None,
) -> list[Path]:
    """Write the pictures that apply and return their paths; older ones that no longer apply are removed.

    ``caption`` says profile, rounds and seeds; ``baseline`` is the score that the advantage map is drawn
    against, and ``reference`` its name, best with its eta; ``shared`` are the ends of a colour scale that
    several sweeps have in common.
    """
    figures: dict[str, Figure | None] = {
        "heatmap": heatmap.draw(points, caption, metric, goal, shared=shared)
    }
    figures |= dict.fromkeys(("parallel", "importance", "advantage"))
    if len(swept(points)) > 1:  # one key alone: its heat map says all
        figures["parallel"] = parallel.draw(points, caption, metric, goal)
        figures["importance"] = importance.draw(points, caption, metric, goal)
    if baseline is not None:
        figures["advantage"] = advantage.draw(points, caption, metric, goal, baseline, reference)
    folder.mkdir(parents=True, exist_ok=True)
    for name in [name for name, figure in figures.items() if figure is None]:
        (folder / f"{name}.png").unlink(missing_ok=True)
    return [save(figure, folder / f"{name}.png") for name, figure in figures.items() if figure is not None]
