"""How far a sweep is: the state of every job, and how far each may go by the decisions of the rungs."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from fedgm.lock import is_alive
from fedgm.results.find import read_folder, stamp
from fedgm.results.index import Index, Stamp
from fedgm.results.run import Key, Run, Status
from fedgm.study import rungs
from fedgm.study.points import Job, SweepPlan
from fedgm.tasks.metric import Column, column

WAITING = "waiting"  # not begun


@dataclass
class Results:
    """The sweep's runs: from folders, or from ``stored`` where there is no folder."""

    plan: SweepPlan
    stored: Mapping[Key, Run] = field(default_factory=dict[Key, Run])
    lost: set[Key] = field(default_factory=set[Key])  # crashed here: they count as the last of their rung
    index: Index = field(default_factory=lambda: Index(None))  # one with a place keeps last evaluations alone
    _read: dict[Key, tuple[Stamp, Run | None]] = field(default_factory=dict[Key, tuple[Stamp, Run | None]])

    def of(self, job: Job) -> Run | None:
        """The newest state of a run; files that have not changed are not read again."""
        state = stamp(job.folder)
        if job.key not in self._read or self._read[job.key][0] != state:
            run = self.index.read(job.folder, state, lambda: read_folder(job.folder))
            if (run is None or not run.is_done) and job.key in self.stored:
                run = self.stored[job.key]
            self._read[job.key] = state, run
        return self._read[job.key][1]

    def column(self) -> Column:
        """The sweep's metric as the task of its runs describes it."""
        runs = (run for run in map(self.of, self.plan.jobs) if run is not None)
        return column(self.plan.file.metric, (run.board for run in runs))

    def show(self, value: float | None) -> str:
        """A value of the sweep's metric as its task shows it."""
        return self.column().metric.show(value)

    def rounds(self, job: Job) -> int:
        """Rounds that are recorded; all of them for a run that is done."""
        run = self.of(job)
        if run is None:
            return 0
        return job.rounds if run.is_done else run.rounds_done

    def is_through(self, job: Job, until: int) -> bool:
        """Whether nothing is left to do up to a round: the run is done, or waits there, paused."""
        run = self.of(job)
        paused = run is not None and run.status == Status.PAUSED and job.rounds > until <= self.rounds(job)
        return paused or (run is not None and run.is_done)

    def state(self, job: Job) -> str:
        """waiting, or a :class:`Status`."""
        run = self.of(job)
        if run is None or run.folder is None:
            return run.status if run else (Status.RUNNING if is_alive(job.folder) else WAITING)
        if run.is_done:
            return run.status
        if is_alive(job.folder):
            return Status.RUNNING
        return Status.KILLED if run.status == Status.RUNNING else run.status  # it was alive when it was read


def rung_rounds(plan: SweepPlan) -> list[int]:
    """Rounds after which a rung decides, ascending; none in a sweep without halving."""
    halving, first = plan.file.halving, plan.jobs[0]
    counts = halving.rungs(-(-first.rounds // first.eval_every)) if halving else []
    return [count * first.eval_every for count in counts]


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
        survivors = rungs.read(plan, until)
        if survivors is None:
            if not all(_is_in(results, job, until) for job in jobs):
                return allowed
            scores = {job.point: _score(results, job, until) for job in jobs}
            best = halving.survivors(scores, plan.file.goal == "maximize")
            survivors = rungs.keep(plan, until, best)
        alive = survivors
    return allowed | {job.key: job.rounds for job in plan.jobs if job.point in alive}


def _is_in(results: Results, job: Job, until: int) -> bool:
    """Whether a rung knows all of a job that it asks for."""
    return job.key in results.lost or results.rounds(job) >= until


def _score(results: Results, job: Job, until: int) -> float | None:
    run = results.of(job)
    return None if run is None else score_at(run, results.plan.file.metric, until)


def score_at(run: Run, metric: str, until: int) -> float | None:
    """Mean of the last ten evaluations at a rung; None for a point that has lost.

    A point has lost that diverged or crashed before the rung, or diverged in its last round.
    """
    lost = run.rounds_done < until or (run.is_divergent and run.rounds_done == until)
    return None if lost else run.score(metric, until)
