"""A W&B sweep file as data: checked before the first run, with the key and what to write instead."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from pathlib import Path
from typing import Any, Literal, cast

from fedgm import intake
from fedgm.config.options import conf_dir
from fedgm.errors import ClashError, ConfigError, RefusedError, near, require, require_fits
from fedgm.results.curve import SCORE
from fedgm.study import distributions
from fedgm.study.distributions import DISTRIBUTIONS, draw, keys_of, kind, misses
from fedgm.study.rungs import Halving

KEYS = (
    "program", "project", "entity", "name", "description", "method", "metric", "parameters", "command",
    "early_terminate", "run_cap",
)  # fmt: skip
METRIC = ("name", "goal", "target", "impute")  # the last two are for W&B's server alone
MACROS = ("${env}", "${interpreter}", "${program}", "${args_no_hyphens}")
Value = float | int | str | bool | None
LARGEST = 2**20  # bytes of a sweep file
MOST = 10_000  # points of a sweep


@dataclass(frozen=True)
class SweepFile:
    """What `fedgm sweep` needs of the file; ``fixed`` are the overrides of its command."""

    path: Path
    name: str
    method: Literal["grid", "random"]
    metric: str
    goal: Literal["maximize", "minimize"]
    fixed: tuple[str, ...]
    points: tuple[dict[str, Value], ...]
    halving: Halving | None
    place: str = "parameters"  # where the points are in it

    @property
    def swept(self) -> list[str]:
        """Keys that have more than one value over the points."""
        return [key for key in self.points[0] if len({point[key] for point in self.points}) > 1]


def read(path: Path) -> SweepFile:
    """The checked file; raises :class:`ConfigError` for the first thing that cannot be run."""
    path = located(path)
    content = _content(path)
    _require_keys(f"{path.name}: ", content, KEYS)
    method = content.get("method")
    if method == "bayes":
        allowed = "grid or random: a Bayesian search needs W&B's server"
        raise ConfigError(f"{path.name}: method", method, allowed, f"wandb sweep {path}, then wandb agent")
    hint = f"method: {near(str(method), ('grid', 'random')) or 'grid'}"
    require(method in ("grid", "random"), f"{path.name}: method", method, "grid or random", hint)
    metric, goal = metric_of(path, content)
    return SweepFile(
        path, str(content.get("name") or path.stem), cast(Any, method), metric, cast(Any, goal),
        _fixed(path, content), _points(path, content, str(method)), _halving(path, content),
    )  # fmt: skip


def located(path: Path) -> Path:
    """The file, or the bundled sweep of that name: ``fedgm_grid``, ``sweeps/fedgm_grid.yaml``."""
    ours = conf_dir().parent / "sweeps" / f"{path.name.removesuffix('.yaml')}.yaml"
    return ours if path.parts[:-1] in ((), ("sweeps",)) and not path.exists() and ours.exists() else path


def bundled() -> list[str]:
    """Names of the sweeps that come with the package."""
    return sorted(path.stem for path in (conf_dir().parent / "sweeps").glob("*.yaml"))


def _require_keys(place: str, node: Mapping[str, Any], allowed: Sequence[str]) -> None:
    """Refuse a misspelt key: what it was meant to say would be ignored."""
    for key in node:
        closest = near(str(key), allowed)
        hint = f"{closest}: as the key" if closest else "without it"
        require(key in allowed, f"{place}{key}", "(unknown key)", ", ".join(allowed), hint)


def _content(path: Path) -> dict[str, Any]:
    """The yaml as it stands."""
    try:
        content = intake.from_yaml(intake.read_text(path, LARGEST))
    except OSError as error:
        hint = near(path.stem, bundled()) or "fedgm_grid"
        allowed = f"a file, or one of {', '.join(bundled())}"
        raise RefusedError(f"{path}: {error.strerror}: expected {allowed}. Try {hint}") from None
    except intake.UnfitFileError as error:
        raise RefusedError(f"{path}: not a sweep file ({error}). Try fedgm_grid") from None
    require(isinstance(content, dict), str(path), type(content).__name__, "a W&B sweep file", "method: grid")
    return cast(dict[str, Any], content)


def metric_of(path: Path, content: dict[str, Any]) -> tuple[str, str]:
    """Name and goal of what is compared."""
    metric = content.get("metric")
    key, example = f"{path.name}: metric", "metric: {name: test/loss, goal: minimize}"
    ok = isinstance(metric, dict) and isinstance(metric.get("name"), str)
    if isinstance(metric, dict):
        _require_keys(f"{key}.", cast(dict[str, Any], metric), METRIC)
    require(ok, key, metric, "the name of a measured value", example)
    goal = cast(dict[str, Any], metric).get("goal", "minimize")  # W&B's default
    require(goal in ("maximize", "minimize"), f"{key}.goal", goal, "maximize or minimize", example)
    return cast(dict[str, Any], metric)["name"].removeprefix(SCORE), goal  # ranked by last10 in any case


def _fixed(path: Path, content: dict[str, Any]) -> tuple[str, ...]:
    """The overrides that the command gives to every run: what is neither a macro nor `python`."""
    command = content.get("command") or MACROS
    words = [str(word) for word in command] if isinstance(command, list | tuple) else []
    require(
        "${args_no_hyphens}" in words, f"{path.name}: command", command,
        "a list with ${args_no_hyphens}: Hydra takes key=value, not --key=value",
        'command: ["${env}", "${interpreter}", "${program}", "${args_no_hyphens}"]',
    )  # fmt: skip
    return tuple(word for word in words if word not in MACROS and "=" in word)


def _points(path: Path, content: dict[str, Any], method: str) -> tuple[dict[str, Value], ...]:
    """Every combination of a grid, in the file's order; or ``run_cap`` random draws."""
    parameters = content.get("parameters")
    key, example = f"{path.name}: parameters", "algorithm.eta: {values: [0.5, 1.0]}"
    require(isinstance(parameters, dict) and bool(parameters), key, parameters, "at least one key", example)
    parameters = cast(dict[str, Any], parameters)
    for name, node in parameters.items():
        _check_parameter(f"{key}.{name}", name, node, method)
    if method == "grid":
        values = [_values(node) for node in parameters.values()]
        _require_count(path, prod(map(len, values)), "parameters", "fewer values, or method: random")
        return tuple(dict(zip(parameters, combination, strict=True)) for combination in product(*values))
    cap = content.get("run_cap")
    ok = type(cap) is int and cap >= 1
    require(ok, f"{path.name}: run_cap", cap, "how many points a random search draws", "run_cap: 20")
    _require_count(path, cast(int, cap), "run_cap", "run_cap: 20")
    return tuple(_drawn(path, parameters, number) for number in range(cast(int, cap)))


