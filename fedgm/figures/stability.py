"""Draw the largest stable eta against the delay, for three readings of the stale simulation.

python -m fedgm.figures.stability docs/stability.png
"""

import sys
from pathlib import Path

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from fedgm.figures.style import BLUE, FAINT, INK, MUTED, RED
from fedgm.participation.local_work import Normalize
from fedgm.participation.task import Anchor
from fedgm.theory.stability import Reading, largest_eta

DELAYS = range(1, 11)
GRID = (0.5, 5.0)  # the paper's etas
# Title of a panel, its anchor and normalisation.
PANELS: list[tuple[str, Anchor, Normalize]] = [
    ("start, normalised (ours)", "start", "reference"),
    ("start, as the text says", "start", "none"),
    ("current", "current", "none"),
]
# Label, beta, nu, colour, dashes.
LINES = [
    ("FedAvg", 0.0, 0.0, RED, "-"),
    ("FedGM, β = ν = 0.9", 0.9, 0.9, BLUE, "-"),
    ("FedGM, β = 0.95, ν = 0.7", 0.95, 0.7, BLUE, "--"),
]


def draw() -> Figure:
    """One panel a reading, one line an algorithm, on one logarithmic scale."""
    figure = Figure(figsize=(11, 3.9), dpi=150, facecolor="white")
    FigureCanvasAgg(figure)
    panels = figure.subplots(1, len(PANELS), sharey=True)
    for axes, (title, anchor, normalize) in zip(panels, PANELS, strict=True):
        axes.axhspan(*GRID, color=FAINT, alpha=0.6, lw=0)
        axes.text(10, 4.2, "the paper's grid of η", size=9, color=MUTED, ha="right")
        for label, beta, nu, colour, dash in LINES:
            readings = [Reading("", delay, (1, 6), normalize, anchor) for delay in DELAYS]
            limits = [largest_eta(reading, beta, nu) for reading in readings]
            axes.plot(DELAYS, limits, color=colour, ls=dash, lw=2, marker="o", ms=4, label=label)
        axes.set_yscale("log")
        axes.set_yticks([0.2, 0.5, 1, 2, 5, 10], ["0.2", "0.5", "1", "2", "5", "10"])
        axes.minorticks_off()
        axes.set_xticks([1, 5, 10])
        axes.set_xlabel("delay: models that a client may start from", size=9.5, color=MUTED)
        axes.set_title(title, loc="left", size=11.5, weight="bold", color=INK)
        axes.spines[["top", "right", "left"]].set_visible(False)
        axes.tick_params(length=0, labelsize=9, colors=MUTED)
    panels[0].set_ylabel("largest stable η", size=9.5, color=MUTED)
    panels[0].legend(loc="lower left", frameon=False, fontsize=9.5, labelcolor="linecolor")
    figure.tight_layout()
    return figure


if __name__ == "__main__":
    target = Path(sys.argv[1] if len(sys.argv) > 1 else "docs/stability.png")
    draw().savefig(target)
    print(target)
