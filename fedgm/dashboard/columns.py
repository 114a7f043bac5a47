"""Columns of a run in few bytes: a constant, a progression, or base64 of 32-bit floats.

500 runs of 1,000 evaluations are 16 MB in this form and are decoded one column at a time, when it is drawn.
"""

import math
from base64 import b64encode
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedgm.results.columns import Rows

Encoded = str | list[float | None]  # base64, [constant] or [first, step]
ALWAYS = ("test/", "train/", "total/")


def encode(values: Sequence[Any]) -> Encoded:
    """The shortest form; values that are not finite numbers become NaN, and null if all are."""
    numbers = _numbers(values)
    if np.isnan(numbers).all():
        return [None]
    first = float(numbers[0])
    if (numbers == first).all():
        return [first]
    step = float(numbers[1]) - first
    if (numbers == first + step * np.arange(len(numbers))).all():
        return [first, step]
    with np.errstate(over="ignore"):
        return b64encode(numbers.astype("<f4").tobytes()).decode()


def thin(rows: Rows, most: int) -> Rows:
    """At most ``most`` rows, evenly spaced, the first and the last among them."""
    if len(rows) <= most:
        return rows
    places = [round(i * (len(rows) - 1) / (most - 1)) for i in range(most)]
    return Rows(rows[place] for place in places)


def names(rows: Rows, everything: bool) -> list[str]:
    """Columns to keep: what was measured and what can be an x-axis, or all."""
    columns = dict.fromkeys(key for row in rows for key in row)
    kept = [key for key in columns if everything or key.startswith(ALWAYS) or key in ("round", "clock/time")]
    return sorted(kept)


def _numbers(values: Sequence[Any]) -> NDArray[np.float64]:
    """Numbers only: words and lists become NaN."""
    try:
        numbers = np.array(values, dtype=np.float64)  # None becomes NaN
    except (TypeError, ValueError, OverflowError):
        kept = (value if isinstance(value, float) or type(value) is int else None for value in values)
        numbers = np.array([math.nan if value is None else float(value) for value in kept])
    return np.where(np.isfinite(numbers), numbers, math.nan)
