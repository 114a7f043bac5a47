"""Stored runs as the claims need them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from fedgm.config import conf_dir
from fedgm.errors import ClashError, RefusedError
from fedgm.results import archive, record
from fedgm.results.judged_run import TEST, JudgedRun, Measure
from fedgm.results.record import RunRecord
from fedgm.study import points, sweep_file
from fedgm.study.figure_runs import CHOOSING, PlannedFigure
from fedgm.study.judged import as_run
from fedgm.study.points import Job
from fedgm.study.verdict import Evidence
from fedgm.tasks.metric import Metric, described

Lookup = Callable[[Job], RunRecord | None]


def stored_records(path: Path) -> list[RunRecord]:
    """Records of an archive, of all archives below a folder, or of the run folders below it."""
    if not path.exists():
        raise RefusedError(f"{path}: no stored results. Try --stored FILE with a file of --export")
    if path.is_dir() and (runs := record.below(path)):
        return runs
    found = archive.read(path)
    if not found:
        raise RefusedError(f"{path}: no stored results. Try --stored FILE with a file of --export")
    return found


def metric_of(own: PlannedFigure, lookup: Lookup) -> Metric:
    """The figure's metric, as the task of its runs describes it."""
    found = (lookup(job) for job in own.jobs.values())
    return described(own.figure.metric, (run.board for run in found if run is not None))


def measure_of(own: PlannedFigure, lookup: Lookup) -> Measure:
    """The figure's metric as the claims need it."""
    metric = metric_of(own, lookup)
    if own.figure.claims and metric.better != "higher":
        why = "claims are about metrics of which more is better"
        raise ClashError(f"{own.figure.experiment}: figure.metric", metric.name, why, "claims: []")
    return Measure(metric.name, metric.label, metric.scale)


def gather(own: PlannedFigure, others: Sequence[PlannedFigure], lookup: Lookup) -> Evidence:
    """Lines of the figure by key, and those of all figures by ``experiment/key``."""
    measure = measure_of(own, lookup)
    judged = measure.column(TEST) if own.figure.claims else ""  # what counts as divergent is the claims' rule
    runs: dict[str, Mapping[int, JudgedRun]] = {}
    names: dict[str, str] = {}
    for planned in (own, *others):
        for line in planned.figure.lines:
            found = {
                seed: as_run(lookup(planned.jobs[line.key, seed]), seed, judged) for seed in planned.seeds
            }
            places = [f"{planned.figure.experiment}/{line.key}", *([line.key] if planned is own else [])]
            runs |= dict.fromkeys(places, found)
            names |= dict.fromkeys(places, line.name)
    return Evidence(measure, own.judging, runs, names)


def grid_runs(
    grid: str,
    overrides: Sequence[str],
    lookup: Lookup,
    output_dir: str,
    judged: str,
    stored: Iterable[RunRecord] | None = None,
) -> list[JudgedRun | None]:
    """A run for each point of the sweep behind a winner, on the seed that chose it; None where not run.

    ``judged`` is the column that counts. ``stored`` are all records there are: planning many points takes
    seconds, and is left out where none can belong to the sweep.
    """
    name, *words = grid.split()
    read = sweep_file.read(conf_dir().parent / "sweeps" / f"{name}.yaml")
    rule = read.points[0].get("algorithm")
    if stored is not None and not any(
        run.facts["seed"] == CHOOSING and run.facts["algorithm"] == rule for run in stored
    ):
        return [None] * len(read.points)
    found = [lookup(job) for job in points.make(read, [*words, *overrides], [CHOOSING], output_dir).jobs]
    usable = ("finished", "diverged", "paused")
    return [
        as_run(run, CHOOSING, judged) if run is not None and run.status in usable else None for run in found
    ]
