"""compare.png: the curves of several runs side by side, with a band where there are several seeds."""

from io import BytesIO
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from fedgm.files import write_atomically
from fedgm.tasks.metric import LOSS, scoreboard
from fedgm.track import rows, summary

# Okabe and Ito's colours, which colour-blind readers tell apart.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#e69f00", "#cc79a7", "#56b4e9", "#000000", "#999999")


def compare(path: Path, lines: dict[str, list[Path]], title: str) -> None:
    """Training loss and headline of every line; each is given by the folders of its runs (seeds).

    Where all runs have a virtual clock, the headline is drawn against time as well.
    """
    board = scoreboard(summary.read(next(iter(lines.values()))[0]))
    curves = {
        label: [rows.evaluations(rows.read(f / "metrics.jsonl"), board.headline) for f in folders]
        for label, folders in lines.items()
    }
    panels = [("round", f"train/{LOSS.name}"), ("round", board.headline)]
    if all("clock/time" in run[0] for runs in curves.values() for run in runs):
        panels.append(("clock/time", board.headline))
    figure = Figure(figsize=(5.2 * len(panels), 4.6), dpi=120, layout="constrained")
    FigureCanvasAgg(figure)
    for place, (abscissa, key) in enumerate(panels, start=1):
        axes = figure.add_subplot(1, len(panels), place)
        scale = board.metric(key).scale
        for number, (label, runs) in enumerate(curves.items()):
            _draw_line(axes, runs, (abscissa, key), scale, label, COLOURS[number % len(COLOURS)])
        axes.set_xlabel("round" if abscissa == "round" else "virtual seconds")
        axes.set_ylabel(f"{key.split('/')[0]} {board.metric(key).axis}")
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
        if place == 2:
            axes.legend(frameon=False, loc="lower right", fontsize=8)
    figure.suptitle(title, fontsize=12, fontweight="bold")
    figure.supxlabel(_caption([folder for folders in lines.values() for folder in folders]), fontsize=8)
    picture = BytesIO()
    figure.savefig(picture, format="png", metadata={"Software": None})
    write_atomically(path, picture.getbuffer())


def _draw_line(
    axes: Axes, runs: list[list[rows.Row]], keys: tuple[str, str], scale: float, label: str, colour: str
) -> None:
    """The mean over seeds, as far as all of them go; a run that diverged ends early."""
    length = min(len(run) for run in runs)
    table = np.array([[[row[key] for key in keys] for row in run[:length]] for run in runs], dtype=float)
    places, values = table[:, :, 0].mean(0), scale * table[:, :, 1]
    seeds = f" ({len(runs)} seeds)" if len(runs) > 1 else ""
    axes.plot(places, values.mean(0), color=colour, label=f"{label}{seeds}", linewidth=1.7)
    if len(runs) > 1:
        axes.fill_between(places, values.min(0), values.max(0), color=colour, alpha=0.15, linewidth=0)


def _caption(folders: list[Path]) -> str:
    """What a picture must say: profile, rounds, seeds, local steps."""
    known = [summary.read(folder) for folder in folders]
    seeds = sorted({int(s["seed"]) for s in known})
    steps = sorted(float(s.get("local_steps") or 0) for s in known)
    first = known[0]
    return (
        f"profile {first['profile']}: {first['model']} on {first['data']}, {first['rounds']} rounds, "
        f"seeds {', '.join(map(str, seeds))}, K = {steps[0]:.1f} to {steps[-1]:.1f} local steps on average"
    )
