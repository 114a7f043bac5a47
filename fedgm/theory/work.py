"""Local work and ages of a run, read off the very tasks that its participation scheme hands out.

So K, tau and m are those of the configured run, whatever the scheme: the partition's sizes, the batch size
and the law of the epochs are all in the tasks.
"""

from collections import Counter
from collections.abc import Sequence
from math import isclose
from typing import NamedTuple

from fedgm.participation import ClientTask, Participation
from fedgm.participation.task import Steps
from fedgm.theory.setting import Setting

TASKS = 20_000  # as many are looked at; 4,000 rounds of the paper


class Work(NamedTuple):
    """What the theorems need to know of who does how much; ``factor`` multiplies the etas of Theorem 3."""

    m: int
    K: int
    K_law: tuple[tuple[int, float], ...]  # empty: Alg. 3
    tau: int
    factor: float
    spread: tuple[float, float]  # the smallest and the largest w_i K_i, of which ``factor`` is the mean
    notes: tuple[str, ...]


def local_work(scheme: Participation, steps: Steps, rounds: int) -> Work:
    """Alg. 3 where nobody is late and all do the same epochs unweighted, else Alg. 4.

    m is the smallest cohort, since fewer clients make a larger bound. Theorem 3 divides an update by its K;
    what a run does instead, w_i delta_i = (w_i K_i) delta_i / K_i, is a factor of its etas. Clients with
    different w_i K_i are weighed unequally, so that the run does not minimise f: no theorem holds then.
    """
    cohorts = _cohorts(scheme, rounds)
    tasks = [task for cohort in cohorts for task in cohort]
    counts = [steps(task.client, task.epochs) for task in tasks]
    factors = [task.weight * K for task, K in zip(tasks, counts, strict=True)]
    K, factor = sum(counts) / len(counts), sum(factors) / len(factors)
    m, tau = min(map(len, cohorts)), scheme.history - 1
    spread, notes = (min(factors), max(factors)), _cut(len(cohorts), rounds)
    if not isclose(*spread):
        uneven = f"updates count as {spread[0]:.3g} to {spread[1]:.3g} times delta/K, {factor:.3g} on average"
        notes = (*notes, f"{uneven}, which stands in the bound. local.unit=steps makes them equal.")
    if tau == 0 and len({task.epochs for task in tasks}) == 1 and all(task.weight == 1 for task in tasks):
        return Work(m, round(K), (), 0, factor, spread, notes)
    law = tuple((K, seen / len(counts)) for K, seen in sorted(Counter(counts).items()))
    return Work(m, round(K), law, tau, factor, spread, notes)


def setting(work: Work, n: int, eta_l: float, stages: Sequence[tuple[int, float, float, float]]) -> Setting:
    """The theorems' setting of a run with this work."""
    plain = Setting(n, work.m, work.K, eta_l, stages, work.tau, work.K_law, work.spread, work.notes)
    return plain.scaled(work.factor) if work.K_law else plain


def arrives_uniformly(scheme: Participation) -> bool:
    """Whether every client is as likely as any other to be averaged; an unknown scheme may do anything."""
    return bool(getattr(scheme, "arrives_uniformly", False))


def _cohorts(scheme: Participation, rounds: int) -> list[list[ClientTask]]:
    """The rounds' tasks from the first on, until ``TASKS`` of them were seen."""
    cohorts, seen = list[list[ClientTask]](), 0
    for t in range(1, rounds + 1):
        cohorts.append(scheme.tasks(t))
        seen += len(cohorts[-1])
        if seen >= TASKS:
            break
    return cohorts


def _cut(looked_at: int, rounds: int) -> tuple[str, ...]:
    """Say so where not all rounds were looked at."""
    return () if looked_at == rounds else (f"K is that of the first {looked_at} of {rounds} rounds.",)
