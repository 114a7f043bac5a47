"""Columns of a run in few bytes: a constant, a progression, or base64 of 32-bit floats.

500 runs of 1,000 evaluations are 16 MB in this form and are decoded one column at a time, when it is drawn.
"""

import math
from base64 import b64encode
from collections.abc import Sequence
from typing import Any

import numpy as np

from fedgm.track.rows import Row

Encoded = str | list[float | None]  # base64, [constant] or [first, step]
ALWAYS = ("test/", "train/", "total/")


def encode(values: Sequence[Any]) -> Encoded:
    """The shortest form; what is no finite number becomes NaN, and null where all are."""
    numbers = [_number(value) for value in values]
    if all(math.isnan(x) for x in numbers):
        return [None]
    if all(x == numbers[0] for x in numbers):
        return [numbers[0]]
    step = numbers[1] - numbers[0]
    if all(numbers[i] == numbers[0] + i * step for i in range(len(numbers))):
        return [numbers[0], step]
    with np.errstate(over="ignore"):
        return b64encode(np.asarray(numbers, dtype="<f4").tobytes()).decode()


def thin(rows: list[Row], most: int) -> list[Row]:
    """At most ``most`` rows, evenly spaced, the first and the last among them."""
    if len(rows) <= most:
        return rows
    places = [round(i * (len(rows) - 1) / (most - 1)) for i in range(most)]
    return [rows[place] for place in places]


def names(rows: list[Row], everything: bool) -> list[str]:
    """Columns to keep: what was measured and what can be an x-axis, or all."""
    found = dict.fromkeys(key for row in rows for key in row)
    kept = [key for key in found if everything or key.startswith(ALWAYS) or key in ("round", "clock/time")]
    return sorted(kept)


def _number(value: Any) -> float:
    """Numbers alone: true, words and lists are none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return math.nan
    return float(value) if math.isfinite(value) else math.nan
