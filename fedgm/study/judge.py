"""The verdict of a figure: every claim with its parts, every line with its numbers, what was not run."""

import math
from collections.abc import Callable, Sequence
from statistics import mean, stdev
from typing import Any, NamedTuple

from fedgm.config.winners import origin
from fedgm.results.best_of import budget_notes
from fedgm.results.curve import rounds_to
from fedgm.results.interval import Pooled, pool
from fedgm.results.run import Key, Run
from fedgm.study.claim_parts import Better, Part
from fedgm.study.claims import Claim
from fedgm.study.figure_runs import PlannedFigure
from fedgm.study.verdict import Evidence, PartResult, shown
from fedgm.tasks.metric import SPLITS, TEST, Column, Metric

Grids = Callable[[str], list[Run | None]]


class JudgedPart(NamedTuple):
    """A part with its result and its entry in verdict.json, which the pooled interval joins later."""

    part: Part
    result: PartResult
    entry: dict[str, Any]


def judge(
    planned: PlannedFigure, evidence: Evidence, grids: Grids
) -> tuple[list[dict[str, Any]], list[JudgedPart]]:
    """An entry for each claim that the figure judges, and all their parts."""
    entries, parts = list[dict[str, Any]](), list[JudgedPart]()
    for claim in planned.figure.claims:
        verdict, results = claim.judge(evidence.on(planned.judging))
        made = [
            JudgedPart(part, result, result.as_dict())
            for part, result in zip(claim.parts, results, strict=True)
        ]
        entry: dict[str, Any] = {
            "claim": claim.name,
            "text": claim.text,
            "verdict": verdict,
            "parts": [part.entry for part in made],
            "notes": [*_not_winners_note(planned), *_budgets(planned, claim, grids, evidence.metric)],
        }
        if planned.added and planned.first:
            alone = claim.judge(evidence.on(planned.added))[0]
            entry["added seeds"] = {"seeds": list(planned.added), "verdict": alone}
        entries.append(entry)
        parts += made
    return entries, parts


def add_pooled(parts: Sequence[JudgedPart], run_of: Callable[[Key], Key]) -> dict[str, Any]:
    """Put the interval by the pooled variance beside each part in last10; what each variance rests on.

    Of parts that share a run only the first counts; ``run_of`` names the longer run that one was read from.
    """
    said: dict[str, Any] = {}
    for split in SPLITS:
        of_split = [one for one in parts if one.result.comparison and one.result.comparison.split == split]
        used, groups = set[Key](), list[Sequence[float]]()
        for one in of_split:
            assert one.result.comparison is not None
            runs = {run_of(key) for key in one.result.comparison.runs}
            if len(one.result.comparison.differences) > 1 and not runs & used:
                used |= runs
                groups.append(one.result.comparison.differences)
        if (variance := pool(groups)) is None:
            continue
        said[split] = {
            "deviation": math.sqrt(variance.variance),
            "df": variance.df,
            "comparisons": variance.groups,
            "p": variance.p,
        }
        for one in of_split if variance.allowed else ():
            one.entry["pooled"] = _pooled(one, variance)
    return said


def _pooled(one: JudgedPart, variance: Pooled) -> dict[str, Any] | None:
    """The second interval of a part, and what it would decide."""
    part, result = one.part, one.result
    if not isinstance(part, Better) or not result.comparison or not result.comparison.differences:
        return None
    interval = variance.interval(result.comparison.differences)
    open_ = result.missing or result.notes or interval.n < 2
    return {**shown(interval, result.unit), "verdict": "undecided" if open_ else part.decide(interval)}


def not_winners(planned: PlannedFigure) -> list[str]:
    """Lines of a figure of winners that have other values: of the yaml, or typed by the user."""
    lines = planned.figure.lines if planned.figure.has_winners else ()
    return [line.name for line in lines if not _origin(planned, line.key).startswith("winner")]


def _not_winners_note(planned: PlannedFigure) -> list[str]:
    names = not_winners(planned)
    return [f"judged at values that no grid has chosen: {', '.join(names)}"] if names else []


def _origin(planned: PlannedFigure, key: str) -> str:
    cfg = planned.config(key)
    return origin(cfg.best, cfg.winners, cfg.algorithm, cfg.participation) or ""


