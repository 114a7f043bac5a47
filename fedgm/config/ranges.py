"""What a value of the configuration may be: each check names the key, the value and what to type."""

from collections.abc import Mapping
from math import inf
from typing import Any, cast

from fedgm.errors import require

FLOAT32 = 3.4e38


def one_of(key: str, value: str, *allowed: str) -> None:
    """Range check of a choice."""
    require(value in allowed, key, value, " or ".join(allowed), f"{key}={allowed[0]}")


def at_least(key: str, value: float | None, low: float, example: object) -> None:
    """Range check of a finite number."""
    ok = value is None or low <= value < inf
    require(ok, key, value, f"a number of at least {low}", f"{key}={example}")


def positive(key: str, value: float | None, example: object) -> None:
    """Range check of a finite number above zero."""
    require(value is None or 0 < value < inf, key, value, "a positive number", f"{key}={example}")


def fits_float32(key: str, value: float, example: object) -> None:
    """Torch ends with an error of its own where a factor of a step is larger than its numbers can be."""
    require(
        abs(value) <= FLOAT32,
        key,
        value,
        f"a number of at most {FLOAT32:g}, the largest of a model",
        f"{key}={example}",
    )


def named(key: str, part: object) -> None:
    """A part's name is text: folders, summaries and pictures show it."""
    if isinstance(part, Mapping):
        name = cast(Mapping[str, Any], part).get("name", key)
        ok = isinstance(name, str) and name.isprintable() and name.strip() != ""
        require(ok, key, name, "text", f"{key}=mine")
