"""The pictures of a sweep, from its records."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any, cast, get_args

from fedgm.config.identity import NOT_IDENTITY
from fedgm.figures.points import Point, Status
from fedgm.figures.sweep import draw_sweep
from fedgm.results import record
from fedgm.results.goal import sign
from fedgm.results.record import RunRecord, mean_steps
from fedgm.study.judged import is_divergent, outcome
from fedgm.study.points import Job
from fedgm.study.sweep_progress import Results

OPEN = {"killed": "paused", "stopped": "paused"}  # a run that waits to be continued


def draw(results: Results, folder: Path | None = None) -> list[Path]:
    """Write every picture that applies into the sweep's folder, or into another one."""
    plan = results.plan
    baseline, reference = _baseline(results)
    file = plan.file
    place = folder or plan.folder
    return draw_sweep(
        place, drawn_points(results), caption(results), file.metric, file.goal, baseline, reference
    )


def drawn_points(results: Results) -> list[Point]:
    """The runs of the seed that chooses, as pictures show them."""
    plan = results.plan
    return [_point(results, job) for job in plan.jobs if job.seed == plan.seeds[0]]


def caption(results: Results) -> str:
    """What a picture must say: profile, rounds, seed, local steps, and every commit that made its runs."""
    plan = results.plan
    first = [job for job in plan.jobs if job.seed == plan.seeds[0]]
    runs = [run for run in map(results.of, first) if run is not None]
    words = f"{plan.file.name}: profile {plan.profile}, {plan.jobs[0].rounds} rounds, seed {plan.seeds[0]}"
    commits = sorted({str(run.facts["commit"]) for run in runs if run.facts["commit"]})
    made = f"; commit{'s' if len(commits) > 1 else ''} {', '.join(commits)}" if commits else ""
    lost = sum(run.status == "finished" and is_divergent(run, plan.file.metric) for run in runs)
    note = f" Divergent by the rule of docs/claims.md: {lost}." if lost else ""
    return f"{words}{mean_steps(runs)}{made}.{note}"


def _point(results: Results, job: Job) -> Point:
    run, metric = results.of(job), results.plan.file.metric
    state = outcome(results.state(job), run, metric)
    values: dict[str, Any] = {key: job.values[key] for key in results.plan.file.swept}
    return Point(
        job.point, values, _shown(state), run.mean(metric) if run else None,
        run.last(metric) if run else None, int(run.facts["rounds_done"] or 0) if run else 0, job.rounds,
    )  # fmt: skip


def _shown(state: str) -> Status:
    """The mark of a state; a run whose folder is damaged has none of its own."""
    mark = OPEN.get(state, state)
    return cast(Status, mark) if mark in get_args(Status) else "failed"


def _baseline(results: Results) -> tuple[float | None, str]:
    """FedAvg's best run of the same experiment, rounds, seed and reading, and its name with its eta."""
    plan = results.plan
    if plan.algorithm == "fedavg":
        return None, ""
    around = [*record.below(plan.output_dir / plan.experiment), *results.archive.values()]
    scored = [
        (score, run) for run in _peers(results, around) if (score := run.mean(plan.file.metric)) is not None
    ]
    if not scored:
        return None, ""
    score, run = max(scored, key=lambda pair: sign(plan.file.goal) * pair[0])
    eta = run.config.get("algorithm.eta")
    return score, f"FedAvg's best (η = {eta:g})" if isinstance(eta, int | float) else "FedAvg's best"


def _peers(results: Results, runs: Iterable[RunRecord]) -> list[RunRecord]:
    """Finished FedAvg runs of the same seed that differ from the sweep's in the server's values alone."""
    plan = results.plan
    own = [run for job in plan.jobs if job.seed == plan.seeds[0] and (run := results.of(job)) is not None]
    if not own:
        return []
    return [
        run
        for run in runs
        if (run.status, run.facts["algorithm"], run.facts["seed"]) == ("finished", "fedavg", plan.seeds[0])
        and not is_divergent(run, plan.file.metric)
        and all(_fits(run, other) for other in own)
    ]


def _fits(run: RunRecord, other: RunRecord) -> bool:
    """Whether what both configurations say is equal, but for the server rule and what cannot change a result.

    A key that only one of them has came with a later version, at the value that was meant before.
    """
    left_out = ("algorithm.", "trainer.", "callbacks", *NOT_IDENTITY)
    both = run.config.keys() & other.config.keys()
    keys = [key for key in both if not key.startswith(left_out) and not key.endswith("_target_")]
    return all(run.config[key] == other.config[key] for key in keys)
