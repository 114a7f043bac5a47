"""Draw how one update spreads over the rounds after it, for every momentum scheme.

python -m fedgm.figures.impulse docs/impulse.png
"""

import sys
from itertools import accumulate
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.gridspec import SubplotSpec

from fedgm.figures.style import ALGORITHMS, FAINT, INK, MUTED
from fedgm.server.family import SCHEMES, momentum_of, typed
from fedgm.server.momentum import Momentum, gain, server_step

ROUNDS = 30

# Label, scheme, parameters: the family at one eta and beta, and the summed form of the same words.
FAMILY: list[tuple[str, str, dict[str, float]]] = [
    ("FedAvg", "fedavg", {}),
    ("FedGM, ν = 0.7", "fedgm", {"eta": 1.0, "beta": 0.9, "nu": 0.7}),
    ("FedNAG", "fednag", {"eta": 1.0, "beta": 0.9}),
    ("FedAvgM, damped", "fedavgm", {"eta": 1.0, "beta": 0.9}),
]
SUMMED = ("FedAvgM, summed", "flower-fedavgm", {"lr": 1.0, "beta": 0.9})
SMALL = ["torch-nesterov", "snv", "triple", "robust", "pid", "pid-opt", "accsgd", "slowmo", "diloco"]


def impulse_response(m: Momentum, rounds: int) -> list[float]:
    """How far x moves in each round if D_1 = 1 and later updates are 0 (Eq. 2); the sum tends to eta."""
    x, d, moves = 0.0, 0.0, list[float]()
    for t in range(rounds):
        x_next, d = server_step(x, d, 1.0 if t == 0 else 0.0, m)
        moves.append(x - x_next)
        x = x_next
    return moves


def draw(rounds: int = ROUNDS) -> Figure:
    """The whole picture: the family large, other people's schemes small."""
    figure = Figure(figsize=(10, 8.8), dpi=150, facecolor="white")
    FigureCanvasAgg(figure)
    grid = figure.add_gridspec(
        2, 1, height_ratios=[1.15, 1.6], hspace=0.4, left=0.065, right=0.975, top=0.885, bottom=0.035
    )
    large = grid[0].subgridspec(1, 2, wspace=0.16)
    _weights(figure.add_subplot(large[0]), rounds)
    _totals(figure.add_subplot(large[1]), rounds)
    _others(figure, grid[1], rounds)
    figure.text(0.065, 0.965, "Where one client update goes", size=17, weight="bold", color=INK)
    note = (
        "An update of size 1 arrives in round 1, nothing after it. β = 0.9 and η = 1 unless said otherwise."
    )
    figure.text(0.065, 0.938, note, size=10.5, color=MUTED)
    figure.text(0.065, 0.507, "Other schemes, at usual values", size=11.5, weight="bold", color=INK)
    note = "bars: weight in each round;  line: total so far;  both as shares of η"
    figure.text(0.975, 0.507, note, size=9.5, color=MUTED, ha="right")
    return figure


def _weights(axes: Axes, rounds: int) -> None:
    """Weight per round of the family."""
    for label, name, parameters in FAMILY:
        colour = ALGORITHMS[name]
        moves = impulse_response(momentum_of(name, parameters), rounds)
        axes.plot(range(1, rounds + 1), moves, color=colour, lw=2, marker="o", ms=3.5, label=label)
    axes.set_yscale("log")
    axes.set_ylim(0.002, 1.6)
    _labels(axes, "Weight in each round: ν sets how much waits", [0.01, 0.1, 1])
    axes.annotate(
        "FedAvg: all at once", (1, 1), (2.2, 1.0), size=9.5, color=ALGORITHMS["fedavg"], va="center"
    )
    axes.legend(loc="upper right", frameon=False, fontsize=9.5, labelcolor="linecolor")


def _totals(axes: Axes, rounds: int) -> None:
    """Cumulative weight, with the summed form of the same lr and beta ten times above."""
    for label, name, parameters in [*FAMILY, SUMMED]:
        colour = ALGORITHMS["fedavgm" if label == SUMMED[0] else name]
        dash = "--" if label == SUMMED[0] else "-"
        m = momentum_of(name, parameters)
        total = list(accumulate(impulse_response(m, rounds)))
        axes.plot(range(1, rounds + 1), total, dash, color=colour, lw=2, marker="o", ms=3.5)
        if label != "FedAvg":
            axes.text(0.4, total[0], f"{gain(m):.2g}", size=9, color=colour, va="center", ha="right")
        if label == SUMMED[0]:
            axes.text(
                rounds, total[-1] * 1.13, f"{label}: 10 times as far", size=9.5, color=colour, ha="right"
            )
    axes.set_yscale("log")
    axes.set_ylim(0.07, 17)
    axes.set_xlim(-2.4, rounds + 1)
    _labels(axes, "Total so far: damped ends at η, summed at 10", [0.1, 1, 10])


def _others(figure: Figure, place: SubplotSpec, rounds: int) -> None:
    """Other people's schemes at their usual values, as shares of their total eta."""
    cells = place.subgridspec(3, 3, hspace=0.62, wspace=0.1)
    for index, name in enumerate(SMALL):
        axes = figure.add_subplot(cells[index])
        member = SCHEMES[name]
        m = momentum_of(name, member.example)
        shares = [move / m.eta for move in impulse_response(m, rounds)]
        axes.bar(range(1, rounds + 1), shares, color=MUTED, width=0.75)
        axes.plot(range(1, rounds + 1), list(accumulate(shares)), color=INK, lw=1.4)
        axes.set_ylim(0, 1.04)
        axes.set_title(name, loc="left", size=10, weight="bold", color=INK, pad=4)
        shown = {key: value for key, value in member.example.items() if key not in member.optional}
        axes.set_title(typed(shown), loc="right", size=8.5, color=MUTED, pad=4)
        text = f"η = {m.eta:.2g}, β = {m.beta:.2g}, ν = {m.nu:.2g}"
        axes.text(0.98, 0.42, text, transform=axes.transAxes, size=9, color=INK, ha="right")
        _plain(axes)
        if index < len(SMALL) - 3:
            axes.set_xticklabels([])
        axes.set_yticks([0, 1], ["0", "η"] if index % 3 == 0 else ["", ""])


def _labels(axes: Axes, title: str, ticks: list[float]) -> None:
    """Title and axes of a large panel."""
    axes.set_title(title, loc="left", size=11.5, weight="bold", color=INK)
    axes.set_xlabel("round", size=9.5, color=MUTED)
    axes.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.minorticks_off()
    _plain(axes)


def _plain(axes: Axes) -> None:
    """Light grid, no frame."""
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.spines["bottom"].set_color(MUTED)
    axes.grid(axis="y", color=FAINT, lw=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(length=0, labelsize=9, colors=MUTED)
    axes.set_xticks([1, 10, 20, 30])


if __name__ == "__main__":
    target = Path(sys.argv[1] if len(sys.argv) > 1 else "docs/impulse.png")
    draw().savefig(target)
    print(target)
