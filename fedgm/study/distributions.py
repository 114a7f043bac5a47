"""Random search: a point's values from W&B's distributions, by (point, parameter) alone."""

from collections.abc import Callable, Mapping
from math import exp, log
from typing import Any

import numpy as np

from fedgm.draws import generator

Draw = Callable[[Mapping[str, Any], np.random.Generator], Any]

DISTRIBUTIONS: dict[str, Draw] = {
    "constant": lambda node, rng: node["value"],
    "categorical": lambda node, rng: node["values"][int(rng.integers(len(node["values"])))],
    "uniform": lambda node, rng: float(rng.uniform(node["min"], node["max"])),
    "int_uniform": lambda node, rng: int(rng.integers(node["min"], node["max"] + 1)),
    "q_uniform": lambda node, rng: _rounded(float(rng.uniform(node["min"], node["max"])), node.get("q", 1)),
    "log_uniform": lambda node, rng: exp(float(rng.uniform(node["min"], node["max"]))),
    "log_uniform_values": lambda node, rng: exp(float(rng.uniform(log(node["min"]), log(node["max"])))),
    "normal": lambda node, rng: float(rng.normal(node.get("mu", 0.0), node.get("sigma", 1.0))),
}
KEYS_OF = {
    "constant": ("value",),
    "categorical": ("values",),
    "q_uniform": ("min", "max", "q"),
    "normal": ("mu", "sigma"),
}
KEYS = ("value", "values", "distribution", "min", "max", "q", "mu", "sigma")  # of any distribution


def kind(node: Mapping[str, Any]) -> str:
    """The distribution that W&B reads from an entry: its name, or what the entry's keys imply."""
    if "distribution" in node:
        return str(node["distribution"])
    if "value" in node:
        return "constant"
    if "values" in node:
        return "categorical"
    whole = isinstance(node.get("min"), int) and isinstance(node.get("max"), int)
    return "int_uniform" if whole else "uniform"


def keys_of(node: Mapping[str, Any]) -> tuple[str, ...]:
    """What an entry may say, by its distribution: another key would change nothing."""
    return ("distribution", *KEYS_OF.get(kind(node), ("min", "max")))


def misses(node: Mapping[str, Any]) -> str:
    """What an entry lacks for its distribution, or nothing."""
    name = kind(node)
    if name in ("constant", "categorical"):
        key = "value" if name == "constant" else "values"
        return "" if key in node else f"{name} needs {key}:"
    if not all(isinstance(node.get(key, 1), int | float) for key in ("q", "mu", "sigma")):
        return f"{name} needs numbers"
    if name == "normal":
        return "" if node.get("sigma", 1) >= 0 else "normal needs sigma: of 0 or more"
    low, high = node.get("min"), node.get("max")
    if not (isinstance(low, int | float) and isinstance(high, int | float)):
        return f"{name} needs numbers as min: and max:"
    if low >= high or (name == "log_uniform_values" and low <= 0):
        return "min below max" + (", both above 0" if name == "log_uniform_values" else "")
    return "" if node.get("q", 1) > 0 else f"{name} needs q: above 0"


def draw(node: Mapping[str, Any], number: int, place: int) -> Any:
    """The value of one parameter at point ``number``."""
    return DISTRIBUTIONS[kind(node)](node, generator(0, "sweep", number, place))


def _rounded(value: float, step: float) -> float:
    """The nearest multiple of ``step``."""
    return round(value / step) * step
