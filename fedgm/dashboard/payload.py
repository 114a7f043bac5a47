"""What the page is told: runs with their configuration, files and columns, as plain JSON values."""

import json
import math
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import accumulate, chain
from pathlib import Path
from typing import Any

from fedgm.config.identity import IMPLIED, counted
from fedgm.dashboard import columns
from fedgm.dashboard.collect import Collection, is_plain
from fedgm.dashboard.problems import choosers, problems
from fedgm.results.columns import Rows
from fedgm.results.labels import NAMES, PLAIN
from fedgm.results.rows import Row
from fedgm.results.run import Key, Run

MOST_POINTS = 1_000_000  # evaluations on a page: beyond, runs are thinned
MOST_VALUES = 4_000_000  # numbers on a page: beyond, only measured columns are kept
MOST_NOTES, MOST_NAMES = 40, 3
MOST_STAGES = 6  # whose etas are said in a label
SHOWN_FACTS = (
    "seed", "name", "algorithm", "schedule", "participation", "profile", "model", "data", "status", "reason",
    "rounds", "rounds_done", "seconds", "local_steps", "commit",
)  # fmt: skip
FILES = ("summary.json", "config.yaml", "metrics.jsonl", "curves.png", "timeline.png", "model.safetensors")
Link = Callable[[Run], str | None]


