"""Results of many runs in one small text file: what a figure or a verdict needs, without run folders.

A line of JSON each: first the configuration that most runs share, then a run per line with what differs and
its evaluations by column. Published numbers stay checkable when the machine that made them is gone.
"""

import json
import sys
from collections import Counter
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any

from fedgm import intake
from fedgm.errors import RefusedError
from fedgm.files import write_atomically
from fedgm.results import shape
from fedgm.results.rows import Row, is_number
from fedgm.results.run import Run
from fedgm.results.summary import is_run
from fedgm.tasks.metric import HELD_OUT

FORMAT = "fedgm results, version 1"
LARGEST = 2**30  # bytes; a thousand runs have a few million
DIGITS = 6  # of values that no verdict reads; measured ones are kept exactly


def write(path: Path, stored: Iterable[Run]) -> None:
    """Store the runs, sorted, so that equal runs give equal bytes."""
    runs = sorted(stored, key=lambda run: (str(run.facts["name"]), run.facts["hash"], run.facts["seed"]))
    shared = _most_common([run.config for run in runs])
    lines = [{"format": FORMAT, "config": shared}, *(_line(run, shared) for run in runs)]
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines))


def read(path: Path) -> list[Run]:
    """The runs of a file."""
    shared: dict[str, Any] | None = None
    runs: list[Run] = []
    try:
        for number, line in enumerate(intake.lines(path, LARGEST), start=1):
            content = intake.from_json(line)
            if shared is None:
                shared = _shared(content)
                continue
            try:
                runs.append(_run(content, shared))
            except (KeyError, TypeError) as error:
                raise intake.UnfitFileError(f"line {number}: {error}") from None
    except (OSError, ValueError) as error:
        raise RefusedError(f"{path}: stored results are damaged ({error}). Try git checkout") from None
    if shared is None:
        raise RefusedError(f"{path}: not a file of stored results (it is empty)")
    return runs


def is_archive(path: Path) -> bool:
    """Whether the file begins as one does: rows of a run are lines of JSON too."""
    try:
        with intake.opened(path, sys.maxsize) as file:
            return FORMAT.encode() in file.read(len(FORMAT) + 50)
    except (OSError, ValueError):
        return False


def _shared(head: Any) -> dict[str, Any]:
    """The configuration that most runs share, from the first line."""
    if not isinstance(head, dict) or head.get("format") != FORMAT:
        raise intake.UnfitFileError(f"not a file of stored results: it does not begin with '{FORMAT}'")
    if not isinstance(head.get("config"), dict):
        raise intake.UnfitFileError("line 1: config is not a set of keys")
    return head["config"]


def _most_common(configs: list[dict[str, Any]]) -> dict[str, Any]:
    """Each key's most frequent value; JSON text, because lists cannot be counted."""
    shared: dict[str, Any] = {}
    for key in sorted({key for config in configs for key in config}):
        counts = Counter(json.dumps(config[key]) for config in configs if key in config)
        shared[key] = json.loads(counts.most_common(1)[0][0])
    return shared


def _line(run: Run, shared: dict[str, Any]) -> dict[str, Any]:
    """A run's facts, the configuration where it differs, and its evaluations by column."""
    differs = {k: v for k, v in sorted(run.config.items()) if k not in shared or shared[k] != v}
    missing = sorted(key for key in shared if key not in run.config)
    columns = {key: None for row in run.evaluations for key in row}
    table = {key: [_short(key, row.get(key)) for row in run.evaluations] for key in columns}
    facts = {**run.facts, "seconds": round(run.facts.get("seconds") or 0.0, 1)}
    return {**facts, "config": differs, "without": missing, "evaluations": table}


def _run(line: Any, shared: dict[str, Any]) -> Run:
    """What :func:`_line` wrote; a TypeError says what is of the wrong kind."""
    if not isinstance(line, dict):
        raise TypeError("a run has keys")
    table, differs, missing = line["evaluations"], line["config"], line["without"]
    if not isinstance(differs, dict) or not isinstance(missing, list):
        raise TypeError("config or without is not what is written there")
    facts = shape.facts_of(line)
    if not shape.is_summary(facts) or not is_run(facts):
        raise TypeError("hash, seed, status or another fact is not what a run writes")
    config = {k: v for k, v in {**shared, **differs}.items() if k not in missing}
    return Run(facts, config, _rows(table))


def _rows(table: Any) -> list[Row]:
    """Columns of equal length as rows: numbers, and rounds that increase."""
    if not isinstance(table, dict) or not all(isinstance(column, list) for column in table.values()):
        raise TypeError("evaluations are not columns")
    rounds = table.get("round", [])
    if not all(len(column) == len(rounds) for column in table.values()):
        raise TypeError("columns of different lengths, or no rounds")
    if not all(type(t) is int for t in rounds) or any(a >= b for a, b in pairwise([-1, *rounds])):
        raise TypeError("rounds do not increase")
    if not all(value is None or is_number(value) for column in table.values() for value in column):
        raise TypeError("an evaluation is not a number")
    return [{key: column[i] for key, column in table.items()} for i in range(len(rounds))]


def _short(key: str, value: Any) -> Any:
    """Measured values as they are, others to a few digits."""
    exact = key.startswith(("train/", "test/", f"{HELD_OUT}/")) or not isinstance(value, float)
    return value if exact else float(f"{value:.{DIGITS}g}")
