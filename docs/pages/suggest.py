"""How well the model of `fedgm suggest` ranks grids that are stored: the table of docs/suggest.md.

python -m docs.pages.suggest            # prints it
python -m docs.pages.suggest --write    # into docs/suggest.md
"""

from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import click
import numpy as np
import pandas as pd

from fedgm.results.find import find
from fedgm.results.run import Run
from fedgm.server import Momentum
from fedgm.study.report import replace_between
from fedgm.theory.quadratic import FEDAVG, Problem, Stretch, excess
from fedgm.theory.stability import IDEAL, READINGS, Reading
from fedgm.theory.suggestion import COLUMNS, PROBE_ETA, Measured, fitted, share_of_noise

PAGE = Path("docs/suggest.md")
PROBE = range(5, 51)  # rounds; stored rows have every fifth, so they need more than a probe's 25
LAST = 46  # rounds from the tenth last evaluation to the last


class Grid(NamedTuple):
    """Stored points of one problem."""

    name: str
    reading: Reading
    files: tuple[str, ...]


GRIDS = (
    Grid("ideal clients", READINGS[0], ("fedavg_grid", "fedavgm_grid", "fedgm_grid")),
    Grid("delay 5, start/reference", READINGS[1], ("autonomous_fedavg_grid", "autonomous_fedgm_grid")),
    Grid("delay 5, start/none", READINGS[2], ("literal_fedavg_grid", "literal_fedgm_grid")),
    Grid(
        "delay 5, current/none", READINGS[3],
        ("autonomous_fedavg_grid_current", "autonomous_fedgm_grid_current"),
    ),
    Grid("delay 10, start/reference", READINGS[4], ("delay10_fedavg_grid", "delay10_fedgm_grid")),
    Grid(
        "delay 10, current/none", READINGS[6],
        ("delay10_fedavg_grid_current", "delay10_fedgm_grid_current"),
    ),
)  # fmt: skip


def momentum(run: Run) -> Momentum:
    """The values of a run of one stage."""
    stage = run.facts["stages"][0]
    return Momentum(stage["eta"], stage["beta"], stage["nu"])


def finished(grid: Grid) -> list[Run]:
    """Its points that are done."""
    return [run for run in find([f"docs/results/small/{name}.jsonl" for name in grid.files]) if run.is_done]


def problem() -> Problem:
    """The noise of FedAvg at eta 1 with ideal clients: what a probe would measure."""
    probe = next(run for run in finished(GRIDS[0]) if momentum(run) == Momentum(PROBE_ETA, *FEDAVG))
    seen = [probe.within(column, lambda _: (PROBE[0] - 1, PROBE[-1]))[1] for column in COLUMNS]
    share, error = share_of_noise(seen[0], seen[1], [int(m) for m in seen[2]], 100)
    return fitted(Measured(share, error, PROBE), IDEAL)


def line(grid: Grid) -> str:
    """Of the table: the rank correlation, and what the model's pick loses."""
    runs = finished(grid)
    points, scores = [momentum(run) for run in runs], [100 * (run.score("test/acc") or 0) for run in runs]
    plans = [[Stretch(125, m)] for m in points]
    reached = excess(replace(problem(), reading=grid.reading), plans, LAST)
    rho = np.corrcoef(pd.Series(-reached).rank(), pd.Series(scores).rank())[0, 1]
    best, pick = int(np.argmax(scores)), int(reached.argmin())
    shown = [
        f"({points[n].eta:g}, {points[n].beta:g}, {points[n].nu:g}): {scores[n]:.1f} %" for n in (best, pick)
    ]
    cells = [grid.name, str(len(runs)), f"{rho:.2f}", *shown, f"{scores[best] - scores[pick]:.1f}"]
    return f"| {' | '.join(cells)} |"


def table() -> str:
    """Every grid that is stored."""
    head = ("stored grid", "points", "Spearman", "best point", "the model's", "points lost")
    return "\n".join([f"| {' | '.join(head)} |", "|---" * len(head) + "|", *map(line, GRIDS)]) + "\n"


@click.command(help=__doc__)
@click.option("--write", is_flag=True, help="Into docs/suggest.md.")
def main(write: bool) -> None:
    """Print the table."""
    text = table()
    if write:
        replace_between(PAGE, "suggest", text)
    click.echo(text)


if __name__ == "__main__":
    main()