def build(
    collection: Collection,
    title: str,
    link: Link,
    splits: Sequence[dict[str, Any]] = (),
    more: Sequence[str] = (),
) -> dict[str, Any]:
    """The whole payload; equal runs give equal values."""
    notes = [*_left_out(collection), *more]
    tables = [_with_start(run) for run in collection.runs]
    most = max(50, MOST_POINTS // max(1, len(tables)))
    long = sum(len(rows) > most for rows in tables)
    if long:
        notes.append(f"{long} runs are drawn with only {most} of their evaluations each, evenly spaced")
    tables = [columns.thin(rows, most) for rows in tables]
    everything = sum(len(rows) * len(rows[0]) for rows in tables if rows) <= MOST_VALUES
    if not everything:
        notes.append("norms, drift and other server columns: there are too many runs to keep them")
    empty = sum(not rows for rows in tables)
    if empty:
        notes.append(f"{empty} runs have no evaluation yet: they are in the table, not in the curves")
    configs = _configs(collection.runs)
    shared = _shared(configs)
    groups = problems(collection.runs)
    problem_of = {run.key: number for number, group in enumerate(groups) for run in group.runs}
    chosen = set[Key]().union(*(choosers(group) for group in groups))
    runs = [
        {
            **_run(run, rows, everything),
            **_differs(config, shared),
            "problem": problem_of[run.key],
            "chose": run.key in chosen,
            "link": (address := link(run)),
            "files": files(run.folder) if address is not None else [],
        }
        for run, rows, config in zip(collection.runs, tables, configs, strict=True)
    ]
    return {
        "title": title,
        "config": shared,
        "problems": [{"id": group.id, "label": group.label} for group in groups],
        "names": {
            name: NAMES[name] for name in sorted({str(run["algorithm"]) for run in runs}) if name in NAMES
        },
        "plain": PLAIN,
        "metrics": _metrics(collection.runs),
        "runs": runs,
        "notes": _first(notes),
        "splits": list(splits),
    }


def _metrics(runs: Sequence[Run]) -> dict[str, dict[str, Any]]:
    """How each metric is shown, by name: as the first run that describes it does."""
    described: dict[str, dict[str, Any]] = {}
    for run in runs:
        try:
            metrics = run.board.metrics
        except (TypeError, ValueError, KeyError, AttributeError):  # a summary from anybody
            continue
        for metric in metrics:
            stated: Any = metric.scale
            scale = stated if isinstance(stated, int | float) else 1.0
            described.setdefault(
                str(metric.name),
                {"label": str(metric.label), "better": str(metric.better), "scale": _plain(scale)},
            )
    return dict(sorted(described.items()))


def _run(run: Run, rows: Rows, everything: bool) -> dict[str, Any]:
    facts, names = run.facts, columns.names(rows, everything)
    return {
        **{key: _plain(facts.get(key)) for key in SHOWN_FACTS},
        "hash": run.key[0][:8],
        "seconds": _seconds(facts.get("seconds"), rows),
        "ends": _stage_ends(facts.get("stages")),
        "etas": _stage_etas(facts.get("stages")),
        "points": len(rows),
        "columns": {key: columns.encode(rows.column(key)) for key in names},
        "scores": {key: _plain(run.score(key)) for key in names},
        "finals": {key: _plain(run.final(key)) for key in names},
        "staleness": _histogram(run.rows or run.evaluations),
    }


def _differs(config: dict[str, Any], shared: dict[str, Any]) -> dict[str, Any]:
    """What a configuration has that the shared one has not, and what it lacks."""
    differs = {key: value for key, value in config.items() if key not in shared or shared[key] != value}
    return {"config": differs, "without": sorted(key for key in shared if key not in config)}


def files(folder: Path | None) -> list[str]:
    """What the page offers of a run's folder: regular files, no links."""
    return [name for name in FILES if folder is not None and is_plain(folder / name)]


def _with_start(run: Run) -> Rows:
    """Evaluations, with the model before the first round where it was measured."""
    initial, evaluations = run.facts.get("initial"), _with_seconds(run)
    if not isinstance(initial, dict) or not evaluations:
        return evaluations
    first = evaluations[0]
    totals = {key: 0 for key in first if key.startswith("total/") or key == "clock/time"}
    return Rows(chain([{**dict.fromkeys(first), **totals, **initial, "round": 0}], evaluations))


def _with_seconds(run: Run) -> Rows:
    """Evaluations with the wall time until then, where every row has one."""
    seconds, at = 0.0, dict[Any, float]()
    for row in run.rows:
        if row.get("time/round") is None:
            return Rows(run.evaluations)
        seconds += float(row["time/round"] or 0) + float(row.get("time/eval") or 0)
        at[row["round"]] = seconds
    return Rows({**row, "total/seconds": at[row["round"]]} if at else row for row in run.evaluations)


def _histogram(rows: Sequence[Row]) -> list[tuple[float, int]]:
    """How many rounds had which mean staleness; nothing where no model was ever stale."""
    values = [row.get("cohort/staleness") for row in rows]
    counts = Counter(round(float(value), 2) for value in values if value is not None)
    return sorted(counts.items()) if any(value > 0 for value in counts) else []


def _seconds(stated: Any, rows: Rows) -> float | None:
    """As the summary says; a run under way has only its rows."""
    elapsed = rows[-1].get("total/seconds") if rows else None
    return _plain(stated) or (round(elapsed, 1) if elapsed is not None else None)


def _stage_ends(stages: Any) -> list[int]:
    """Rounds after which a stage ends, the last left out; a schedule without stages has none."""
    if not isinstance(stages, list):
        return []
    rounds = [stage.get("rounds") if isinstance(stage, dict) else None for stage in stages]
    lengths = [count for count in rounds if isinstance(count, int)]
    return list(accumulate(lengths))[:-1] if len(lengths) == len(rounds) else []


def _stage_etas(stages: Any) -> list[float]:
    """The eta of each stage, where there are a few different ones: a label says them."""
    if not isinstance(stages, list) or not 1 < len(stages) <= MOST_STAGES:
        return []
    etas = [stage.get("eta") if isinstance(stage, dict) else None for stage in stages]
    numbers = [float(eta) for eta in etas if isinstance(eta, int | float) and math.isfinite(eta)]
    return numbers if len(numbers) == len(etas) and len(set(numbers)) > 1 else []


def _configs(runs: Sequence[Run]) -> list[dict[str, Any]]:
    """Configurations as far as they count: without what cannot change a result or follows the seed.

    A key that is younger than a run has the value that was implied before.
    """
    values = [counted(run.config, run.seed, run.facts) for run in runs]
    keys = {key for config in values for key in config} & IMPLIED.keys()
    implied = {key: IMPLIED[key] for key in keys}
    return [{str(key): _plain(value) for key, value in {**implied, **config}.items()} for config in values]


def _shared(configs: list[dict[str, Any]]) -> dict[str, Any]:
    """Each key's most frequent value, so that a run carries only what differs."""
    counts: dict[str, Counter[str]] = {}
    for config in configs:
        for key, value in config.items():
            counts.setdefault(key, Counter())[json.dumps(value, sort_keys=True)] += 1
    return {key: json.loads(counts[key].most_common(1)[0][0]) for key in sorted(counts)}


def _plain(value: Any) -> Any:
    """A value that JSON has: infinite and other foreign values become words."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def _left_out(collection: Collection) -> list[str]:
    """Each reason once, with a few of the names that it is about."""
    notes: list[str] = []
    for reason, names in collection.left_out.items():
        more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
        count = f" ({len(names)})" if len(names) > 1 else ""
        notes.append(f"{reason}{count}: {', '.join(names[:MOST_NAMES])}{more}")
    return notes


def _first(notes: list[str]) -> list[str]:
    """As many notes as a reader can take in."""
    if len(notes) <= MOST_NOTES:
        return notes
    return [*notes[:MOST_NOTES], f"and {len(notes) - MOST_NOTES} more"]
