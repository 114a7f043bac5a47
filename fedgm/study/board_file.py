"""A leaderboard as data: rules with the points that each is tuned on, checked before the first run."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import prod
from pathlib import Path
from typing import Any, Literal, cast

from fedgm import intake
from fedgm.config.options import conf_dir
from fedgm.errors import ClashError, RefusedError, near, require, require_fits
from fedgm.study.sweep_file import LARGEST, SweepFile, Value, as_number, located, metric_of

KEYS = ("title", "overrides", "metric", "level", "tune", "judge", "rules")
RULE = ("name", "overrides", "points")
EQUAL = (  # whether the board sets it or not
    "rounds", "paper_rounds", "seed", "data", "eval", "clients", "model", "profile", "task", "participation",
    "experiment", "debug", "stop_after", "rerun", "output_dir",
)  # fmt: skip
POINTS = 8  # on which a rule is tuned, at most: an equal budget for all
EXAMPLE = "mine: {name: Mine, overrides: algorithm=mine, points: {algorithm.eta: [0.5, 1.0]}}"


@dataclass(frozen=True)
class Rule:
    """A line of the board: a server or a client rule, and the points that it is tuned on."""

    key: str
    name: str
    overrides: tuple[str, ...]
    points: tuple[dict[str, Value], ...]
    path: Path = Path()  # its file: the board's, or one of the user's own

    @property
    def sets(self) -> dict[str, str]:
        """What it sets, by keys and groups: a value, or the word points."""
        pairs = (pair_of(word) for word in self.overrides)
        return {**dict(pairs), **dict.fromkeys(self.points[0], "points")}

    @property
    def kind(self) -> str:
        """Whether clients do something besides plain SGD; FedProx belongs to FedACG, a server rule."""
        plain = ("client=plain", "client=fedprox")
        return (
            "client" if any(w.startswith("client=") and w not in plain for w in self.overrides) else "server"
        )

    @property
    def swept(self) -> list[str]:
        """Keys that have more than one value over the points."""
        return [key for key in self.points[0] if len({point[key] for point in self.points}) > 1]


@dataclass(frozen=True)
class Board:
    """One problem for all rules: chosen on one seed, judged on others."""

    path: Path
    name: str
    title: str
    overrides: tuple[str, ...]
    metric: str
    goal: Literal["maximize", "minimize"]
    level: float
    tune: int
    judge: tuple[int, ...]
    rules: tuple[Rule, ...]

    def sweep(self, rule: Rule, points: Sequence[dict[str, Value]] | None = None) -> SweepFile:
        """The points of a rule as the sweep that tunes it."""
        fixed = (*self.overrides, *rule.overrides)
        chosen = tuple(points or rule.points)
        place = f"{rule.key}.points"
        return SweepFile(rule.path, rule.name, "grid", self.metric, self.goal, fixed, chosen, None, place)

    def only(self, keys: Sequence[str]) -> "Board":
        """The board with these of its rules alone: what several machines can share."""
        known = [rule.key for rule in self.rules]
        keys = [key.strip() for key in keys if key.strip()] or [""]
        for key in keys:
            require(key in known, "--only", key, ", ".join(known), f"--only {near(key, known) or known[0]}")
        return replace(self, rules=tuple(rule for rule in self.rules if rule.key in keys))

    def with_rules(self, path: Path) -> "Board":
        """The board with the rules of another file beside its own."""
        example = f"a yaml file with {EXAMPLE}"
        added = _rules(path, _content(path, "a file of rules", example), self.overrides)
        for rule in added:
            taken = rule.key in {own.key for own in self.rules}
            require(not taken, f"{path.name}: {rule.key}", "(a rule of the board)", "another name", "mine:")
        return replace(self, rules=(*self.rules, *added))


def bundled() -> list[str]:
    """Names of the leaderboards that come with the package."""
    return sorted(path.stem for path in _folder().glob("*.yaml"))


def read(place: str | Path) -> Board:
    """The checked file, or the bundled one of that name."""
    path = Path(place)
    ours = _folder() / f"{path.name.removesuffix('.yaml')}.yaml"
    path = ours if not path.exists() and len(path.parts) == 1 and ours.exists() else path
    path = located(path)
    allowed = f"a leaderboard: a file, or one of {', '.join(bundled())}"
    content = _content(path, allowed, near(path.stem, bundled()) or "hapt")
    if {"method", "parameters"} & {*content}:
        raise RefusedError(f"{place}: a sweep file, not a leaderboard. Try fedgm sweep {place}")
    _require_keys(f"{path.name}: ", content, KEYS)
    metric, goal = metric_of(path, content)
    level = as_number(content.get("level"))
    tune, judge = content.get("tune", 0), content.get("judge", [1, 2, 3])
    require(_is_number(level), f"{path.name}: level", level, "a value of the metric", "level: 0.8")
    ok = type(tune) is int and tune >= 0
    require(ok, f"{path.name}: tune", tune, "a seed", "tune: 0")
    ok = isinstance(judge, list) and all(type(seed) is int and seed >= 0 for seed in judge) and bool(judge)
    require(ok, f"{path.name}: judge", judge, "a list of seeds", "judge: [1, 2, 3]")
    apart = tune not in judge and len(set(judge)) == len(judge)
    require(
        apart,
        f"{path.name}: judge",
        judge,
        "other seeds than the one that tunes, each once",
        "judge: [1, 2, 3]",
    )
    rules = content.get("rules")
    ok = isinstance(rules, dict) and bool(rules)
    require(ok, f"{path.name}: rules", rules, "rules by their names", EXAMPLE)
    overrides = _words(path, "overrides", content)
    return Board(
        path, path.stem, str(content.get("title") or path.stem), overrides, metric, cast(Any, goal),
        float(cast(float, level)), tune, tuple(judge), _rules(path, cast(Any, rules), overrides),
    )  # fmt: skip


def _folder() -> Path:
    return conf_dir().parent / "sweeps" / "leaderboards"


def _content(path: Path, allowed: str, hint: str) -> dict[str, Any]:
    try:
        content = intake.from_yaml(intake.read_text(path, LARGEST))
    except OSError as error:
        raise RefusedError(f"{path}: {error.strerror}: expected {allowed}. Try {hint}") from None
    except intake.UnfitFileError as error:
        raise RefusedError(f"{path}: expected {allowed} ({error}). Try {hint}") from None
    require(isinstance(content, dict), str(path), type(content).__name__, allowed, hint)
    return cast(dict[str, Any], content)


def _require_keys(place: str, node: Mapping[str, Any], allowed: Sequence[str]) -> None:
    for key in node:
        hint = f"{near(str(key), allowed) or allowed[0]}: as the key"
        require(key in allowed, f"{place}{key}", "(unknown key)", ", ".join(allowed), hint)


def pair_of(word: str) -> tuple[str, str]:
    """Key and value of a word of the command line."""
    key, _, value = word.lstrip("+~").partition("=")
    return key.partition("@")[0], value


def _rules(path: Path, node: Mapping[str, Any], shared: Sequence[str]) -> tuple[Rule, ...]:
    return tuple(_rule(path, str(key), entry, shared) for key, entry in node.items())


def _rule(path: Path, key: str, node: Any, shared: Sequence[str]) -> Rule:
    where = f"{path.name}: {key}"
    require(isinstance(node, dict), where, node, "name, overrides and points", EXAMPLE)
    _require_keys(f"{where}.", node, RULE)
    points = _points(f"{where}.points", node.get("points"))
    rule = Rule(key, str(node.get("name") or key), _words(path, f"{key}.overrides", node), points, path)
    _require_equal(rule, dict(map(pair_of, shared)))
    return rule


def _require_equal(rule: Rule, shared: Mapping[str, str]) -> None:
    """Refuse a rule that sets what is the same for all: its budget and its problem; or a key twice."""
    where = f"{rule.path.name}: {rule.key}"
    for part, pairs in (("overrides", map(pair_of, rule.overrides)), ("points", rule.points[0].items())):
        for key, value in pairs:
            here = f" ({key}={shared[key]} here)" if key in shared else ""
            reason = f"{key} is the same for all rules of a board{here}"
            ok = key not in shared and re.split(r"[./]", key)[0] not in EQUAL
            require_fits(ok, f"{where}.{part}", f"{key}={value}", reason, "the rule without it")
            twice = part == "overrides" and key in rule.points[0]
            require_fits(
                not twice, f"{where}.{part}", f"{key}={value}", f"its points set {key}", "one of them"
            )


def _words(path: Path, key: str, node: Mapping[str, Any]) -> tuple[str, ...]:
    """Overrides as a list, or as one text."""
    given = node.get("overrides")
    words = given.split() if isinstance(given, str) else given
    ok = isinstance(words, list) and all(isinstance(word, str) and "=" in word for word in words)
    require(ok, f"{path.name}: {key}", given, "words such as algorithm=fedavg", "overrides: algorithm=fedavg")
    return tuple(cast(list[str], words))


def _points(where: str, node: Any) -> tuple[dict[str, Value], ...]:
    """Every combination of lists by key, or the listed points; each as often as once."""
    if isinstance(node, dict) and node:
        ok = all(isinstance(values, list) and values for values in node.values())
        require(ok, where, node, "a list of values for each key", "points: {algorithm.eta: [0.5, 1.0]}")
        count = prod(len(values) for values in node.values())
        require(
            count <= POINTS, where, f"{count} points", f"at most {POINTS}: an equal budget", "fewer values"
        )
        points = [dict(zip(node, values, strict=True)) for values in product(*node.values())]
    else:
        listed = cast(list[Any], node) if isinstance(node, list) else []
        ok = bool(listed) and all(isinstance(point, dict) and point for point in listed)
        require(ok, where, node, "values by key, or a list of points", "points: {algorithm.eta: [0.5, 1.0]}")
        points = cast(list[dict[str, Any]], listed)
        require(len(points) <= POINTS, where, f"{len(points)} points", f"at most {POINTS}", "fewer points")
        same = all(point.keys() == points[0].keys() for point in points)
        require(
            same,
            where,
            "points of different keys",
            "the same keys in each",
            f"{next(iter(points[0]))}: in all",
        )
    points = [{key: as_number(value) for key, value in point.items()} for point in points]  # 1e-3 is no word
    for key, value in (pair for point in points for pair in point.items()):
        ok = isinstance(value, int | float | str | bool) or value is None
        require(ok, f"{where}.{key}", value, "a number or a word", "algorithm.eta: 1.0")
    twice = [point for place, point in enumerate(points) if point in points[:place]]
    if twice:
        raise ClashError(where, twice[0], "it stands there twice", "remove one")
    return tuple(points)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
