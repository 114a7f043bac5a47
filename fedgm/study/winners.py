"""Who wins a sweep, how far that can be trusted, and where winners are kept."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from fedgm.errors import FedGMError, require, require_fits
from fedgm.files import write_atomically
from fedgm.plain import plain
from fedgm.results.best_of import BestOf, best_of
from fedgm.results.find import below
from fedgm.results.run import Run, Status
from fedgm.results.summary import DONE
from fedgm.study.points import Job, SweepPlan
from fedgm.study.sweep_progress import Results, targets

BUDGET = 10  # runs of FedAvg's grid: the budget at which algorithms are compared


@dataclass(frozen=True)
class Ranked:
    """A point that ran to its end, and its mean of the last ten evaluations on the choosing seed."""

    job: Job
    run: Run
    score: float


def ranking(results: Results) -> list[Ranked]:
    """Finished points of the first seed, best first; ties go to the lower point."""
    plan = results.plan
    sign = -1.0 if plan.file.goal == "maximize" else 1.0
    finished: list[Ranked] = []
    for job in plan.jobs:
        run = results.of(job) if job.seed == plan.seeds[0] else None
        score = run.score(plan.file.metric) if run is not None and run.status == Status.FINISHED else None
        if run is not None and score is not None:
            finished.append(Ranked(job, run, score))
    return sorted(finished, key=lambda entry: (sign * entry.score, entry.job.point))


def at_budget(results: Results, ranked: list[Ranked]) -> BestOf | None:
    """The best of ``BUDGET`` points drawn from all of them; None until every point is done.

    A point that ended as diverged counts with chance, as in the verdicts of claims.
    """
    plan = results.plan
    first = [results.of(job) for job in plan.jobs if job.seed == plan.seeds[0]]
    done = [run for run in first if run is not None and run.is_done]
    if len(first) <= BUDGET or not ranked or len(done) < len(first):
        return None
    scores = [run.score(plan.file.metric) for run in done]
    return best_of([score for score in scores if score is not None], BUDGET, plan.file.goal)


def other_seeds(winner: Ranked, results: Results) -> dict[int, float]:
    """Scores of the winner on seeds that had no part in choosing it; a diverged run counts with chance."""
    scores: dict[int, float] = {}
    for run in (*results.stored.values(), *below(winner.job.folder.parent)):
        mark, seed = run.key
        score = run.score(results.plan.file.metric) if run.is_done else None
        if mark == winner.job.hash and seed != winner.job.seed and score is not None:
            scores[seed] = score
    return scores


def entry(winner: Ranked, plan: SweepPlan) -> dict[str, Any]:
    """What conf/best keeps of a winner: the values, and where they come from."""
    run = winner.run
    values = {key: run.config.get(f"algorithm.{key}") for key in ("eta", "beta", "nu")}
    return {
        **{key: value for key, value in values.items() if value is not None},
        "sweep": plan.file.name,
        "commit": run.facts["commit"],
        "rounds": run.facts["rounds"],
        "seed": run.facts["seed"],
        "score": round(winner.score, 6),
    }


def require_winner(results: Results) -> Ranked:
    """The winner, if it may be kept: of a whole sweep over (eta, beta, nu), on the seed that chooses."""
    plan, file = results.plan, results.plan.file
    others = [key for key in file.swept if key not in ("algorithm.eta", "algorithm.beta", "algorithm.nu")]
    allowed = "a sweep over algorithm.eta, algorithm.beta and algorithm.nu alone"
    require(not others, "--write", ", ".join(others), allowed, "--best without --write")
    cfg = plan.configs[0]
    allowed = f"no experiment reads winners of {plan.experiment}: it takes those of {cfg.winners}"
    require_fits(
        cfg.winners == plan.experiment, "--write", plan.experiment, allowed, "--best without --write"
    )
    planned = round(cfg.paper_rounds * cfg.profile.rounds_scale)
    rounds = plan.jobs[0].rounds
    require(
        rounds == planned,
        "rounds",
        rounds,
        f"the profile's {planned}: a shorter sweep chooses no winner",
        "no rounds=",
    )
    limits = targets(results)
    open_ = [j for j in plan.jobs if j.seed == plan.seeds[0] and not results.is_through(j, limits[j.key])]
    if ranked := ranking(results) if not open_ else []:
        return ranked[0]
    if not open_:
        raise FedGMError(f"{file.path}: {no_winner(results)}")
    raise FedGMError(
        f"{file.path}: {len(open_)} of {len(plan.jobs)} runs are not done, so there is no winner yet"
    )


def no_winner(results: Results) -> str:
    """Why a sweep without a winner has none, and what to do about it."""
    plan = results.plan
    states = Counter(results.state(job) for job in plan.jobs if job.seed == plan.seeds[0])
    if states[Status.FINISHED]:
        return f"no winner: no finished run has measured {plain(plan.file.metric)}"
    ended = ", ".join(f"{count} {state}" for state, count in sorted(states.items()))
    left = any(state not in DONE for state in states)
    hint = "The same command without --best runs what is left" if left else "Try a sweep of smaller rates"
    return f"no winner: no run of seed {plan.seeds[0]} has finished ({ended}). {hint}"


def write_best(path: Path, plan: SweepPlan, winner: Ranked) -> None:
    """Put the winner into ``conf/best/<profile>.yaml``, beside those that are there.

    A winner that was chosen on another seed stays: choosing and judging are different seeds.
    """
    winners: dict[str, Any] = {}
    if path.exists():
        winners = yaml.safe_load(path.read_text()) or {}
    place = winners.setdefault(plan.experiment, {})
    keys = [plan.algorithm] + ([plan.reading] if plan.reading else [])
    for key in keys[:-1]:
        place = place.setdefault(key, {})
    before, new = place.get(keys[-1]) or {}, entry(winner, plan)
    same = before.get("seed", new["seed"]) == new["seed"]
    where = ".".join([plan.experiment, *keys])
    allowed = f"{where} was chosen on seed {before.get('seed')} and stays"
    require_fits(same, "--seeds", new["seed"], allowed, f"--seeds {before.get('seed')}")
    place[keys[-1]] = new
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, HEADER + _yaml(winners))
    except OSError as error:
        raise FedGMError(f"{path}: {error.strerror}. Use a checkout whose conf/ you may write to") from None


HEADER = """\
# Winners of the grids, by the mean of the last 10 evaluations on one seed: fedgm sweep FILE --best --write
# <experiment>.<algorithm>[.<reading>], for experiments that set `winners`: the paper leaves them open.
"""


def _yaml(winners: Mapping[str, Any]) -> str:
    """A line per winner, sorted, so that files differ only where winners do."""
    lines: list[str] = []

    def walk(node: Mapping[str, Any], depth: int) -> None:
        for key in sorted(node):
            inner = node[key]
            if "sweep" in inner:
                flat = yaml.safe_dump(inner, default_flow_style=True, sort_keys=False, width=1000).strip()
                lines.append(f"{'  ' * depth}{key}: {flat}")
            else:
                lines.append(f"{'  ' * depth}{key}:")
                walk(inner, depth + 1)

    walk(winners, 0)
    return "\n".join(lines) + "\n"
