"""Stored runs as the claims need them: by line and seed, and those of the grids behind winners."""

from collections.abc import Iterable, Mapping, Sequence

from fedgm.config import conf_dir
from fedgm.errors import ClashError
from fedgm.results.run import Run
from fedgm.results.summary import WELL
from fedgm.study import points, sweep_file
from fedgm.study.figure_runs import CHOOSING, Lookup, PlannedFigure
from fedgm.study.verdict import Evidence
from fedgm.tasks.metric import Metric, described


def metric_of(planned: PlannedFigure, lookup: Lookup) -> Metric:
    """The figure's metric, as the task of its runs describes it."""
    runs = (lookup(job) for job in planned.jobs.values())
    return described(planned.figure.metric, (run.board for run in runs if run is not None))


def gather(figure: PlannedFigure, others: Sequence[PlannedFigure], lookup: Lookup) -> Evidence:
    """Lines of the figure by key, and those of all figures by ``experiment/key``."""
    metric = metric_of(figure, lookup)
    if figure.figure.claims and metric.better != "higher":
        why = "claims are about metrics of which more is better"
        raise ClashError(f"{figure.figure.experiment}: figure.metric", metric.name, why, "claims: []")
    runs: dict[str, Mapping[int, Run]] = {}
    names: dict[str, str] = {}
    for planned in (figure, *others):
        for line in planned.figure.lines:
            by_seed = {seed: lookup(planned.jobs[line.key, seed]) for seed in planned.seeds}
            there = {seed: run for seed, run in by_seed.items() if run is not None}
            places = [f"{planned.figure.experiment}/{line.key}", *([line.key] if planned is figure else [])]
            runs |= dict.fromkeys(places, there)
            names |= dict.fromkeys(places, line.name)
    return Evidence(metric, figure.judging, runs, names)


def grid_runs(
    grid: str,
    overrides: Sequence[str],
    lookup: Lookup,
    output_dir: str,
    stored: Iterable[Run] | None = None,
) -> list[Run | None]:
    """A run for each point of the sweep behind a winner, on the seed that chose it; None where not run.

    ``stored`` are all runs there are: planning many points takes seconds, and is left out where none can
    belong to the sweep.
    """
    name, *words = grid.split()
    file = sweep_file.read(conf_dir().parent / "sweeps" / f"{name}.yaml")
    rule = file.points[0].get("algorithm")
    if stored is not None and not any(
        run.seed == CHOOSING and run.facts["algorithm"] == rule for run in stored
    ):
        return [None] * len(file.points)
    runs = [lookup(job) for job in points.make(file, [*words, *overrides], [CHOOSING], output_dir).jobs]
    return [run if run is not None and run.status in WELL else None for run in runs]
