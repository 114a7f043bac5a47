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


def draw(node: Mapping[str, Any], number: int, place: int) -> Any:
    """The value of one parameter at point ``number``."""
    return DISTRIBUTIONS[kind(node)](node, generator(0, "sweep", number, place))


def _rounded(value: float, step: float) -> float:
    """The nearest multiple of ``step``."""
    return round(value / step) * step
