"""Results of many runs in one small text file: what a figure or a verdict needs, without run folders.

A line of JSON each: first the configuration that most runs share, then a run per line with what differs and
its evaluations by column. Published numbers stay checkable when the machine that made them is gone.
"""

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from fedgm.errors import RefusedError
from fedgm.files import write_atomically
from fedgm.results.rows import Row
from fedgm.results.run import Run
from fedgm.results.summary import STATUSES

FORMAT = "fedgm results, version 1"
DIGITS = 6  # of values that no verdict reads; measured ones are kept exactly


def write(path: Path, stored: Iterable[Run]) -> None:
    """Store the runs, sorted, so that equal runs give equal bytes."""
    runs = sorted(stored, key=lambda run: (run.facts["name"], run.facts["hash"], run.facts["seed"]))
    shared = _most_common([run.config for run in runs])
    lines = [{"format": FORMAT, "config": shared}, *(_line(run, shared) for run in runs)]
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines))


def read(path: Path) -> list[Run]:
    """The runs of a file."""
    if path.exists() and not path.is_file():  # a pipe would never end
        raise RefusedError(f"{path}: stored results cannot be read (not a file)")
    try:
        head, *runs = [json.loads(line) for line in path.read_text().splitlines()]
    except (OSError, ValueError, RecursionError) as error:
        raise RefusedError(f"{path}: stored results cannot be read ({error})") from None
    if not isinstance(head, dict) or head.get("format") != FORMAT:
        raise RefusedError(f"{path}: not a file of stored results (it does not begin with '{FORMAT}')")
    try:
        return [_run(run, head["config"]) for run in runs]
    except (KeyError, TypeError, AttributeError, IndexError) as error:
        reason = f"{type(error).__name__}: {error}"
        raise RefusedError(f"{path}: stored results are damaged ({reason}). Try git checkout") from None


def is_archive(path: Path) -> bool:
    """Whether the file begins as one does: rows of a run are lines of JSON too. A pipe would never end."""
    try:
        if not path.is_file():
            return False
        with path.open("rb") as file:
            return FORMAT.encode() in file.read(len(FORMAT) + 50)
    except OSError:
        return False


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


def _run(line: dict[str, Any], shared: dict[str, Any]) -> Run:
    """What :func:`_line` wrote."""
    table, differs, missing = line.pop("evaluations"), line.pop("config"), line.pop("without")
    if type(line["hash"]) is not str or type(line["seed"]) is not int or line["status"] not in STATUSES:
        raise TypeError("hash, seed or status is not what a run writes")
    config = {k: v for k, v in {**shared, **differs}.items() if k not in missing}
    length = max((len(column) for column in table.values()), default=0)
    evaluations: list[Row] = [{key: column[i] for key, column in table.items()} for i in range(length)]
    if not all(type(row["round"]) is int for row in evaluations):
        raise TypeError("an evaluation without its round")
    return Run(line, config, evaluations)


def _short(key: str, value: Any) -> Any:
    """Measured values as they are, others to a few digits."""
    exact = key.startswith(("train/", "test/")) or not isinstance(value, float)
    return value if exact else float(f"{value:.{DIGITS}g}")
