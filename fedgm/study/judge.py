"""The verdict of a figure: every claim with its parts, every line with its numbers, what was not run."""

from collections.abc import Callable
from typing import Any

from fedgm.config.winners import origin
from fedgm.results.judged_run import JudgedRun
from fedgm.study import claims, numbers
from fedgm.study.budgets import budget_notes
from fedgm.study.claims import Claim
from fedgm.study.figure_runs import PlannedFigure
from fedgm.study.verdict import Evidence

Grids = Callable[[str], list[JudgedRun | None]]


def judge(planned: PlannedFigure, evidence: Evidence, grids: Grids) -> list[dict[str, Any]]:
    """An entry for each claim that the figure judges."""
    entries: list[dict[str, Any]] = []
    for claim in claims.claims(planned.figure.claims):
        verdict, parts = claim.judge(evidence)
        entries.append(
            {
                "claim": claim.name,
                "text": claim.text,
                "verdict": verdict,
                "parts": [part.as_dict() for part in parts],
                "notes": [*_not_winners_note(planned), *_budgets(planned, claim, grids)],
            }
        )
    return entries


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


def _budgets(planned: PlannedFigure, claim: Claim, grids: Grids) -> list[str]:
    """What a search of FedAvg's size would have found, for lines that are winners of grids."""
    lines = {line.key: line for line in planned.figure.lines}
    notes: list[str] = []
    for key, baseline in claim.budgets:
        one, other = lines[key], lines[baseline]
        if one.grid and other.grid:
            notes += budget_notes(one.name, grids(one.grid), other.name, grids(other.grid))
    return notes


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
            "last10": numbers.last10(evidence.of(line.key), evidence.measure),
            "final": numbers.final(evidence.of(line.key), evidence.measure),
        }
        for line in planned.figure.lines
    ]


def speed_of(planned: PlannedFigure, evidence: Evidence) -> dict[str, Any] | None:
    """Rounds until each line reaches what the lowest of them ends with; shown, never judged."""
    runs = {line.key: evidence.of(line.key) for line in planned.figure.lines}
    target = numbers.common_target(list(runs.values()), evidence.measure) if planned.figure.claims else None
    if target is None:
        return None
    found = {key: numbers.rounds_until(own, evidence.measure, target) for key, own in runs.items()}
    return {"target": target, "rounds": found}


def source(planned: PlannedFigure, key: str) -> str | None:
    """Whether a line has its grid's winner or the yaml's own value; None where the paper gives the values."""
    if not planned.figure.has_winners:
        return None
    cfg = planned.config(key)
    algorithm = cfg.algorithm
    words = f"eta {algorithm.eta:g}, beta {algorithm.beta:g}, nu {algorithm.nu:g}"
    found = _origin(planned, key)
    return f"{words} ({found if found.startswith('winner') else 'not a winner of the grid'})"


def missing(evidence: Evidence, planned: PlannedFigure) -> list[str]:
    """Runs of the figure that cannot be drawn or judged."""
    return evidence.absent(*(line.key for line in planned.figure.lines))


def companions(planned: PlannedFigure) -> list[str]:
    """Other experiments whose lines the claims need."""
    wanted = {name for claim in claims.claims(planned.figure.claims) for name in claim.figures}
    return sorted(wanted - {planned.figure.experiment})
