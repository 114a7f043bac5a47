"""Stored runs as the rules of docs/claims.md see them."""

from itertools import accumulate

from fedgm.results.judged_run import JudgedRun
from fedgm.results.record import RunRecord
from fedgm.tasks.metric import has_chance_level

CLASSES = 10  # of CIFAR-10, where the configuration does not say


def as_run(found: RunRecord | None, seed: int, judged: str) -> JudgedRun:
    """What the rules need of a record; ``judged`` is the column by which it may count as divergent."""
    if found is None:
        return JudgedRun(seed, "missing")
    rows, facts = found.evaluations, found.facts
    metrics = {key for row in rows for key in row if key.startswith(("train/", "test/"))}
    return JudgedRun(
        seed=seed,
        status=found.status,
        rounds=int(facts["rounds"] or 0),
        every=int(found.config.get("eval.every") or 1),
        measured=tuple(int(row["round"] or 0) for row in rows),
        values={metric: tuple(row.get(metric) for row in rows) for metric in sorted(metrics)},
        ends=stage_ends(found),
        judged=judged,
        classes=int(found.config.get("data.source.classes") or CLASSES) if _has_chance(judged) else None,
    )


def stage_ends(found: RunRecord) -> tuple[int, ...]:
    """Last rounds of the stages, the whole run's included."""
    return tuple(accumulate(int(stage["rounds"]) for stage in found.facts.get("stages") or []))


def _has_chance(column: str) -> bool:
    """Whether the column is of the test set and of a metric for which docs/claims.md defines divergence."""
    split, _, name = column.partition("/")
    return split == "test" and has_chance_level(name)


def is_divergent(found: RunRecord, metric: str) -> bool:
    """As docs/claims.md defines it; metrics without a chance level know only runs that ended as diverged."""
    return as_run(found, found.facts["seed"], metric).is_divergent


def outcome(state: str, found: RunRecord | None, metric: str) -> str:
    """How a run stands; one that finished, but is divergent by docs/claims.md, counts as diverged."""
    lost = state == "finished" and found is not None and is_divergent(found, metric)
    return "diverged" if lost else state


def counted(found: RunRecord, metric: str) -> float | None:
    """Mean of the last ten evaluations; a divergent run counts with chance, or with its untrained model."""
    if _has_chance(metric):
        return as_run(found, found.facts["seed"], metric).last10(metric)
    if is_divergent(found, metric):
        return (found.facts.get("initial") or {}).get(metric)
    return found.mean(metric)
