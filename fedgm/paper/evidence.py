"""Stored runs as the claims need them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate
from pathlib import Path

from fedgm.claims.run import Run
from fedgm.claims.verdict import Evidence
from fedgm.config import conf_dir
from fedgm.errors import RefusedError
from fedgm.grid import file, plan
from fedgm.grid.plan import Job
from fedgm.paper.plan import CHOOSING, PlannedFigure
from fedgm.track import archive, record
from fedgm.track.record import RunRecord

Lookup = Callable[[Job], RunRecord | None]
CLASSES = 10  # of CIFAR-10, where the configuration does not say


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


def as_run(found: RunRecord | None, seed: int) -> Run:
    """What the rules need of a record."""
    if found is None:
        return Run(seed, "missing")
    rows, facts = found.evaluations, found.facts
    metrics = {key for row in rows for key in row if key.startswith(("train/", "test/"))}
    return Run(
        seed=seed,
        status=found.status,
        rounds=int(facts["rounds"]),
        every=int(found.config.get("eval.every") or 1),
        measured=tuple(int(row["round"] or 0) for row in rows),
        values={metric: tuple(row.get(metric) for row in rows) for metric in sorted(metrics)},
        ends=stage_ends(found),
        classes=int(found.config.get("data.source.classes") or CLASSES),
    )


def stage_ends(found: RunRecord) -> tuple[int, ...]:
    """Last rounds of the stages, the whole run's included."""
    return tuple(accumulate(int(stage["rounds"]) for stage in found.facts.get("stages") or []))


def gather(own: PlannedFigure, others: Sequence[PlannedFigure], lookup: Lookup) -> Evidence:
    """Lines of the figure by key, and those of all figures by ``experiment/key``."""
    runs: dict[str, Mapping[int, Run]] = {}
    names: dict[str, str] = {}
    for planned in (own, *others):
        for line in planned.figure.lines:
            found = {seed: as_run(lookup(planned.jobs[line.key, seed]), seed) for seed in planned.seeds}
            places = [f"{planned.figure.experiment}/{line.key}", *([line.key] if planned is own else [])]
            runs |= dict.fromkeys(places, found)
            names |= dict.fromkeys(places, line.name)
    return Evidence(own.judging, runs, names)


def grid_runs(
    grid: str,
    overrides: Sequence[str],
    lookup: Lookup,
    output_dir: str,
    stored: Iterable[RunRecord] | None = None,
) -> list[Run | None]:
    """A run for each point of the sweep behind a winner, on the seed that chose it; None where not run.

    ``stored`` are all records there are: planning many points takes seconds, and is left out where none can
    belong to the sweep.
    """
    name, *words = grid.split()
    read = file.read(conf_dir().parent / "sweeps" / f"{name}.yaml")
    rule = read.points[0].get("algorithm")
    if stored is not None and not any(
        run.facts["seed"] == CHOOSING and run.facts["algorithm"] == rule for run in stored
    ):
        return [None] * len(read.points)
    found = [lookup(job) for job in plan.make(read, [*words, *overrides], [CHOOSING], output_dir).jobs]
    usable = ("finished", "diverged", "paused")
    return [as_run(run, CHOOSING) if run is not None and run.status in usable else None for run in found]
