"""The pictures of a sweep from its runs, and the W&B run that shows them where runs go online."""

import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, cast, get_args

from fedgm.config.identity import NOT_IDENTITY
from fedgm.figures.points import Mark, Point
from fedgm.figures.sweep import draw_sweep
from fedgm.results import labels
from fedgm.results.curve import sign
from fedgm.results.find import below
from fedgm.results.run import Run, Status, mean_steps
from fedgm.running.wandb_run import INIT_TIMEOUT, resolve_mode
from fedgm.study.points import Job, SweepPlan
from fedgm.study.sweep_progress import Results

WAITS = (Status.KILLED, Status.STOPPED)  # drawn as paused: the same command continues it


# Of a run's configuration, what a caption says in which words.
SETTING = {
    "profile.name": "profile", "data.name": "data", "data.alpha": "alpha", "participation.name": "clients",
    "participation.anchor": "anchor", "participation.normalize": "normalize", "participation.delay": "delay",
    "participation.epochs": "epochs",
}  # fmt: skip


def draw(
    results: Results, folder: Path | None = None, shared: tuple[float, float] | None = None
) -> list[Path]:
    """Write every picture that applies into the sweep's folder, or another; ``shared``: ends of colours."""
    plan = results.plan
    baseline, reference = _baseline(results)
    file = plan.file
    place = folder or plan.folder
    return draw_sweep(
        place, drawn_points(results), caption(results), results.column(), file.goal, baseline, reference,
        shared,
    )  # fmt: skip


def drawn_points(results: Results) -> list[Point]:
    """The runs of the seed that chooses, as pictures show them."""
    plan = results.plan
    return [_point(results, job) for job in plan.jobs if job.seed == plan.seeds[0]]


def caption(results: Results) -> str:
    """What a picture must say: the rule with the values that are not swept, the setting, rounds, seed, K."""
    plan = results.plan
    first = [job for job in plan.jobs if job.seed == plan.seeds[0]]
    runs = [run for run in map(results.of, first) if run is not None]
    words = [*_server(results, runs), *_setting(results, runs)]
    words += [f"{plan.jobs[0].rounds} rounds", f"seed {plan.seeds[0]}"]
    K = mean_steps([run for run in runs if run.status == Status.FINISHED] or runs)
    marked = sum(run.near_chance for run in runs)
    note = f" Near chance by the rule of docs/claims.md: {marked}." if marked else ""
    return f"{plan.file.name}: {', '.join(words)}{K}.{note}"


def _server(results: Results, runs: Sequence[Run]) -> list[str]:
    """The rule with the rates that all runs share, and ``nu = beta`` where one follows the other."""
    swept = results.plan.file.swept
    if not runs or "algorithm" in swept:
        return []
    pairs = {(run.config.get("algorithm.beta"), run.config.get("algorithm.nu")) for run in runs}
    follows = len(pairs) > 1 and all(beta == nu for beta, nu in pairs)
    fixed = [
        key for key in labels.RATES if len({run.config.get(key) for run in runs}) == 1 and key not in swept
    ]
    return [labels.label(runs[0], fixed), *(["nu = beta"] if follows else [])]


def _setting(results: Results, runs: Sequence[Run]) -> list[str]:
    """Profile, data and clients, but for what is swept."""
    swept, said = results.plan.file.swept, list[str]()
    config = {"profile.name": results.plan.profile, **(runs[0].config if runs else {})}
    if "participation.anchor" not in config:
        config.pop("participation.normalize", None)  # clients that are not stale: nothing to choose
    if config.get("data.partition") != "dirichlet":
        config.pop("data.alpha", None)
    for key, word in SETTING.items():
        value = config.get(key)
        if value is not None and not {key, key.partition(".")[0]} & {*swept}:
            said.append(f"{word} {' to '.join(map(str, value)) if isinstance(value, list) else value}")
    return said


def _point(results: Results, job: Job) -> Point:
    run, metric = results.of(job), results.plan.file.metric
    values: dict[str, Any] = {key: job.values[key] for key in results.plan.file.swept}
    mark = "near chance" if run and run.near_chance else _mark(results.state(job))
    return Point(
        job.point, values, mark, run.score(metric) if run else None,
        run.final(metric) if run else None, run.rounds_done if run else 0, job.rounds,
    )  # fmt: skip


def _mark(state: str) -> Mark:
    """The mark of a state; a run whose folder is damaged is drawn as failed."""
    mark = str(Status.PAUSED if state in WAITS else state)
    return cast(Mark, mark) if mark in get_args(Mark) else "failed"


def _baseline(results: Results) -> tuple[float | None, str]:
    """FedAvg's best run of the same experiment, rounds, seed and reading, and its name with its eta."""
    plan = results.plan
    if plan.algorithm == "fedavg":
        return None, ""
    around = [*below(plan.output_dir / plan.experiment), *results.stored.values()]
    scored = [
        (score, run) for run in _peers(results, around) if (score := run.score(plan.file.metric)) is not None
    ]
    if not scored:
        return None, ""
    score, run = max(scored, key=lambda pair: sign(plan.file.goal) * pair[0])
    eta = run.config.get("algorithm.eta")
    return score, f"FedAvg's best (η = {eta:g})" if isinstance(eta, int | float) else "FedAvg's best"


def _peers(results: Results, runs: Iterable[Run]) -> list[Run]:
    """Finished FedAvg runs of the same seed that differ from the sweep's in the server's values alone."""
    plan = results.plan
    peers_of = [
        run for job in plan.jobs if job.seed == plan.seeds[0] and (run := results.of(job)) is not None
    ]
    if not peers_of:
        return []
    return [
        run
        for run in runs
        if (run.status, run.facts["algorithm"], run.seed) == (Status.FINISHED, "fedavg", plan.seeds[0])
        and all(_fits(run, other) for other in peers_of)
    ]


def _fits(run: Run, other: Run) -> bool:
    """Whether what both configurations say is equal, but for the server rule and what cannot change a result.

    A key that only one of them has came with a later version, at the value that was meant before.
    """
    left_out = ("algorithm.", "trainer.", "callbacks", *NOT_IDENTITY)
    both = run.config.keys() & other.config.keys()
    keys = [key for key in both if not key.startswith(left_out) and not key.endswith("_target_")]
    return all(run.config[key] == other.config[key] for key in keys)


def send(plan: SweepPlan, pictures: list[Path]) -> str | None:
    """Send them; what to tell the user, or None where there is nothing to tell."""
    track = plan.configs[0].track
    if not pictures or resolve_mode(str(track.mode)) != "online":
        return None
    import wandb

    quiet: dict[str, Any] = {"init_timeout": INIT_TIMEOUT, "silent": True, "console": "off"}
    try:
        run = wandb.init(
            project=track.project, entity=track.entity, group=plan.experiment, job_type="sweep",
            name=plan.folder.name, dir=plan.folder, settings=wandb.Settings(**quiet), id=_id(plan),
            resume="allow",
        )  # fmt: skip
        run.log({picture.stem: wandb.Image(str(picture)) for picture in pictures})
        run.finish()
    except Exception as error:  # an upload that fails must not hide a stored result
        reason = (str(error).splitlines() or [type(error).__name__])[0][:80]
        return f"W&B did not take the pictures ({reason}); they are in {plan.folder}"
    return f"{len(pictures)} pictures sent to the W&B project {track.project}"


def _id(plan: SweepPlan) -> str:
    """The same run of W&B for the same sweep: pictures that were sent again replace the old ones."""
    runs = "".join(job.hash for job in plan.jobs)
    return f"sweep-{hashlib.sha256(runs.encode()).hexdigest()[:16]}"
