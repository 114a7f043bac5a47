"""Draw the largest stable eta against the delay, for three readings of the stale simulation.

python -m fedgm.figures.stability docs/stability.png
"""

import sys
from pathlib import Path

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from fedgm.figures.style import BLUE, FAINT, INK, MUTED, RED, wrapped
from fedgm.participation.local_work import Normalize
from fedgm.participation.task import Anchor
from fedgm.theory.stability import LARGEST, Reading, effective_eta, largest_eta

DELAYS = range(1, 11)
GRID = (0.5, 5.0)  # the paper's etas
# Title of a panel, its anchor and normalisation.
PANELS: list[tuple[str, Anchor, Normalize]] = [
    ("start", "start", "reference"),
    ("literal", "start", "none"),
    ("current", "current", "none"),
]
# Label, beta, nu, colour, dashes: the pairs that won grids, and the line of all grids.
LINES = [
    ("FedAvg", 0.0, 0.0, RED, "-"),
    ("FedGM, β = ν = 0.9", 0.9, 0.9, BLUE, "-"),
    ("FedGM, β = ν = 0.95", 0.95, 0.95, BLUE, "-."),
    ("FedGM, β = ν = 0.7", 0.7, 0.7, BLUE, ":"),
    ("FedGM, β = 0.95, ν = 0.7", 0.95, 0.7, BLUE, "--"),
]
TITLE = "How large η may be before a run with stale clients diverges"
CAPTION = [
    "Model: a quadratic that all clients share, without noise, 1 to 6 local epochs.",
    "start: a delta is measured from the model that a client started from, and normalised to equal work;",
    "literal: the same, not normalised; current: it is measured from the server's model.",
]


def draw() -> Figure:
    """One panel a reading, one line an algorithm, on one logarithmic scale."""
    figure = Figure(figsize=(11, 4.8), dpi=150, facecolor="white", layout="constrained")
    FigureCanvasAgg(figure)
    figure.suptitle(TITLE, size=13, weight="bold", color=INK)
    panels = figure.subplots(1, len(PANELS), sharey=True)
    for axes, (title, anchor, normalize) in zip(panels, PANELS, strict=True):
        axes.axhspan(*GRID, color=FAINT, alpha=0.6, lw=0)
        for label, beta, nu, colour, dash in LINES:
            readings = [Reading("", delay, (1, 6), normalize, anchor) for delay in DELAYS]
            limits = [largest_eta(reading, beta, nu) for reading in readings]
            axes.plot(DELAYS, limits, color=colour, ls=dash, lw=2, marker="o", ms=4, label=label)
        axes.set_yscale("log")
        axes.set_yticks([0.2, 0.5, 1, 2, 5, 10, LARGEST], ["0.2", "0.5", "1", "2", "5", "10", "20 or more"])
        axes.minorticks_off()
        axes.set_xticks([1, 5, 10])
        axes.set_xlabel("delay: models that a client may start from", size=9.5, color=MUTED)
        axes.set_title(title, loc="left", size=11.5, weight="bold", color=INK)
        axes.spines[["top", "right", "left"]].set_visible(False)
        axes.tick_params(length=0, labelsize=9, colors=MUTED)
    panels[0].set_ylabel("largest stable η", size=9.5, color=MUTED)
    panels[0].text(10, 4.2, "the paper's grid of η", size=9, color=MUTED, ha="right")
    slow = [effective_eta(Reading("", delay, (1, 6), "none", "current"), 4.0) for delay in (5, 10)]
    text = "flat is not free: old models slow the run,\nη = 4 works as {:.2f} at delay 5, as {:.2f} at 10"
    panels[-1].text(1, 2.3, text.format(*slow), size=8.5, color=INK)
    panels[-1].legend(loc="lower left", frameon=False, fontsize=9, labelcolor="linecolor", handlelength=4.5)
    figure.supxlabel(wrapped(CAPTION, 9), size=9, color=MUTED)
    return figure


if __name__ == "__main__":
    target = Path(sys.argv[1] if len(sys.argv) > 1 else "docs/stability.png")
    draw().savefig(target)
    print(target)
