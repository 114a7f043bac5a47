"""The verdict of a figure: every claim with its parts, every line with its numbers, what was not run."""

from collections.abc import Callable, Sequence
from math import sqrt
from typing import Any

from fedgm.claims import paper
from fedgm.claims.budget import budget_notes
from fedgm.claims.paper import Claim
from fedgm.claims.run import JudgedRun, Measure
from fedgm.claims.verdict import Evidence
from fedgm.config.winners import origin
from fedgm.paper.plan import PlannedFigure

Grids = Callable[[str], list[JudgedRun | None]]


def judge(planned: PlannedFigure, evidence: Evidence, grids: Grids) -> list[dict[str, Any]]:
    """An entry for each claim that the figure judges."""
    entries: list[dict[str, Any]] = []
    for claim in paper.claims(planned.figure.claims):
        verdict, parts = claim.judge(evidence)
        entries.append(
            {
                "claim": claim.name,
                "text": claim.text,
                "verdict": verdict,
                "parts": [part.as_dict() for part in parts],
                "notes": _budgets(planned, claim, grids),
            }
        )
    return entries


def _budgets(planned: PlannedFigure, claim: Claim, grids: Grids) -> list[str]:
    """What a search of FedAvg's size would have found, for lines that are winners of grids."""
    lines = {line.key: line for line in planned.figure.lines}
    notes: list[str] = []
    for key, baseline in claim.budgets:
        one, other = lines[key], lines[baseline]
        if one.grid and other.grid:
            notes += budget_notes(one.name, grids(one.grid), other.name, grids(other.grid))
    return notes


def numbers(runs: Sequence[JudgedRun], measure: Measure) -> dict[str, Any]:
    """Mean and deviation over seeds of the last ten evaluations of each metric."""
    judged = [run for run in runs if run.is_judged]
    metrics = sorted({metric for run in judged for metric in run.values})
    table: dict[str, Any] = {}
    for metric in metrics:
        counts_lost = metric.endswith(f"/{measure.name}")  # a loss that ran away has no mean worth showing
        known = [run.last10(metric) for run in judged if counts_lost or not run.is_divergent]
        values = [value for value in known if value is not None]
        if values:
            mean = sum(values) / len(values)
            spread = (
                sqrt(sum((v - mean) ** 2 for v in values) / (len(values) - 1)) if len(values) > 1 else None
            )
            table[metric] = {"mean": mean, "deviation": spread, "seeds": len(values)}
    return table


def lines_of(planned: PlannedFigure, evidence: Evidence) -> list[dict[str, Any]]:
    """Each line with its values, where they come from, the state of its seeds and its numbers."""
    return [
        {
            "key": line.key,
            "name": line.name,
            "overrides": " ".join(line.overrides),
            "values": source(planned, line.key),
            "seeds": {
                str(run.seed): "divergent" if run.is_judged and run.is_divergent else run.status
                for run in evidence.of(line.key)
            },
            "last10": numbers(evidence.of(line.key), evidence.measure),
        }
        for line in planned.figure.lines
    ]


def source(planned: PlannedFigure, key: str) -> str | None:
    """Whether a line has its grid's winner or the yaml's own value; None where the paper gives the values."""
    if not planned.figure.has_winners:
        return None
    cfg = planned.config(key)
    algorithm = cfg.algorithm
    words = f"eta {algorithm.eta:g}, beta {algorithm.beta:g}, nu {algorithm.nu:g}"
    found = origin(cfg.best, cfg.winners, algorithm, cfg.participation.get("anchor")) or ""
    return f"{words} ({found if found.startswith('winner') else 'of the yaml: not a winner of the grid'})"


def missing(evidence: Evidence, planned: PlannedFigure) -> list[str]:
    """Runs of the figure that cannot be drawn or judged."""
    return evidence.absent(*(line.key for line in planned.figure.lines))


def companions(planned: PlannedFigure) -> list[str]:
    """Other experiments whose lines the claims need."""
    wanted = {name for claim in paper.claims(planned.figure.claims) for name in claim.figures}
    return sorted(wanted - {planned.figure.experiment})
