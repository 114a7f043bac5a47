"""Draw the momentum family: one formula, and the methods that are its special cases in the (beta, nu) plane.

python -m fedgm.figures.family docs/family.png
"""

import sys
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from fedgm.figures.style import ALGORITHMS, FAINT, INK, MUTED
from fedgm.server.family import momentum_of
from fedgm.server.schemes import schedule_free, triple

# Label, scheme, parameters: single points, at the usual values of each.
POINTS: list[tuple[str, str, dict[str, float]]] = [
    ("AccSGD", "accsgd", {"delta": 0.22, "kappa": 1000.0, "xi": 10.0}),
    ("EMA-Nesterov", "ema-nesterov", {"b": 0.5, "g": 0.8}),
    ("SlowMo", "slowmo", {"lr": 1.0, "beta": 0.5}),
    ("DiLoCo", "diloco", {"lr": 0.7, "beta": 0.9}),
    ("FedACG", "fedacg", {"lam": 0.85}),
    ("SNOO", "torch-nesterov", {"lr": 0.7, "beta": 0.5}),
]
OFFSETS = {
    "AccSGD": (-9, 0, "right"), "EMA-Nesterov": (-9, 0, "right"), "SlowMo": (0, -14, "center"),
    "DiLoCo": (10, -11, "left"), "FedACG": (-9, 4, "right"), "SNOO": (9, -3, "left"),
}  # fmt: skip


def triple_line() -> tuple[list[float], list[float]]:
    """(beta, nu) of Triple Momentum over its condition numbers; Robust Momentum fills what lies below."""
    members = [triple(1.0, float(kappa)) for kappa in np.geomspace(1.02, 1e5, 200)]
    return [m.beta for m in members], [m.nu for m in members]


def schedule_free_path(b: float, rounds: int = 60) -> tuple[list[float], float]:
    """beta_t of the first rounds of Schedule-Free, and its nu."""
    return [(t - 1) / (t + 1) for t in range(1, rounds + 1)], schedule_free(1.0, b).nu


def draw() -> Figure:
    """The plane with its lines, curves and points."""
    figure = Figure(figsize=(10, 6.4), dpi=150, facecolor="white")
    FigureCanvasAgg(figure)
    axes = figure.add_axes((0.075, 0.1, 0.9, 0.7))
    _lines(axes)
    _curves(axes)
    _points(axes)
    _frame(axes)
    figure.text(0.03, 0.935, "One formula, many methods", size=17, weight="bold", color=INK)
    formula = r"$d \leftarrow (1-\beta)\,D + \beta\,d \qquad x \leftarrow x - \eta\,((1-\nu)\,D + \nu\,d)$"
    figure.text(0.03, 0.868, formula, size=14, color=INK)
    note = "D: the mean of what clients changed.\nGPA and PID reach every point."
    figure.text(0.975, 0.868, note, size=10, color=MUTED, ha="right", linespacing=1.4)
    return figure


def _lines(axes: Axes) -> None:
    """The three lines that most methods lie on."""
    none, heavy, nesterov = (ALGORITHMS[name] for name in ("fedavg", "fedavgm", "fednag"))
    axes.plot([0, 1], [0, 0], color=none, lw=3, clip_on=False)
    axes.plot([0, 1], [1, 1], color=heavy, lw=3, clip_on=False)
    axes.plot([0, 1], [0, 1], color=nesterov, lw=3)
    axes.text(0.12, 0.025, "ν = 0: FedAvg, FedSGD (no momentum)", size=11, color=none, weight="bold")
    axes.text(0.03, 1.025, "ν = 1: FedAvgM, SlowMo (heavy ball)", size=11, color=heavy, weight="bold")
    text = "ν = β: FedNAG, FedMom, DiLoCo, SNOO, FedACG"
    turn = {"rotation": 45, "rotation_mode": "anchor", "transform_rotates_text": True}
    axes.text(0.135, 0.15, text, size=11, color=nesterov, weight="bold", **turn)  # pyright: ignore[reportArgumentType]


def _curves(axes: Axes) -> None:
    """Methods with one dial, and the region of one with two."""
    beta, nu = triple_line()
    axes.fill_between(beta, 0, nu, color=ALGORITHMS["triple"], alpha=0.13, lw=0)
    axes.plot(beta, nu, color=ALGORITHMS["triple"], lw=2)
    axes.text(0.2, 0.625, "Triple Momentum", size=11, color=MUTED, ha="left")
    axes.text(0.66, 0.3, "Robust Momentum: all below\nTriple Momentum", size=10.5, color=MUTED)
    path, level = schedule_free_path(0.9)
    free = ALGORITHMS["schedule_free"]
    axes.plot(path, [level] * len(path), color=free, lw=1.2, marker="o", ms=3.5, clip_on=False)
    axes.text(
        0.015, level + 0.022, "Schedule-Free: β = 0, 1/3, 1/2 ... round by round", size=10.5, color=free
    )


def _points(axes: Axes) -> None:
    """Methods at their usual values, and the paper's grid."""
    grid, own = [0.7, 0.9, 0.95], ALGORITHMS["fedgm"]
    # Above the dots: DiLoCo is a point of the grid.
    axes.plot(
        [b for b in grid for _ in grid], grid * 3, "s", ms=9, mfc="none", mec=own, mew=1.6, ls="", zorder=5
    )
    axes.annotate(
        "FedGM: the paper's grid", (0.7, 0.7), (0.735, 0.6), size=10.5, color=own, weight="bold",
        arrowprops={"arrowstyle": "-", "color": own, "lw": 0.8, "shrinkB": 5},
    )  # fmt: skip
    for label, name, parameters in POINTS:
        m = momentum_of(name, parameters)
        axes.plot([m.beta], [m.nu], "o", ms=7, color=INK, mec="white", mew=1, zorder=4)
        right, up, align = OFFSETS[label]
        axes.annotate(
            label, (m.beta, m.nu), (right, up), textcoords="offset points", size=9.5, color=INK, ha=align,
            va="center",
        )  # fmt: skip


def _frame(axes: Axes) -> None:
    """Axes from 0 to 1, light grid."""
    axes.set_xlim(0, 1)
    axes.set_ylim(-0.03, 1.08)
    axes.set_xlabel("β, how long the momentum remembers", size=11, color=MUTED)
    axes.set_ylabel("ν, the share of the step that goes through it", size=11, color=MUTED)
    axes.set_xticks(np.linspace(0, 1, 6))
    axes.set_yticks(np.linspace(0, 1, 6))
    axes.spines[["top", "right", "left", "bottom"]].set_visible(False)
    axes.grid(color=FAINT, lw=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(length=0, labelsize=9.5, colors=MUTED)


if __name__ == "__main__":
    target = Path(sys.argv[1] if len(sys.argv) > 1 else "docs/family.png")
    draw().savefig(target)
    print(target)
