"""Budgets (docs/claims.md): what the winner's grid would have found with as many runs as FedAvg's had."""

from collections.abc import Sequence

from fedgm.results.best_of import best_of
from fedgm.results.judged_run import JudgedRun

UNEQUAL = "not ahead at equal budget"


def score(run: JudgedRun) -> float | None:
    """Last10 of the judged column, in points; a run that was paused counts with what it has so far."""
    value = run.last10(run.judged)
    return None if value is None else 100 * value


def budget_notes(
    name: str, grid: Sequence[JudgedRun | None], baseline_name: str, baseline: Sequence[JudgedRun | None]
) -> list[str]:
    """The best of a smaller draw from ``grid`` beside the best of ``baseline``, all of seed 0.

    Points that have not been run make the comparison impossible, and the note says how many there are.
    """
    known = {
        who: [(run, value) for run in runs if run is not None and (value := score(run)) is not None]
        for who, runs in ((name, grid), (baseline_name, baseline))
    }
    for who, runs in ((name, grid), (baseline_name, baseline)):
        if not runs or len(known[who]) < len(runs):
            return [
                f"equal budget not known: {len(known[who])} of {len(runs)} points of {who}'s grid are there"
            ]
    scores = [value for _, value in known[name]]
    best = max(value for _, value in known[baseline_name])
    k = len(baseline)
    found = best_of(scores, min(k, len(scores)))
    notes = [
        f"seed 0: best of {found.n}: {found.whole:.1f} %, expected best of {k} of them: {found.mean:.1f} % "
        f"(90 % of draws: {found.low:.1f} to {found.high:.1f}), {baseline_name}'s best of {k}: {best:.1f} %"
    ]
    if len(scores) <= k:
        notes = [f"equal budgets: best of {found.n}: {found.whole:.1f} %, {baseline_name}'s {best:.1f} %"]
    paused = sum(run.status == "paused" for run, _ in known[name])
    if paused:
        notes.append(
            f"{paused} of {found.n} points were paused and count with their score so far, which is too low"
        )
    return notes + ([f"{name}: {UNEQUAL}"] if found.mean <= best else [])
