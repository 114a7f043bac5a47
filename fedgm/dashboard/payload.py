"""What the page is told: runs with their configuration, files and columns, as plain JSON values."""

import json
import math
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any

from fedgm.dashboard import columns
from fedgm.dashboard.collect import Collection, PageRun
from fedgm.results.rows import Row

MOST_POINTS = 1_000_000  # evaluations on a page: beyond, runs are thinned
MOST_VALUES = 4_000_000  # numbers on a page: beyond, only measured columns are kept
MOST_NOTES = 40
SHOWN_FACTS = (
    "seed", "name", "algorithm", "schedule", "participation", "profile", "model", "data", "status", "reason",
    "rounds", "rounds_done", "seconds", "local_steps", "commit",
)  # fmt: skip
Link = Callable[[PageRun], str | None]


def build(
    found: Collection, title: str, link: Link, splits: Sequence[dict[str, Any]] = (), more: Sequence[str] = ()
) -> dict[str, Any]:
    """The whole payload; equal runs give equal values."""
    notes = [*found.left_out, *more]
    tables = [_with_start(run) for run in found.runs]
    most = max(50, MOST_POINTS // max(1, len(tables)))
    long = sum(len(rows) > most for rows in tables)
    if long:
        notes.append(f"{long} runs are drawn with {most} of their evaluations each, evenly spaced")
    tables = [columns.thin(rows, most) for rows in tables]
    everything = sum(len(rows) * len(rows[0]) for rows in tables if rows) <= MOST_VALUES
    if not everything:
        notes.append(
            "norms, drift and other columns of the server: the runs are too many to keep all of them"
        )
    empty = sum(not rows for rows in tables)
    if empty:
        notes.append(f"{empty} runs have no evaluation yet: they are in the table, not in the curves")
    shared = _shared([run.record.config for run in found.runs])
    runs = [
        _run(run, rows, shared, link(run), everything) for run, rows in zip(found.runs, tables, strict=True)
    ]
    return {
        "title": title,
        "config": shared,
        "metrics": _metrics(found.runs),
        "runs": runs,
        "notes": _first(notes),
        "splits": list(splits),
    }


def _metrics(runs: Sequence[PageRun]) -> dict[str, dict[str, Any]]:
    """How each metric is shown, by name: as the first run that describes it does."""
    found: dict[str, dict[str, Any]] = {}
    for run in runs:
        try:
            metrics = run.record.board.metrics
        except (TypeError, ValueError, KeyError, AttributeError):  # a summary from anybody
            continue
        for metric in metrics:
            stated: Any = metric.scale
            scale = stated if isinstance(stated, int | float) else 1.0
            found.setdefault(
                str(metric.name),
                {"label": str(metric.label), "better": str(metric.better), "scale": _plain(scale)},
            )
    return dict(sorted(found.items()))


def _run(
    run: PageRun, rows: list[Row], shared: dict[str, Any], link: str | None, everything: bool
) -> dict[str, Any]:
    facts, config = run.record.facts, _config(run.record.config)
    differs = {key: value for key, value in config.items() if key not in shared or shared[key] != value}
    return {
        **{key: _plain(facts.get(key)) for key in SHOWN_FACTS},
        "hash": run.record.key[0][:8],
        "seconds": _seconds(facts.get("seconds"), rows),
        "ends": _stage_ends(facts.get("stages")),
        "config": differs,
        "without": sorted(key for key in shared if key not in config),
        "points": len(rows),
        "columns": {
            key: columns.encode([row.get(key) for row in rows]) for key in columns.names(rows, everything)
        },
        "staleness": run.staleness,
        "link": link,
        "files": run.files if link is not None else [],
    }


def _with_start(run: PageRun) -> list[Row]:
    """Evaluations, with the model before the first round where it was measured."""
    initial = run.record.facts.get("initial")
    if not isinstance(initial, dict) or not run.evaluations:
        return run.evaluations
    first = run.evaluations[0]
    totals = {key: 0 for key in first if key.startswith("total/") or key == "clock/time"}
    return [{**dict.fromkeys(first), **totals, **initial, "round": 0}, *run.evaluations]


def _seconds(stated: Any, rows: list[Row]) -> float | None:
    """As the summary says; a run under way has only its rows."""
    known = rows[-1].get("total/seconds") if rows else None
    return _plain(stated) or (round(known, 1) if known is not None else None)


def _stage_ends(stages: Any) -> list[int]:
    """Rounds after which a stage ends, the last left out; a schedule without stages has none."""
    if not isinstance(stages, list):
        return []
    rounds = [stage.get("rounds") if isinstance(stage, dict) else None for stage in stages]
    known = [count for count in rounds if isinstance(count, int)]
    return list(accumulate(known))[:-1] if len(known) == len(rounds) else []


def _shared(configs: list[dict[str, Any]]) -> dict[str, Any]:
    """Each key's most frequent value, so that a run carries only what differs."""
    counts: dict[str, Counter[str]] = {}
    for config in configs:
        for key, value in _config(config).items():
            counts.setdefault(key, Counter())[json.dumps(value, sort_keys=True)] += 1
    return {key: json.loads(counts[key].most_common(1)[0][0]) for key in sorted(counts)}


def _config(config: dict[str, Any]) -> dict[str, Any]:
    return {str(key): _plain(config[key]) for key in config}


def _plain(value: Any) -> Any:
    """A value that JSON has: infinite and other foreign values become words."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def _first(notes: list[str]) -> list[str]:
    """As many notes as a reader can take in."""
    if len(notes) <= MOST_NOTES:
        return notes
    return [*notes[:MOST_NOTES], f"and {len(notes) - MOST_NOTES} more"]
