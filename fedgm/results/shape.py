"""What readers of a summary take for granted; a damaged file can hold any JSON."""

from collections.abc import Callable
from typing import Any

from fedgm.results.rows import is_number

ROUNDS = 10**8  # of one run, at most


def _is_word(value: Any) -> bool:
    return isinstance(value, str)


def _is_seed(value: Any) -> bool:
    return type(value) is int and 0 <= value < 2**63


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value <= ROUNDS


def _are_numbers(value: Any) -> bool:
    return isinstance(value, dict) and all(v is None or is_number(v) for v in value.values())


def _are_words(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(v, str) for v in value.values())


def _are_metrics(value: Any) -> bool:
    """Entries with the fields of a Metric, each of its kind."""
    kinds: dict[str, Callable[[Any], bool]] = dict.fromkeys(("name", "label", "unit", "better"), _is_word)
    kinds["scale"] = is_number
    return isinstance(value, list) and all(
        isinstance(entry, dict)
        and {"name", "label"} <= entry.keys() <= kinds.keys()
        and all(kinds[key](entry[key]) for key in entry)
        for entry in value
    )


def _are_stages(value: Any) -> bool:
    return isinstance(value, list) and all(
        _are_numbers(stage) and _is_count(stage.get("rounds")) for stage in value
    )


# Key -> what it holds where it is there and not null.
KEYS: dict[str, Callable[[Any], bool]] = {
    **dict.fromkeys(("status", "name", "algorithm", "schedule", "participation", "profile"), _is_word),
    **dict.fromkeys(
        ("model", "data", "task", "hash", "folder", "reason", "commit", "origin", "metric"), _is_word
    ),
    **dict.fromkeys(("rounds", "rounds_done", "classes"), _is_count),
    "seed": _is_seed,
    **dict.fromkeys(("final", "best", "last10", "initial", "last"), _are_numbers),
    **dict.fromkeys(("gain", "seconds", "local_steps"), is_number),
    **dict.fromkeys(("versions", "digests", "contents"), _are_words),
    "fixed_seeds": lambda value: isinstance(value, list),
    "stages": _are_stages,
    "metrics": _are_metrics,
}
# What tells a run apart, how it ended, and with which program.
FACTS = (
    "hash", "name", "algorithm", "schedule", "participation", "profile", "model", "data", "classes", "seed",
    "rounds", "task", "metric", "metrics", "origin", "fixed_seeds", "contents",
    "status", "reason", "rounds_done", "initial", "local_steps", "stages", "seconds", "commit", "versions",
)  # fmt: skip
# Without these a command can neither show nor continue its run.
NEEDED = ("status", "name", "algorithm", "seed", "rounds", "rounds_done", "seconds")


def facts_of(content: dict[str, Any]) -> dict[str, Any]:
    """What a stored run keeps of a summary; None where it does not say."""
    return {key: content.get(key) for key in FACTS}


def is_complete(content: dict[str, Any]) -> bool:
    """Whether a summary has everything that the command of a run writes, however the run ended."""
    return all(content.get(key) is not None for key in NEEDED) and {"final", "best", "last10"} <= set(content)


def is_summary(content: dict[str, Any]) -> bool:
    """Whether every key that readers use holds a value of the right kind."""
    if (content.get("metrics") is None) != (content.get("metric") is None):
        return False
    return all(content.get(key) is None or holds(content[key]) for key, holds in KEYS.items())