def _require_count(path: Path, count: int, key: str, hint: str) -> None:
    """Refuse more points than anybody can run, before any of them is made."""
    require(count <= MOST, f"{path.name}: {key}", f"{count:,} points", f"at most {MOST:,}", hint)


def _drawn(path: Path, parameters: Mapping[str, Any], number: int) -> dict[str, Value]:
    """A point of a random search; ends that no number lies between are refused."""
    point: dict[str, Value] = {}
    for place, (name, node) in enumerate(parameters.items()):
        try:
            point[name] = as_number(draw(node, number, place))
        except (ValueError, OverflowError) as error:
            key, hint = f"{path.name}: parameters.{name}", f"{name}: {{min: 0.5, max: 5.0}}"
            raise ClashError(key, dict(node), f"{kind(node)} has no such number ({error})", hint) from None
    return point


def _values(node: Mapping[str, Any]) -> list[Value]:
    """The values of an entry; `1e-1` is a word to yaml and a number to Hydra, and here."""
    return [as_number(value) for value in (node["values"] if "values" in node else [node["value"]])]


def as_number(value: Value) -> Value:
    """A word such as ``1e-3``, which yaml takes for a text, as the number that Hydra reads in it."""
    try:
        return float(value) if isinstance(value, str) else value
    except ValueError:
        return value


def _check_parameter(key: str, name: str, node: Any, method: str) -> None:
    """One entry of ``parameters``: values that survive a command line, from one of our distributions."""
    example = f"{name}: {{values: [0.5, 1.0]}}"
    ok = re.fullmatch(r"[^\s=,'\"\\\0]+", name) is not None
    require(ok, key, "(no key)", "a key of the configuration", "algorithm.eta: {values: [0.5, 1.0]}")
    require(isinstance(node, Mapping), key, node, "value:, values: or a distribution", example)
    _require_keys(f"{key}.", node, distributions.KEYS)
    if method == "grid":
        ok = "value" in node or "values" in node
        require(ok, key, dict(node), "value: or values: (a grid has no distributions)", example)
    require(kind(node) in DISTRIBUTIONS, key, node.get("distribution"), ", ".join(DISTRIBUTIONS), example)
    if problem := misses(node):
        raise ClashError(key, dict(node), problem, f"{name}: {{min: 0.5, max: 5.0}}")
    for word in node:
        require_fits(
            word in keys_of(node), f"{key}.{word}", node[word], f"{kind(node)} has no such key", "without it"
        )
    values = node["values"] if "values" in node else [node.get("value")]
    require(isinstance(values, list) and bool(values), f"{key}.values", values, "a list of values", example)
    for value in values:
        allowed = "numbers and words: a dictionary or list does not survive the command line"
        hint = "a file in conf/ (schedule: {values: [multistage, constant]})"
        plain = value is None or isinstance(value, int | float | str | bool)
        require(plain and not (isinstance(value, str) and "," in value), key, value, allowed, hint)


def _halving(path: Path, content: dict[str, Any]) -> Halving | None:
    """``early_terminate`` as W&B's hyperband reads it."""
    node = content.get("early_terminate")
    if node is None:
        return None
    key, example = f"{path.name}: early_terminate", "early_terminate: {type: hyperband, min_iter: 3, eta: 3}"
    require(isinstance(node, dict) and node.get("type") == "hyperband", key, node, "type: hyperband", example)
    keys = ("type", "min_iter", "max_iter", "s", "eta", "strict")
    for name in node:
        require(name in keys, f"{key}.{name}", node[name], f"one of {', '.join(keys)}", example)
    eta = node.get("eta", 3)
    require(isinstance(eta, int | float) and eta >= 1.01, f"{key}.eta", eta, "a number from 1.01 on", example)
    low, high, s = node.get("min_iter"), node.get("max_iter"), node.get("s")
    whole = all(value is None or (type(value) is int and 1 <= value <= 10**9) for value in (low, high, s))
    ok = whole and (low is not None or (high is not None and s is not None))
    require(ok, key, node, "min_iter, or max_iter and s", example)
    return Halving(float(eta), low, high, s)
