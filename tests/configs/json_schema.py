"""As much of JSON Schema (draft 7) as W&B's schema of sweep files uses; an unknown keyword raises."""

import re
from collections.abc import Callable, Iterator
from typing import Any

TYPES = {"object": dict, "array": list, "string": str, "number": (int, float), "integer": int}
FORMATS = {"float": float, "integer": int}  # W&B's own two, which tell 1 from 1.0
SILENT = ("$comment", "definitions")


def violations(value: Any, schema: dict[str, Any]) -> list[str]:
    """What is wrong with ``value``, each with its place; nothing where it is valid."""
    return list(_check(value, schema, schema, "file"))


def _check(value: Any, schema: dict[str, Any], root: dict[str, Any], at: str) -> Iterator[str]:
    for keyword, wanted in schema.items():
        if keyword in COMPARED:
            if not COMPARED[keyword](value, wanted):
                yield f"{at}: {value!r} breaks {keyword} {wanted!r}"
        elif keyword == "$ref":
            yield from _check(value, root["definitions"][wanted.rsplit("/", 1)[1]], root, at)
        elif keyword in ("anyOf", "oneOf"):
            fitting = sum(not any(_check(value, option, root, at)) for option in wanted)
            if fitting == 0 or (keyword == "oneOf" and fitting > 1):
                yield f"{at}: {value!r} fits {fitting} of the allowed forms"
        elif keyword in ("properties", "additionalProperties", "propertyNames"):
            if isinstance(value, dict):
                yield from _members(value, keyword, schema, root, at)
        elif keyword not in SILENT:
            raise NotImplementedError(keyword)


def _members(
    value: dict[str, Any], keyword: str, schema: dict[str, Any], root: dict[str, Any], at: str
) -> Iterator[str]:
    """Entries of an object, and their names."""
    wanted, properties = schema[keyword], schema.get("properties", {})
    for name, entry in value.items():
        if keyword == "propertyNames":
            yield from _check(name, wanted, root, f"{at}.{name}")
        elif keyword == "properties" and name in properties:
            yield from _check(entry, properties[name], root, f"{at}.{name}")
        elif keyword == "additionalProperties" and name not in properties:
            if wanted is False:
                yield f"{at}.{name} is not a key of this place"
            else:
                yield from _check(entry, wanted, root, f"{at}.{name}")


def _has_type(value: Any, name: str) -> bool:
    return isinstance(value, TYPES[name]) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    return _has_type(value, "number")


COMPARED: dict[str, Callable[[Any, Any], bool]] = {
    "type": _has_type,
    "enum": lambda value, wanted: value in wanted,
    "format": lambda value, wanted: isinstance(value, FORMATS[wanted]),
    "pattern": lambda value, wanted: re.search(wanted, value) is not None,
    "required": lambda value, wanted: not isinstance(value, dict) or set(wanted) <= set(value),
    "minItems": lambda value, wanted: not isinstance(value, list) or len(value) >= wanted,
    "minProperties": lambda value, wanted: not isinstance(value, dict) or len(value) >= wanted,
    "minimum": lambda value, wanted: not _is_number(value) or value >= wanted,
    "exclusiveMinimum": lambda value, wanted: not _is_number(value) or value > wanted,
}
