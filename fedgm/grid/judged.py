"""Stored runs as the rules of docs/claims.md see them."""

from itertools import accumulate

from fedgm.claims.run import TEST, Run
from fedgm.track.record import RunRecord

CLASSES = 10  # of CIFAR-10, where the configuration does not say


def as_run(found: RunRecord | None, seed: int) -> Run:
    """What the rules need of a record."""
    if found is None:
        return Run(seed, "missing")
    rows, facts = found.evaluations, found.facts
    metrics = {key for row in rows for key in row if key.startswith(("train/", "test/"))}
    return Run(
        seed=seed,
        status=found.status,
        rounds=int(facts["rounds"]),
        every=int(found.config.get("eval.every") or 1),
        measured=tuple(int(row["round"] or 0) for row in rows),
        values={metric: tuple(row.get(metric) for row in rows) for metric in sorted(metrics)},
        ends=stage_ends(found),
        classes=int(found.config.get("data.source.classes") or CLASSES),
    )


def stage_ends(found: RunRecord) -> tuple[int, ...]:
    """Last rounds of the stages, the whole run's included."""
    return tuple(accumulate(int(stage["rounds"]) for stage in found.facts.get("stages") or []))


def is_divergent(found: RunRecord, metric: str) -> bool:
    """As docs/claims.md defines it for test accuracy; other metrics know only runs that ended as diverged."""
    if metric == TEST:
        return as_run(found, found.facts["seed"]).is_divergent
    return found.status == "diverged"


def counted(found: RunRecord, metric: str) -> float | None:
    """Mean of the last ten evaluations; a divergent run counts with chance, or with its untrained model."""
    if metric == TEST:
        return as_run(found, found.facts["seed"]).last10(TEST)
    if is_divergent(found, metric):
        return (found.facts.get("initial") or {}).get(metric)
    return found.mean(metric)
