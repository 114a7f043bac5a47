"""The verdict of a figure: every claim with its parts, every line with its numbers, what was not run."""

from collections.abc import Callable, Sequence
from typing import Any

from fedgm.claims import paper
from fedgm.claims.budget import budget_notes
from fedgm.claims.paper import Claim
from fedgm.claims.run import JudgedRun
from fedgm.claims.verdict import Evidence
from fedgm.config.winners import origin
from fedgm.paper import numbers
from fedgm.paper.plan import PlannedFigure

YAML = "of the yaml: not a winner of the grid"
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
                "notes": [*_unchosen(planned), *_budgets(planned, claim, grids)],
            }
        )
    return entries


def unchosen(planned: PlannedFigure) -> list[str]:
    """Lines of a figure of winners whose grid has none yet: they have the values of the yaml."""
    lines = planned.figure.lines if planned.figure.has_winners else ()
    return [line.name for line in lines if YAML in (source(planned, line.key) or "")]


def _unchosen(planned: PlannedFigure) -> list[str]:
    names = unchosen(planned)
    return [f"judged at values that no grid has chosen: {', '.join(names)}"] if names else []


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


def speed_of(
    planned: PlannedFigure, evidence: Evidence, lines: Sequence[dict[str, Any]]
) -> dict[str, Any] | None:
    """Rounds until each line reaches what the lowest of them ends with; shown, never judged."""
    target = numbers.common_target(lines, evidence.measure)
    if target is None or not planned.figure.claims:
        return None
    found = {
        line.key: numbers.rounds_until(evidence.of(line.key), evidence.measure, target)
        for line in planned.figure.lines
    }
    return {"target": target, "rounds": found}


def source(planned: PlannedFigure, key: str) -> str | None:
    """Whether a line has its grid's winner or the yaml's own value; None where the paper gives the values."""
    if not planned.figure.has_winners:
        return None
    cfg = planned.config(key)
    algorithm = cfg.algorithm
    words = f"eta {algorithm.eta:g}, beta {algorithm.beta:g}, nu {algorithm.nu:g}"
    found = origin(cfg.best, cfg.winners, algorithm, cfg.participation.get("anchor")) or ""
    return f"{words} ({found if found.startswith('winner') else YAML})"


def missing(evidence: Evidence, planned: PlannedFigure) -> list[str]:
    """Runs of the figure that cannot be drawn or judged."""
    return evidence.absent(*(line.key for line in planned.figure.lines))


def companions(planned: PlannedFigure) -> list[str]:
    """Other experiments whose lines the claims need."""
    wanted = {name for claim in paper.claims(planned.figure.claims) for name in claim.figures}
    return sorted(wanted - {planned.figure.experiment})
