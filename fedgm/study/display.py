"""What a person sees of a sweep: a live table on a terminal, a line per run elsewhere, a table at the end."""

from collections import Counter
from types import TracebackType
from typing import Any

from rich.live import Live
from rich.table import Table
from rich.text import Text

from fedgm.clock import Stopwatch
from fedgm.plain import plain
from fedgm.results.summary import DONE, Status
from fedgm.screen import Screen
from fedgm.study.points import Job, SweepPlan
from fedgm.study.runner import Runner
from fedgm.study.sweep_progress import Results, targets
from fedgm.study.winners import Ranked, at_budget, other_seeds, ranking

SHOWN = 10  # points of the closing table


def job_words(plan: SweepPlan, job: Job) -> str:
    """A point by its swept values, ``eta 2, beta 0.9, nu 0.9``; a line of a figure by its name."""
    names = {key: "" if key == "line" else f"{plain(key.split('.')[-1])} " for key in plan.file.swept}
    words = [f"{name}{plain(job.values[key])}" for key, name in names.items()]
    return ", ".join([*words, *([f"seed {job.seed}"] if len(plan.seeds) > 1 else [])]) or f"seed {job.seed}"


class Display:
    """Live on a terminal; on a pipe a line for each run that ends."""

    def __init__(self, console: Screen, results: Results) -> None:
        self.console, self.results, self.plan = console, results, results.plan
        self._live = (
            Live(console=console, auto_refresh=False, redirect_stdout=False, redirect_stderr=False)
            if console.is_terminal
            else None
        )
        # Since a running job was first seen, and at which round.
        self._since: dict[int, tuple[Stopwatch, int]] = {}

    def __enter__(self) -> "Display":
        if self._live:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live:
            self._live.stop()

    def show(self, runner: Runner) -> None:
        """Refresh the table."""
        self._since = {n: since for n, since in self._since.items() if n in runner.running}
        for n, job in runner.running.items():
            self._since.setdefault(n, (Stopwatch(), self.results.rounds(job)))
        if self._live:
            self._live.update(self._table(runner), refresh=True)

    def report(self, runner: Runner, job: Job) -> None:
        """A run has ended; others that have, but whose line is still to come, are not counted yet."""
        if self._live:
            return
        run = self.results.of(job)
        status = runner.failed.get(job.key) or (run.status if run else Status.FAILED)
        score = self.results.show(run.score(self.plan.file.metric) if run else None)
        to_come = {other.key for other in runner.running.values()}
        done = sum(self.results.state(j) in DONE and j.key not in to_come for j in self.plan.jobs)
        line = f"[{done}/{len(self.plan.jobs)}] {job_words(self.plan, job)}: {plain(status)}, {score}"
        self.console.say(line)

    def _table(self, runner: Runner) -> Table:
        """Counts, running jobs with round and ETA, best so far."""
        plan, allowed = self.plan, targets(self.results)
        counts = Counter(self.results.state(job) for job in plan.jobs)
        table = Table(
            title=f"{plain(plan.file.name)}: {len(plan.jobs)} runs, profile {plan.profile}",
            header_style="bold",
        )
        for name in ("running", "round", "ETA", plan.file.metric):
            table.add_column(name, justify="left" if name == "running" else "right")
        for n, job in sorted(runner.running.items()):
            done, until = self.results.rounds(job), allowed.get(job.key, job.rounds)
            run = self.results.of(job)
            eta = _eta(*self._since[n], done, until)
            score = self.results.show(run.final(plan.file.metric) if run else None)
            table.add_row(job_words(plan, job), f"{done}/{until}", eta, score)
        caption = ", ".join(f"{count} {state}" for state, count in sorted(counts.items()))
        if best := ranking(self.results)[:1]:
            caption += f"\nbest so far: {job_words(plan, best[0].job)}: {self.results.show(best[0].score)}"
        table.caption = caption
        return table


def _eta(since: Stopwatch, first: int, done: int, until: int) -> str:
    """Minutes and seconds to go, from the rounds that were watched."""
    if done <= first:
        return "-"
    minutes, seconds = divmod(round(since.seconds() / (done - first) * (until - done)), 60)
    return f"{minutes}:{seconds:02d}"


def closing(console: Screen, results: Results, failed: dict[tuple[str, int], str]) -> None:
    """The best points, what the winner is worth, and what did not end well."""
    plan, ranked = results.plan, ranking(results)
    metric = plan.file.metric
    table = Table(
        title=f"{plain(plan.file.name)}: mean of the last 10 evaluations, seed {plan.seeds[0]}",
        header_style="bold",
    )
    for name in ("", "point", metric, "final"):
        table.add_column(name, justify="left" if name == "point" else "right")
    for place, entry in enumerate(ranked[:SHOWN], start=1):
        values = results.show(entry.score), results.show(entry.run.final(metric))
        table.add_row(str(place), job_words(plan, entry.job), *values)
    if ranked:
        console.print(table)
    counts = Counter(results.state(job) for job in plan.jobs)
    console.print(", ".join(f"{count} {state}" for state, count in sorted(counts.items())))
    for line in trust(results, ranked):
        console.say(line)
    for job in plan.jobs:
        if job.key in failed:
            console.say(Text("failed", "red"), f"{job_words(plan, job)}: {plain(failed[job.key])}")


def trust(results: Results, ranked: list[Ranked]) -> list[str]:
    """How far the winner can be trusted: the best of ten, and seeds that had no part in choosing it."""
    lines = list[str]()
    if not ranked:
        return lines
    if budget := at_budget(results, ranked):
        shown = [results.show(value) for value in (budget.whole, budget.mean, budget.low, budget.high)]
        lines.append(
            f"best of {budget.n}: {shown[0]}; best of {budget.k} drawn from them: {shown[1]} "
            f"(90 % of draws: {shown[2]} to {shown[3]})"
        )
    if others := other_seeds(ranked[0], results):
        mean = sum(others.values()) / len(others)
        shown = ", ".join(f"{seed}: {results.show(score)}" for seed, score in sorted(others.items()))
        lines.append(f"the winner on other seeds: {results.show(mean)} ({shown})")
    return lines


def as_rows(results: Results) -> list[dict[str, Any]]:
    """The sweep as a table: a line per run, for points.csv and ``fedgm.sweep``."""
    return [_as_row(results, job) for job in results.plan.jobs]


def _as_row(results: Results, job: Job) -> dict[str, Any]:
    run, file = results.of(job), results.plan.file
    return {
        "point": job.point,
        "seed": job.seed,
        **{key: job.values[key] for key in file.swept},
        "status": results.state(job),
        "rounds": run.rounds_done if run else 0,
        "last10": run.score(file.metric) if run else None,
        "final": run.final(file.metric) if run else None,
        "hash": job.hash,
        "folder": str(job.folder),
    }
