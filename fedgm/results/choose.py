"""Filter and sort stored runs, and choose which of their metrics to show."""

from collections.abc import Iterable, Sequence
from typing import Any

from fedgm.config.identity import number
from fedgm.errors import RefusedError, near, require
from fedgm.plain import plain
from fedgm.results.run import Run
from fedgm.tasks.metric import HELD_OUT


def value(run: Run, key: str) -> Any:
    """A fact, a configuration key (its last part will do), or last10 of a metric."""
    if key in run.facts:
        return run.facts[key]
    if key in run.config:
        return run.config[key]
    if any(key in row for row in run.evaluations):
        return run.score(key)
    ending = [name for name in run.config if name.rpartition(".")[2] == key]
    return run.config[min(ending, key=len)] if ending else None


def matching(runs: Sequence[Run], conditions: Sequence[str]) -> list[Run]:
    """Runs that meet every ``key=value`` (or ``key<value``, ``key>value``)."""
    for words in conditions:
        sign = next((mark for mark in ("=", "<", ">") if mark in words), None)
        if sign is None:
            raise RefusedError(f"--filter {words}: expected a key and a value. Try --filter algorithm=fedgm")
        key, _, wanted = words.partition(sign)
        _require_a_key(runs, key)
        runs = [run for run in runs if _meets(value(run, key), sign, wanted)]
    return list(runs)


def _require_a_key(runs: Sequence[Run], key: str) -> None:
    """Refuse a key that no run has, and suggest the closest one."""
    names = {name for run in runs for name in (*run.facts, *run.config, *(run.evaluations[-1:] or [{}])[0])}
    names |= {name.rpartition(".")[2] for name in names}
    hint = near(key, sorted(names)) or "algorithm, seed, status, algorithm.eta, test/loss"
    require(not runs or key in names, "key", key, "a key of these runs", hint)


def _meets(value: Any, sign: str, wanted: str) -> bool:
    """Numbers are compared as numbers, anything else as text."""
    try:
        a, b = float(value), float(wanted)
    except (TypeError, ValueError):
        return sign == "=" and str(value).lower() == wanted.lower()
    return a == b if sign == "=" else a < b if sign == "<" else a > b


def order(runs: Sequence[Run], key: str) -> list[Run]:
    """By a key, ascending; ``-key`` descending; runs without it come last."""
    name, down = key.lstrip("-"), key.startswith("-")
    _require_a_key(runs, name)
    having = [run for run in runs if value(run, name) is not None]
    try:
        having.sort(key=lambda run: float(value(run, name)), reverse=down)
    except (TypeError, ValueError):
        having.sort(key=lambda run: str(number(value(run, name))), reverse=down)
    return having + [run for run in runs if value(run, name) is None]


def metrics(runs: Iterable[Run]) -> list[str]:
    """Names of what was measured, in the rows' order: whatever the task has."""
    names = dict.fromkeys(key for run in runs for row in run.evaluations[-1:] for key in row)
    return [key for key in names if key.startswith(("train/", "test/", f"{HELD_OUT}/"))]


def main_metric(runs: Sequence[Run]) -> str | None:
    """The column that judges the runs, or where it was not measured the first of the test data."""
    measured = metrics(runs)
    if runs and runs[0].board.headline in measured:
        return runs[0].board.headline
    return next((name for name in measured if name.startswith("test/")), None)


def goal(run: Run, metric: str) -> str:
    """Which way is better, as the run's task says."""
    return "maximize" if run.board.metric(metric).better == "higher" else "minimize"


def shown(run: Run, metric: str, value: float | None) -> str:
    """A measured value as people read it."""
    return plain(run.board.metric(metric).show(value), 40)
