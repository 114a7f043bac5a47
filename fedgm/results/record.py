"""RunRecord: what is known of a run, read from its folder or from an archive of many."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any
from warnings import warn

import yaml

from fedgm.config.identity import dotted, identity_of_stored
from fedgm.config.trust import text_of
from fedgm.lock import is_alive
from fedgm.results import rows, summary
from fedgm.results.rows import Row
from fedgm.tasks.metric import Scoreboard, scoreboard

DONE = ("finished", "diverged")
# Of the summary: what tells a run apart, how it ended, and with which program.
FACTS = (
    "hash", "name", "algorithm", "schedule", "participation", "profile", "model", "data", "seed", "rounds",
    "task", "metric", "metrics", "origin",
    "fixed_seeds", "contents",
    "status", "reason", "rounds_done", "initial", "local_steps", "stages", "seconds", "commit", "versions",
)  # fmt: skip
NOT_STORED = ("output_dir", "rerun", "stop_after", "track", "best", "winners", "figure", "checkpoint")


@dataclass(frozen=True)
class RunRecord:
    """A run's facts, its configuration with dotted keys, and the rows in which the model was measured."""

    facts: dict[str, Any]
    config: dict[str, Any]
    evaluations: list[Row] = field(repr=False)
    folder: Path | None = None  # None: it comes from an archive

    @cached_property
    def key(self) -> tuple[str, int]:
        """What a run is found by, computed from its configuration: the hash in its summary may be older."""
        return identity_of_stored(self.config, self.facts), self.facts["seed"]

    @property
    def status(self) -> str:
        """As in summary.json; a run that says `running` while nobody works on it was killed."""
        return self.facts["status"]

    @property
    def board(self) -> Scoreboard:
        """How its metrics are shown, and which of them judges it."""
        return scoreboard({key: value for key, value in self.facts.items() if value is not None})

    @property
    def is_done(self) -> bool:
        """Whether nothing is left to run."""
        return self.status in DONE

    def mean(self, metric: str, until: int | None = None) -> float | None:
        """Mean of the last ten evaluations up to round ``until``, or of all where there are fewer."""
        values = [
            row.get(metric) for row in self.evaluations if until is None or (row["round"] or 0) <= until
        ]
        known = [value for value in values[-rows.LAST :] if value is not None]
        return sum(known) / len(known) if known and len(known) == len(values[-rows.LAST :]) else None

    def last(self, metric: str) -> float | None:
        """The value at the last evaluation."""
        return self.evaluations[-1].get(metric) if self.evaluations else None


def from_folder(folder: Path) -> RunRecord | None:
    """The record of a run folder; None where there is none that can be read."""
    found = with_rows(folder)
    return found[0] if found is not None else None


def with_rows(folder: Path) -> tuple[RunRecord, list[Row]] | None:
    """The record and every row, with what a clock says; None where there is none that can be read."""
    known = summary.read(folder)
    if any(known.get(key) is None for key in ("hash", "seed", "status")):
        return None
    own = rows.read(folder / "metrics.jsonl")
    facts = {key: known.get(key) for key in FACTS} | {"rounds_done": len(own)}
    facts["status"] = status_now(folder, known, own)
    return RunRecord(facts, configuration(folder), _measured(own), folder), own


def status_now(folder: Path, known: dict[str, Any], own: list[Row]) -> Any:
    """The status of a summary, unless the folder shows that it is no longer true."""
    status = known.get("status")
    if status == "running" and not is_alive(folder):
        return "killed"  # the same command continues it
    if status in DONE and not summary.is_whole(folder, known, own):
        return "damaged"  # its command says what is missing, and what to type
    return status


def below(output_dir: Path) -> list[RunRecord]:
    """All runs below a folder; what cannot be read is left out, with a warning."""
    found = {path.parent: from_folder(path.parent) for path in sorted(output_dir.rglob("summary.json"))}
    if lost := [str(folder) for folder, record in found.items() if record is None]:
        warn(f"left out, because summary.json is damaged: {', '.join(lost)}", stacklevel=2)
    return [record for record in found.values() if record is not None]


def _measured(own: list[Row]) -> list[Row]:
    """Evaluation rows with local steps and bytes added up until there, without what a clock says."""
    steps, sent, measured = 0, 0, list[Row]()
    for row in own:
        steps += int(row.get("cohort/steps") or 0)
        sent += int(row.get("bytes/up") or 0)
        if any(key.startswith("test/") and value is not None for key, value in row.items()):
            kept = {k: v for k, v in row.items() if not k.startswith("time/") and k != "samples_per_s"}
            measured.append({**kept, "total/steps": steps, "total/bytes": sent})
    return measured


def configuration(folder: Path) -> dict[str, Any]:
    """config.yaml with dotted keys."""
    try:
        content = yaml.safe_load(text_of(folder / "config.yaml"))
    except (OSError, ValueError, RecursionError, yaml.YAMLError):
        return {}
    if not isinstance(content, dict):
        return {}
    return dotted({k: v for k, v in content.items() if k not in NOT_STORED})


def mean_steps(runs: Iterable[RunRecord]) -> str:
    """K as a caption says it: the least and the largest of the runs' means; nothing where none is known."""
    known = sorted(float(run.facts["local_steps"]) for run in runs if run.facts.get("local_steps"))
    ends = dict.fromkeys(f"{steps:.1f}" for steps in (known[:1] + known[-1:]))
    return f", K = {' to '.join(ends)} local steps on average" if known else ""
