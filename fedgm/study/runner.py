"""Runs a sweep: starts what may run, watches it end, asks the rungs, until nothing is left."""

import os
import signal
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from fedgm.clock import Stopwatch
from fedgm.files import no_link
from fedgm.lock import is_alive
from fedgm.plain import plain
from fedgm.study.fork_server import BUSY, Ended, ForkServer
from fedgm.study.points import Job
from fedgm.study.sweep_progress import Key, Results, targets

TICK = 0.5  # seconds between two looks
PAUSE = 30.0  # seconds until a job that another process holds is tried again
LAST = 20_000  # bytes of a log in which its last line is looked for
DEATHS = 3  # a run that signals have ended so often has failed


@dataclass
class Runner:
    """One of any number of runners on a folder; the run locks keep two from running the same point."""

    results: Results
    workers: int
    show: Callable[["Runner"], None]
    report: Callable[["Runner", Job], None]
    running: dict[int, Job] = field(default_factory=dict[int, Job])
    failed: dict[Key, str] = field(default_factory=dict[Key, str])
    _until: dict[int, int] = field(default_factory=dict[int, int])  # what each running job was started for
    _deaths: Counter[Key] = field(default_factory=Counter[Key])
    _busy: dict[Key, Stopwatch] = field(default_factory=dict[Key, Stopwatch])

    def run(self) -> None:
        """Until every job is done, has lost, or has failed here."""
        server = ForkServer()
        try:
            while True:
                todo = self._fill(server)
                self.show(self)
                if not todo and not self.running:
                    return
                for ended in server.ended(TICK):
                    self._take(ended)
        finally:
            server.close()

    def _fill(self, server: ForkServer) -> bool:
        """Start jobs while workers are free; whether anything is left to run here or in another process."""
        allowed, todo = targets(self.results), False
        ours = {job.key for job in self.running.values()}
        jobs = self.results.plan.jobs
        for number in sorted(range(len(jobs)), key=lambda n: (self.results.rounds(jobs[n]) == 0, n)):
            job = jobs[number]
            until = allowed.get(job.key, 0)
            if job.key in ours or job.key in self.failed or self.results.is_through(job, until):
                continue
            todo = True
            if len(self.running) < self.workers and self._is_free(job):
                self.running[number], self._until[number] = job, until
                stop = [f"stop_after={until}"] if until < job.rounds else []
                server.start(number, [*job.overrides, *stop], job.folder / "output.log")
        return todo

    def _is_free(self, job: Job) -> bool:
        """Whether no process works on it; a job that was busy a moment ago must not block a worker."""
        waits = job.key in self._busy and self._busy[job.key].seconds() < PAUSE
        return not waits and not is_alive(job.folder)

    def _take(self, ended: Ended) -> None:
        """Note how a run ended; one that another runner holds stays in the list.

        A run that a signal ended (out of memory, a crash) is continued before it counts as failed: what
        killed it may have been another process.
        """
        job, until = self.running.pop(ended.number), self._until.pop(ended.number)
        if ended.code == BUSY:
            self._busy[job.key] = Stopwatch()
            return
        self._deaths[job.key] += ended.code < 0
        if ended.code < 0 and self._deaths[job.key] < DEATHS:
            return
        if ended.code != 0 or not self.results.is_through(job, until):
            self.failed[job.key] = reason(job, ended.code)
            self.results.lost.add(job.key)
        self.report(self, job)


def reason(job: Job, code: int) -> str:
    """Why a run failed, in a line."""
    if code == -signal.SIGKILL:
        return "killed (out of memory?)"
    if code < 0:
        return f"ended by {signal.Signals(-code).name}"
    try:
        with open(job.folder / "output.log", "rb", opener=no_link) as log:
            log.seek(max(0, os.fstat(log.fileno()).st_size - LAST))
            lines = [line for line in log.read(LAST).decode(errors="replace").splitlines() if line.strip()]
    except OSError:
        lines = []
    last = plain(lines[-1]) if lines else f"exit code {code}"
    return last if code else f"ended without progress: {last}"
