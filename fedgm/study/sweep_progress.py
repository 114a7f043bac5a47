"""How far a sweep is: the state of every job, and how far each may go by the decisions of the rungs."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from fedgm.lock import is_alive
from fedgm.results import archive, record
from fedgm.results.record import RunRecord
from fedgm.study import decisions
from fedgm.study.points import Job, SweepPlan

Key = tuple[str, int]
Stamp = tuple[tuple[int, int] | None, ...]


@dataclass
class Results:
    """Records of the sweep's runs: from folders, or from archives where there is no folder."""

    plan: SweepPlan
    archive: Mapping[Key, RunRecord] = field(default_factory=dict[Key, RunRecord])
    lost: set[Key] = field(default_factory=set[Key])  # crashed here: they count as the last of their rung
    _read: dict[Key, tuple[Stamp, RunRecord | None]] = field(
        default_factory=dict[Key, tuple[Stamp, RunRecord | None]]
    )

    def of(self, job: Job) -> RunRecord | None:
        """The newest record; files that have not changed are not read again."""
        stamp = _stamp(job)
        if job.key not in self._read or self._read[job.key][0] != stamp:
            found = record.from_folder(job.folder)
            if (found is None or not found.is_done) and job.key in self.archive:
                found = self.archive[job.key]
            self._read[job.key] = stamp, found
        return self._read[job.key][1]

    def show(self, value: float | None) -> str:
        """A value of the sweep's metric as its task shows it."""
        metric = self.plan.file.metric
        known = next((run for run in map(self.of, self.plan.jobs) if run is not None), None)
        if value is None or known is None or metric not in known.board.columns:
            return "-" if value is None else f"{value:.4f}"
        return known.board.metric(metric).show(value)

    def rounds(self, job: Job) -> int:
        """Rounds that are recorded; all of them for a run that is done."""
        found = self.of(job)
        if found is None:
            return 0
        return job.rounds if found.is_done else int(found.facts["rounds_done"] or 0)

    def is_through(self, job: Job, until: int) -> bool:
        """Whether nothing is left to do up to a round: the run is done, or waits there, paused."""
        found = self.of(job)
        paused = found is not None and found.status == "paused" and job.rounds > until <= self.rounds(job)
        return paused or (found is not None and found.is_done)

    def state(self, job: Job) -> str:
        """waiting, running, paused, killed, stopped, failed, finished or diverged."""
        found = self.of(job)
        if found is None or found.folder is None:
            return found.status if found else ("running" if is_alive(job.folder) else "waiting")
        if found.is_done:
            return found.status
        if is_alive(job.folder):
            return "running"
        return "killed" if found.status == "running" else found.status  # it was alive when it was read


def _stamp(job: Job) -> Stamp:
    """Size and time of the files that a record is read from."""
    stamps: list[tuple[int, int] | None] = []
    for name in ("summary.json", "metrics.jsonl"):
        try:
            found = (job.folder / name).stat()
            stamps.append((found.st_mtime_ns, found.st_size))
        except OSError:
            stamps.append(None)
    return tuple(stamps)


def index(records: Iterable[RunRecord]) -> dict[Key, RunRecord]:
    """Records by what they are found by."""
    return {found.key: found for found in archive.once(records)}


def rung_rounds(plan: SweepPlan) -> list[int]:
    """Rounds after which a rung decides, ascending; none in a sweep without halving."""
    halving, first = plan.file.halving, plan.jobs[0]
    rungs = halving.rungs(-(-first.rounds // first.eval_every)) if halving else []
    return [rung * first.eval_every for rung in rungs]


def targets(results: Results) -> dict[Key, int]:
    """The round up to which each job may run now: the next undecided rung, the end, or where it lost.

    The first seed decides; the others are run to judge, and follow it.
    """
    plan = results.plan
    halving = plan.file.halving
    if halving is None:
        return {job.key: job.rounds for job in plan.jobs}
    alive = sorted({job.point for job in plan.jobs})
    allowed = dict[Key, int]()
    for until in rung_rounds(plan):
        allowed |= {job.key: until for job in plan.jobs if job.point in alive}
        jobs = [job for job in plan.jobs if job.point in alive and job.seed == plan.seeds[0]]
        survivors = decisions.read(plan, until)
        if survivors is None:
            if not all(_is_in(results, job, until) for job in jobs):
                return allowed
            scores = {job.point: _score(results, job, until) for job in jobs}
            best = halving.survivors(scores, plan.file.goal == "maximize")
            survivors = decisions.keep(plan, until, best)
        alive = survivors
    return allowed | {job.key: job.rounds for job in plan.jobs if job.point in alive}


def _is_in(results: Results, job: Job, until: int) -> bool:
    """Whether a rung knows all of a job that it asks for."""
    return job.key in results.lost or results.rounds(job) >= until


def _score(results: Results, job: Job, until: int) -> float | None:
    found = results.of(job)
    return None if found is None else score_at(found, results.plan.file.metric, until)


def score_at(found: RunRecord, metric: str, until: int) -> float | None:
    """Mean of the last ten evaluations at a rung; None for a point that has lost.

    A point has lost that diverged or crashed before the rung, or diverged in its last round.
    """
    done = int(found.facts["rounds_done"] or 0)
    if done < until or (found.status == "diverged" and done == until):
        return None
    return found.mean(metric, until)
