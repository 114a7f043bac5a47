"""What a picture of curves is made of: lines with their runs, panes, and the points of a run in a pane."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import floor, inf, isfinite, log10

import numpy as np

from fedgm.results.rows import Row
from fedgm.results.run import Run
from fedgm.tasks.metric import Column


@dataclass(frozen=True)
class Drawn:
    """A line: its name, its runs (one for each seed), its algorithm, and the row of panes it belongs to."""

    name: str
    runs: tuple[Run, ...]
    algorithm: str = ""
    row: str = ""  # the title of the row; a line without one is in every row
    strength: tuple[bool, float] = (True, 0.0)  # ideal clients, eta: of one algorithm the largest is darkest

    @property
    def is_staged(self) -> bool:
        """Whether its rates change in stages."""
        return any(len(run.stage_ends) > 1 for run in self.runs)


@dataclass(frozen=True)
class Pane:
    """A metric against rounds (or another abscissa), between two of them where given.

    ``residual``: each run without its own least-squares line, as docs/claims.md takes fluctuations.
    """

    metric: Column
    low: float | None = None
    high: float | None = None
    abscissa: str = "round"
    title: str = ""
    residual: bool = False


def points(run: Run, pane: Pane) -> dict[float, float]:
    """Place -> value as it was measured, the untrained model's first, without what was not finite."""
    start: Row = {"round": 0, "clock/time": 0.0, **(run.facts.get("initial") or {})}
    pairs = ((row.get(pane.abscissa), row.get(pane.metric.name)) for row in (start, *run.evaluations))
    return {float(t): float(v) for t, v in pairs if t is not None and v is not None and isfinite(v)}


def cut(run: Run, pane: Pane) -> dict[float, float]:
    """The points between the pane's ends."""
    low, high = -inf if pane.low is None else pane.low, inf if pane.high is None else pane.high
    return {t: value for t, value in points(run, pane).items() if low <= t <= high}


def ends_inside(run: Run, pane: Pane) -> bool:
    """Whether the run's last evaluation is in the pane."""
    return pane.high is None or max(points(run, pane)) <= pane.high


def residual(run: Run, pane: Pane) -> dict[float, float]:
    """What is left of a run's curve, in the unit shown, without its least-squares line in the pane.

    None of a run that diverged: it has no fluctuation.
    """
    inside = {t: v for t, v in cut(run, pane).items() if t > (pane.low or 0)}
    if run.is_divergent or len(inside) < 3:
        return {}
    t, v = np.array(list(inside)), pane.metric.scale * np.array(list(inside.values()))
    slope, level = np.polyfit(t, v, 1)
    return dict(zip(inside, (v - slope * t - level).tolist(), strict=True))


def reach(lines: Sequence[Drawn], panes: Sequence[Pane]) -> float:
    """The largest residual in any pane, rounded up to one digit, so that all panes have the same scale."""
    sizes = [
        abs(value)
        for pane in panes if pane.residual for line in lines for run in line.runs
        for value in residual(run, pane).values()
    ]  # fmt: skip
    largest = max(sizes, default=0.0) or 1.0
    unit = 10.0 ** floor(log10(largest))
    return -(-largest // unit) * unit
