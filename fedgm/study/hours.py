"""How long a sweep will take: the rounds that are left, times what a round of its runs takes."""

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from statistics import mean, median
from tempfile import TemporaryDirectory

from fedgm.clock import Stopwatch
from fedgm.results.rows import read as read_rows
from fedgm.screen import Screen
from fedgm.study import rungs
from fedgm.study.points import Job, SweepPlan
from fedgm.study.sweep_progress import Results, rung_rounds

LEAST = 3  # rounds to measure: the first one also warms up


def expected_hours(results: Results, workers: int, say: Callable[[str], None]) -> float:
    """From the measured rounds of its runs; where there are none, from first rounds, which it says."""
    plan, measured, left = results.plan, dict[str, list[float]](), list[tuple[str, float]]()
    for job, cfg, rounds in zip(plan.jobs, plan.configs, rounds_left(results), strict=True):
        model = str(cfg.model.name)  # a round of another model takes another time
        measured.setdefault(model, []).extend(_seconds(job.folder, job))
        left.append((model, rounds))
    if not any(rounds for _, rounds in left):
        return 0.0
    every = [s for seconds in measured.values() for s in seconds] or [_first_rounds(plan, say)]
    a_round = {model: median(seconds or every) for model, seconds in measured.items()}
    each = [a_round[model] * rounds for model, rounds in left]
    return max(sum(each) / workers, *each) / 3600  # no number of workers is faster than the longest run


def in_words(hours: float) -> str:
    """Hours as people say them; what ends at once takes a second.

    >>> in_words(0.0001), in_words(0.2), in_words(3.21), in_words(30)
    ('1 second', '12 minutes', '3.2 hours', '30 hours')
    """
    seconds = max(1, round(hours * 3600))
    if seconds < 100:
        return f"{seconds} second{'s' * (seconds > 1)}"
    return f"{seconds / 60:.0f} minutes" if seconds < 100 * 60 else f"{hours:.{int(hours < 10)}f} hours"


def rounds_left(results: Results, halving: bool = True) -> list[float]:
    """Rounds that each job has still to run; where a rung has not decided yet, the mean over its points.

    How many points a rung keeps is fixed before it decides, so the sum over all jobs is exact as long as
    none diverges.
    """
    plan = results.plan
    ends = rung_rounds(plan) if halving else []
    share, shares = {job.point: 1.0 for job in plan.jobs}, list[dict[int, float]]()
    for until in [*ends, plan.jobs[0].rounds]:
        shares.append(share)
        share = _share_after(results, share, until) if until in ends else share
    return [
        sum(
            share[job.point] * max(0, end - max(begin, results.rounds(job)))
            for (begin, end), share in zip(pairwise([0, *ends, job.rounds]), shares, strict=True)
        )
        for job in plan.jobs
    ]


def _share_after(results: Results, share: dict[int, float], until: int) -> dict[int, float]:
    """How likely each point is to go on beyond a rung: certain once it has decided, equal shares before."""
    plan, halving = results.plan, results.plan.file.halving
    assert halving is not None
    survivors = rungs.read(plan, until)
    if survivors is not None:
        return {point: float(point in survivors) for point in share}
    first = [(job.point, results.of(job)) for job in plan.jobs if job.seed == plan.seeds[0]]
    lost = {point for point, run in first if run and run.is_divergent and run.rounds_done <= until}
    alive = sum(value for point, value in share.items() if point not in lost)
    kept = min(halving.kept(round(sum(share.values()))), round(alive))
    goes_on = min(1.0, kept / alive) if alive else 0.0
    return {point: 0.0 if point in lost else value * goes_on for point, value in share.items()}


def _first_rounds(plan: SweepPlan, say: Callable[[str], None]) -> float:
    """Seconds of a round with its share of an evaluation, run in a folder that is thrown away."""
    from fedgm.config import compose
    from fedgm.running.start import execute

    job = plan.jobs[0]
    until = job.eval_every * -(-LEAST // job.eval_every)  # an evaluation is in it
    stop = [f"stop_after={until}"] if until < job.rounds else []
    say(f"no round has been timed yet: the first {min(until, job.rounds)} of a run are tried out now")
    watch = Stopwatch()
    with TemporaryDirectory() as folder:
        words = [*job.overrides, f"output_dir={folder}", *stop, "track.mode=disabled"]
        result = execute(compose(words), words, Screen(quiet=True), alone=False)
        return median(_seconds(result.folder, job) or [watch.seconds()])


def _seconds(folder: Path, job: Job) -> list[float]:
    """Seconds of each recorded round with its share of an evaluation; none before the first evaluation."""
    rows = read_rows(folder / "metrics.jsonl")
    evaluations = [seconds for row in rows if (seconds := row.get("time/eval")) is not None]
    if not evaluations:
        return []
    spread = mean(evaluations) / min(job.eval_every, job.rounds)
    return [(row.get("time/round") or 0.0) + spread for row in rows]
