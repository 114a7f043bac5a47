"""The points of a sweep as pictures need them: which keys vary, which point is best, how to name things."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from fedgm.plain import plain
from fedgm.results.curve import sign

Mark = Literal["finished", "near chance", "diverged", "paused", "running", "waiting", "failed"]
Value = float | str
WORD = 40  # characters of a key or a value on an axis
SYMBOLS = {"algorithm.eta": "η", "algorithm.beta": "β", "algorithm.nu": "ν", "data.alpha": "α"}


@dataclass(frozen=True)
class Point:
    """One run of a sweep, as far as it has come."""

    number: int
    values: dict[str, Value]
    status: Mark
    score: float | None  # mean of the last 10 evaluations
    final: float | None
    rounds_done: int
    rounds: int

    @property
    def scored(self) -> bool:
        """Whether the score counts: what a diverged run measured before its end does not."""
        measured = self.score is not None and math.isfinite(self.score)
        return measured and self.status in ("finished", "near chance", "paused", "running")

    @property
    def ended(self) -> bool:
        """Whether it was measured at its end: only then it can be compared with others."""
        return self.scored and self.status in ("finished", "near chance")


def swept(points: Sequence[Point]) -> list[str]:
    """Keys with more than one value, in the order in which the points have them."""
    keys = dict.fromkeys(key for point in points for key in point.values)
    return [key for key in keys if len(levels(points, key)) > 1]


def levels(points: Sequence[Point], key: str) -> list[Value]:
    """The values of a key: numbers by size, then words in order of appearance."""
    seen = dict.fromkeys(point.values[key] for point in points if key in point.values)
    numbers = sorted(value for value in seen if not isinstance(value, str))
    return [*numbers, *(value for value in seen if isinstance(value, str))]


def scores(points: Sequence[Point]) -> list[float]:
    """The scores that count."""
    return [point.score for point in points if point.scored and point.score is not None]


def coloured(points: Sequence[Point]) -> list[float]:
    """The scores that a colour scale is for: at the end, and not near chance."""
    return scores([point for point in points if point.status == "finished"])


def is_whole(points: Sequence[Point]) -> bool:
    """Whether no point was stopped on the way: else statistics describe which ones were."""
    return not any(point.status in ("paused", "running") for point in points)


def best(points: Sequence[Point], goal: str) -> Point | None:
    """The point with the best score at its end; of equals the lower number."""
    way = sign(goal)
    ended = [point for point in points if point.ended]
    return min(ended, key=lambda point: (-way * (point.score or 0.0), point.number), default=None)


def limits(values: Sequence[float], goal: str) -> tuple[float, float]:
    """Ends of a colour scale: the best value, and a worse end that a few bad runs cannot stretch.

    The scale reaches at most four times as far below the best as the median does.
    """
    way = sign(goal)
    ranked = sorted(way * value for value in values)
    if not ranked or ranked[0] == ranked[-1]:
        middle = way * ranked[0] if ranked else 0.5
        spread = abs(middle) / 20 or 0.05
        return middle - spread, middle + spread
    top, median = ranked[-1], ranked[len(ranked) // 2]
    bottom = max(ranked[0], top - 4 * (top - median)) if median < top else ranked[0]
    return (bottom, top) if way > 0 else (-top, -bottom)


def label(key: str, keys: Sequence[str]) -> str:
    """The paper's symbol, or the last part of the key where that is unmistakable among ``keys``."""
    if key in SYMBOLS:
        return SYMBOLS[key]
    short = key.rsplit(".", 1)[-1]
    clear = sum(other.rsplit(".", 1)[-1] == short for other in keys) == 1
    return plain(short if clear else key, WORD)


def shown(value: Value) -> str:
    """A value as it is written on an axis."""
    numeric = isinstance(value, int | float) and not isinstance(value, bool)
    return f"{value:.4g}" if numeric else plain(value, WORD)


def named(values: Mapping[str, Value], keys: Sequence[str]) -> str:
    """Keys and values in words, as in "η = 2, β = 0.9"."""
    return ", ".join(f"{label(key, keys)} = {shown(value)}" for key, value in values.items())


def described(point: Point, keys: Sequence[str]) -> str:
    """The swept values of a point, as in a sentence."""
    return named({key: point.values[key] for key in keys if key in point.values}, keys)
