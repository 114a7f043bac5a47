"""The arrivals of a deployment, once more: the simulator computes the same run, to the same bytes."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fedgm.errors import ConfigError, require_fits
from fedgm.participation.task import Anchor, ClientTask

FILE = "arrivals.jsonl"  # in the folder of the run
LARGEST = 2**28  # bytes


@dataclass(frozen=True)
class Replay:
    """``participation=replay participation.arrivals=RUN``: who came in which round, as RUN has stored it.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as run:
    ...     task = ClientTask(client=7, staleness=0, epochs=3, weight=0.5, began=1)
    ...     _ = (Path(run) / FILE).write_text(row(1, "start", [task], numbers=[0]))
    ...     Replay(run).history, Replay(run).tasks(1) == [task]
    (1, True)
    """

    arrivals: str
    anchor: Anchor = field(init=False)
    rounds: list[list[ClientTask]] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        path = Path(self.arrivals)
        rows = read(path / FILE if path.is_dir() else path)
        object.__setattr__(self, "anchor", rows[0]["anchor"])
        tasks = [[_task(task, t) for task in row["tasks"]] for t, row in enumerate(rows, start=1)]
        object.__setattr__(self, "rounds", tasks)

    @property
    def history(self) -> int:
        """The oldest model that was started from, and all newer ones."""
        return 1 + max(task.staleness for tasks in self.rounds for task in tasks)

    def tasks(self, t: int) -> list[ClientTask]:
        """Those that came in round ``t``."""
        reason = f"{self.arrivals} has the arrivals of {len(self.rounds)} rounds"
        require_fits(t <= len(self.rounds), "rounds", t, reason, f"rounds={len(self.rounds)}")
        return self.rounds[t - 1]

    def log(self, t: int) -> dict[str, float | int]:
        """Nothing that the tasks do not say."""
        return {}


def row(t: int, anchor: Anchor, tasks: list[ClientTask], numbers: list[int]) -> str:
    """A round's line: its tasks, and by which number each arrival was stored."""
    plain = [[task.client, task.staleness, task.epochs, task.weight] for task in tasks]
    return json.dumps({"round": t, "anchor": anchor, "numbers": numbers, "tasks": plain}) + "\n"


def read(path: Path) -> list[dict[str, Any]]:
    """All rounds from 1 on, as far as lines are whole; an error where there is none."""
    try:
        if not path.is_file() or path.stat().st_size > LARGEST:  # a pipe would never end
            raise OSError("it is not a file of arrivals")
        rows = whole_rows(path)
    except OSError as error:
        rows, reason = [], str(error)
    else:
        reason = "no round is stored in it"
    if not rows:
        allowed = f"a run of participation=live, which keeps {FILE} ({reason})"
        raise ConfigError(
            "participation.arrivals", path, allowed, "participation.arrivals=outputs/NAME/RUN/seed=0"
        )
    return rows


def whole_rows(path: Path) -> list[dict[str, Any]]:
    """Rows of rounds 1, 2, 3 ... up to the first that is not whole."""
    rows: list[dict[str, Any]] = []
    for number, line in enumerate(path.read_bytes().splitlines() if path.is_file() else (), start=1):
        try:
            found = json.loads(line)
            good = found["round"] == number and found["anchor"] in ("start", "current")
            tasks = [_task(task, number) for task in found["tasks"]]
        except (ValueError, KeyError, TypeError, RecursionError):
            break
        if not good or not tasks:
            break
        rows.append(found)
    return rows


def _task(values: list[Any], t: int) -> ClientTask:
    client, staleness, epochs, weight = values
    whole = all(type(value) is int and value >= 0 for value in (client, staleness, epochs))
    if not whole or type(weight) not in (int, float) or not 0 <= staleness < t:
        raise ValueError(f"not a task: {values}")
    return ClientTask(client, staleness, epochs, float(weight), began=t - staleness)
