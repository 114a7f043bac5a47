"""Which runs a command is about: folders of runs, folders above them, files of stored results."""

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from fedgm.config.identity import number
from fedgm.errors import RefusedError, require
from fedgm.results import archive, record
from fedgm.results.record import RunRecord


def find(places: Iterable[str | Path]) -> list[RunRecord]:
    """All runs of the places, each once; a place without any is an error."""
    found: dict[tuple[str, int], RunRecord] = {}
    for place in map(Path, places):
        folders = record.below(place) if place.is_dir() else []
        runs = archive.once([*folders, *archive.below(place)])
        if not runs:
            raise RefusedError(
                f"{place}: no run in there. Try outputs, outputs/NAME/RUN/seed=0 or a file of --export"
            )
        found |= {run.key: run for run in runs if run.key not in found}
    return list(found.values())


def one(place: str | Path) -> RunRecord:
    """The run of a folder; of several below it none is chosen."""
    path = Path(place)
    found = record.from_folder(path)
    if found is None:
        below = record.below(path) if path.is_dir() else []
        if len(below) == 1:
            return below[0]
        near = f"Try {below[0].folder}" if below else "Try outputs/NAME/RUN/seed=0"
        raise RefusedError(f"{path} is not the folder of one run ({len(below)} below it). {near}")
    return found


def value(run: RunRecord, key: str) -> Any:
    """A fact, a configuration key (its last part will do), or last10 of a metric."""
    if key in run.facts:
        return run.facts[key]
    if key in run.config:
        return run.config[key]
    if any(key in row for row in run.evaluations):
        return run.mean(key)
    near = [name for name in run.config if name.rpartition(".")[2] == key]
    return run.config[min(near, key=len)] if near else None


def matching(runs: Sequence[RunRecord], conditions: Sequence[str]) -> list[RunRecord]:
    """Runs that meet every ``key=value`` (or ``key<value``, ``key>value``)."""
    for words in conditions:
        sign = next((mark for mark in ("=", "<", ">") if mark in words), None)
        if sign is None:
            raise RefusedError(f"--filter {words}: a key and a value. Try --filter algorithm=fedgm")
        key, _, wanted = words.partition(sign)
        _require_known(runs, key)
        runs = [run for run in runs if _meets(value(run, key), sign, wanted)]
    return list(runs)


def _require_known(runs: Sequence[RunRecord], key: str) -> None:
    """Refuse a key that no run has, with the near one."""
    known = {name for run in runs for name in (*run.facts, *run.config, *(run.evaluations[-1:] or [{}])[0])}
    short = {name.rpartition(".")[2] for name in known}
    near = get_close_matches(key, sorted(known | short), n=1)
    hint = near[0] if near else "algorithm, seed, status, algorithm.eta, test/loss"
    require(not runs or key in known | short, "key", key, "a key of these runs", hint)


def _meets(found: Any, sign: str, wanted: str) -> bool:
    """Numbers are compared as numbers, anything else as text."""
    try:
        a, b = float(found), float(wanted)
    except (TypeError, ValueError):
        return sign == "=" and str(found).lower() == wanted.lower()
    return a == b if sign == "=" else a < b if sign == "<" else a > b


def order(runs: Sequence[RunRecord], key: str) -> list[RunRecord]:
    """By a key, ascending; ``-key`` descending; runs without it come last."""
    name, down = key.lstrip("-"), key.startswith("-")
    _require_known(runs, name)
    having = [run for run in runs if value(run, name) is not None]
    try:
        having.sort(key=lambda run: float(value(run, name)), reverse=down)
    except (TypeError, ValueError):
        having.sort(key=lambda run: str(number(value(run, name))), reverse=down)
    return having + [run for run in runs if value(run, name) is None]


def metrics(runs: Iterable[RunRecord]) -> list[str]:
    """Names of what was measured, in the rows' order: whatever the task has."""
    names = dict.fromkeys(key for run in runs for row in run.evaluations[-1:] for key in row)
    return [key for key in names if key.startswith(("train/", "test/"))]


def main_metric(runs: Sequence[RunRecord]) -> str | None:
    """The column that judges the runs, or where it was not measured the first of the test data."""
    known = metrics(runs)
    if runs and runs[0].board.headline in known:
        return runs[0].board.headline
    return next((name for name in known if name.startswith("test/")), None)


def goal(run: RunRecord, metric: str) -> str:
    """Which way is better, as the run's task says."""
    return "maximize" if run.board.metric(metric).better == "higher" else "minimize"


def shown(run: RunRecord, metric: str, value: float | None) -> str:
    """A measured value as people read it."""
    return run.board.metric(metric).show(value)
