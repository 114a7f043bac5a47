"""metrics.jsonl: one row a round, and what a summary says of them."""

import json
import math
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fedgm import intake
from fedgm.results.curve import last10
from fedgm.tasks.metric import HELD_OUT, Row, Scoreboard


def read(path: Path) -> list[Row]:
    """Rows of rounds 1, 2, 3 ... as far as they are whole: up to a cut, garbled, missing or double line."""
    return list(stream(path))


def stream(path: Path) -> Iterator[Row]:
    """The same one by one, in the memory of a row."""
    try:
        for number, line in enumerate(intake.lines(path, sys.maxsize), start=1):
            row = json.loads(line)
            if not _is_row(row, number):
                return
            yield row
    except (OSError, ValueError, RecursionError):
        return


def has_more(path: Path, rows: list[Row]) -> bool:
    """Whether something follows the rows that could be read."""
    return sum(1 for _ in intake.lines(path, sys.maxsize)) > len(rows)


def _is_row(row: Any, number: int) -> bool:
    """Whether it is the row of that round; a damaged file can hold any JSON."""
    if not isinstance(row, dict) or row.get("round") != number or isinstance(row["round"], bool):
        return False
    return all(value is None or is_number(value) for value in row.values())


def is_number(value: Any) -> bool:
    """A finite number; Python counts true as one, and reads Infinity and NaN, which we never write."""
    return type(value) in (int, float) and -sys.float_info.max <= value <= sys.float_info.max


def dump(row: Row) -> str:
    """One line of JSON; what is not a finite number becomes null."""
    clean = {k: v if v is None or math.isfinite(v) else None for k, v in row.items()}
    return json.dumps(clean) + "\n"


def is_evaluation(row: Row) -> bool:
    """Whether the global model was measured on the test set in this round."""
    return any(value is not None and key.startswith("test/") for key, value in row.items())


def summarise(rows: list[Row], board: Scoreboard) -> dict[str, Any]:
    """Final, best and mean of the last ten evaluations, from the rows alone; best by the headline.

    A damaged row may lack a column: None, which no checksum takes for the row that was written.
    """
    measured = list(filter(is_evaluation, rows))
    seconds = sum((row.get("time/round") or 0) + (row.get("time/eval") or 0) for row in rows)
    summary: dict[str, Any] = {"rounds_done": len(rows), "seconds": round(seconds, 3)}
    if not measured:
        return {**summary, "final": None, "best": None, "last10": None}
    columns = (*board.columns, *(key for key in measured[-1] if key.startswith(f"{HELD_OUT}/")))
    sign = 1 if board.judge.better == "higher" else -1
    best = max(measured, key=lambda row: sign * (row.get(board.headline) or 0.0))
    return {
        **summary,
        "final": {"round": measured[-1]["round"], **{k: measured[-1].get(k) for k in columns}},
        "best": {"round": best["round"], **{k: best.get(k) for k in columns}},
        "last10": {k: last10([row.get(k) for row in measured]) for k in columns},
    }