def _budgets(planned: PlannedFigure, claim: Claim, grids: Grids, metric: Metric) -> list[str]:
    """The expected best of a search of FedAvg's size, for lines that are winners of grids."""
    lines = {line.key: line for line in planned.figure.lines if line.grid}
    column, notes = Column(metric.column(TEST), metric), list[str]()
    for key, baseline in claim.budgets:
        if (one := lines.get(key)) and (other := lines.get(baseline)):
            grid, other_grid = grids(one.grid or ""), grids(other.grid or "")
            notes += budget_notes(one.name, grid, other.name, other_grid, column)
    return notes


def lines_of(planned: PlannedFigure, evidence: Evidence) -> list[dict[str, Any]]:
    """Each line with its values, where they come from, the state of its seeds and its numbers."""
    entries: list[dict[str, Any]] = []
    for line in planned.figure.lines:
        runs = evidence.on(planned.judging).of(line.key)
        done = [run for run in runs if run.is_done]
        columns = sorted({key for run in done for row in run.evaluations for key in row if _is_metric(key)})
        last10 = {column: over_seeds([run.score(column) for run in done]) for column in columns}
        entries.append(
            {
                "key": line.key,
                "name": line.name,
                "overrides": " ".join(line.overrides),
                "values": source(planned, line.key),
                "seeds": {str(run.seed): "near chance" if run.near_chance else run.status for run in runs},
                "last10": {column: entry for column, entry in last10.items() if entry},
                "final": over_seeds([run.final(evidence.metric.column(TEST)) for run in done]),
            }
        )
    return entries


def _is_metric(key: str) -> bool:
    return key.startswith(tuple(f"{split}/" for split in SPLITS))


def over_seeds(values: Sequence[float | None]) -> dict[str, Any] | None:
    """Mean and deviation of what the seeds have."""
    finite = [value for value in values if value is not None]
    if not finite:
        return None
    deviation = stdev(finite) if len(finite) > 1 else None
    return {"mean": mean(finite), "deviation": deviation, "seeds": len(finite)}


def speed_of(planned: PlannedFigure, evidence: Evidence) -> dict[str, Any] | None:
    """Rounds until each line reaches what the lowest of them ends with; shown, never judged."""
    column = evidence.metric.column(TEST)
    lines = {line.key: evidence.on(planned.judging).of(line.key) for line in planned.figure.lines}
    done = {key: [run for run in runs if run.is_done] for key, runs in lines.items()}
    target = common_target(list(done.values()), column) if planned.figure.claims else None
    if target is None:
        return None
    return {"target": target, "rounds": {key: _until(runs, column, target) for key, runs in done.items()}}


def common_target(lines: Sequence[Sequence[Run]], column: str) -> float | None:
    """A test score that lines reach: the lowest of their last10, down to a whole number of percent.

    Lines with a run that diverged or ended near chance are left out: chance is not a target.
    """
    healthy = [runs for runs in lines if not any(run.is_divergent or run.near_chance for run in runs)]
    scores = [over_seeds([run.score(column) for run in runs]) for runs in healthy]
    means = [entry["mean"] for entry in scores if entry]
    return math.floor(round(100 * min(means), 9)) / 100 if means and min(means) >= 0.01 else None


def _until(runs: Sequence[Run], column: str, target: float) -> dict[str, Any]:
    """Mean round of the first evaluation at the target, over the seeds that reached it."""
    measured = [run for run in runs if any(row.get(column) is not None for row in run.evaluations)]
    rounds = [None if run.is_divergent else rounds_to(*run.curve(column), target) for run in measured]
    reached = [t for t in rounds if t is not None]
    return {"mean": mean(reached) if reached else None, "reached": len(reached), "seeds": len(measured)}


def source(planned: PlannedFigure, key: str) -> str | None:
    """Whether a line has its grid's winner or a value of the yaml; None where the paper gives the values."""
    if not planned.figure.has_winners:
        return None
    algorithm, chosen = planned.config(key).algorithm, _origin(planned, key)
    words = f"eta {algorithm.eta:g}, beta {algorithm.beta:g}, nu {algorithm.nu:g}"
    return f"{words} ({chosen if chosen.startswith('winner') else 'not a winner of the grid'})"


def companions(planned: PlannedFigure) -> list[str]:
    """Other experiments whose lines the claims need."""
    wanted = {name for claim in planned.figure.claims for name in claim.figures}
    return sorted(wanted - {planned.figure.experiment})
