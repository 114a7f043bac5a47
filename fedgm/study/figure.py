"""An experiment's ``figure:`` as data: lines, panels and claims, read from its yaml."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from omegaconf import DictConfig, OmegaConf

from fedgm.config import compose, validate
from fedgm.config.checks import FIGURE
from fedgm.config.options import figures
from fedgm.errors import ClashError, RefusedError, require
from fedgm.results.run import Window, first_quarter, last_quarter, whole
from fedgm.study import claims

# What is wanted first comes first: `all` takes hours.
ORDER = ("1ab", "1cd", "2", "5", "6", "9", "4", "7", "3", "8")
RESIDUAL = "last quarter residual"  # each run without its own trend
WINDOWS: dict[str, Window] = {
    "": whole, "first quarter": first_quarter, "last quarter": last_quarter, RESIDUAL: last_quarter,
}  # fmt: skip
KINDS = ("curves", "dots")
LINE = ("key", "name", "overrides", "grid", "row")
SEEDS = 3  # of a figure that names no number for its profile


@dataclass(frozen=True)
class Line:
    """A curve of the figure; ``grid`` names the sweep file, and its overrides, whose winner it is.

    ``row`` is the title of the row of panels that it is drawn in; a line without one is in every row.
    """

    key: str
    name: str
    overrides: tuple[str, ...]
    grid: str | None = None
    row: str = ""


@dataclass(frozen=True)
class Panel:
    """A metric over all rounds, or over a part of them."""

    metric: str
    period: str  # a key of WINDOWS


@dataclass(frozen=True)
class PaperFigure:
    """What a figure shows, and which claims it judges; outside the paper it has neither number nor claims."""

    experiment: str
    number: str | None
    title: str
    panels: tuple[Panel, ...]
    metric: str  # what the claims and the tables are about: the second half of its columns
    claims: tuple[claims.Claim, ...]
    lines: tuple[Line, ...]
    has_winners: bool
    seeds: int = SEEDS
    added: tuple[int, ...] = ()  # seeds that were added after the first results (docs/claims.md)
    kind: str = KINDS[0]  # dots: where each line ends, for many lines
    note: str = ""  # a sentence of the caption

    @property
    def name(self) -> str:
        """As it is typed: ``fig2``, or the experiment."""
        return f"fig{self.number}" if self.number else self.experiment

    @property
    def heading(self) -> str:
        """Above the picture."""
        return f"Figure {self.number}: {self.title}" if self.number else self.title


def numbers() -> dict[str, str]:
    """Number of each figure -> its experiment, in the order in which `all` runs them."""
    by_number = {str(node["number"]): name for name, node in figures().items() if "number" in node}
    places = {number: place for place, number in enumerate(ORDER)}
    return dict(sorted(by_number.items(), key=lambda pair: (places.get(pair[0], len(ORDER)), pair[0])))


def beside_the_paper() -> list[str]:
    """Experiments that judge claims but are not figures of the paper: other readings, more rounds."""
    return [name for name, node in figures().items() if "number" not in node and node.get("claims")]


def choose(word: str) -> list[str]:
    """Experiments of ``fig2``, ``fig1`` (1ab and 1cd), ``all`` that judge claims, or one by its name."""
    if not re.fullmatch(r"(fig)?\d\w*|all", word):
        return [word]  # Hydra also finds those in the user's folders, and refuses the rest
    by_number = numbers()
    if word == "all":
        return [*by_number.values(), *beside_the_paper()]
    number = word.removeprefix("fig")
    chosen = [name for key, name in by_number.items() if key == number or key.rstrip("abcd") == number]
    allowed = f"{', '.join(f'fig{key}' for key in sorted(by_number))}, fig1, all or an experiment"
    require(bool(chosen), "figure", word, allowed, "fedgm reproduce fig2")
    return chosen


def read(experiment: str, overrides: Sequence[str] = ()) -> PaperFigure:
    """The figure of an experiment, checked."""
    cfg = compose([f"+experiment={experiment}", *overrides])
    node = cast(
        dict[str, Any] | None, OmegaConf.to_container(cfg.figure, resolve=True) if cfg.figure else None
    )
    if node is None:
        raise RefusedError(f"+experiment={experiment} has no figure: to draw. See conf/experiment/outer.yaml")
    for key in node:
        require(
            key in FIGURE, f"{experiment}: figure.{key}", node[key], ", ".join(FIGURE), "title: as the key"
        )
    for key in ("title", "lines"):
        require(
            bool(node.get(key)), f"{experiment}: figure.{key}", node.get(key), "a value", "see outer.yaml"
        )
    lines = tuple(_line(experiment, line) for line in node["lines"])
    keys = [line.key for line in lines]
    require(len(set(keys)) == len(keys), f"{experiment}: figure.lines", keys, "each key once", "other keys")
    panels = tuple(_panel(experiment, words) for words in node.get("panels") or default_panels(cfg))
    metric = str(node.get("metric") or panels[-1].metric.rpartition("/")[2])
    number = None if node.get("number") is None else str(node["number"])
    judged = tuple(claims.claims(node.get("claims") or ()))
    return PaperFigure(
        experiment, number, str(node["title"]), panels, metric, judged, lines, cfg.winners is not None,
        *_seeds(experiment, node, str(cfg.profile.name)), *_looks(experiment, node, str(cfg.profile.name)),
    )  # fmt: skip


def _seeds(experiment: str, node: dict[str, Any], profile: str) -> tuple[int, tuple[int, ...]]:
    """How many seeds the figure has at a profile, and which of them were added later."""
    for key in ("seeds", "added"):
        ok = isinstance(node.get(key) or {}, dict)
        require(ok, f"{experiment}: figure.{key}", node.get(key), "values by profile", "seeds: {small: 6}")
    count, added = (node.get("seeds") or {}).get(profile, SEEDS), (node.get("added") or {}).get(profile, ())
    ok = type(count) is int and count >= 1
    require(ok, f"{experiment}: figure.seeds", count, "at least 1", "seeds: {small: 6}")
    return count, tuple(int(seed) for seed in added)


def _looks(experiment: str, node: dict[str, Any], profile: str) -> tuple[str, str]:
    """What kind of picture it is, and a sentence of its caption that holds at this profile."""
    kind, notes = node.get("kind") or KINDS[0], node.get("note") or {}
    require(kind in KINDS, f"{experiment}: figure.kind", kind, " or ".join(KINDS), "kind: dots")
    ok = isinstance(notes, dict)
    require(ok, f"{experiment}: figure.note", notes, "sentences by profile", "note: {small: A sentence.}")
    return kind, str(notes.get(profile) or "")


def default_panels(cfg: DictConfig) -> list[str]:
    """Training and test of the metric that judges a run."""
    from fedgm.running.parts import scoreboard_of  # imports Lightning

    name = scoreboard_of(validate(cfg)).judge.name
    return [f"train/{name}", f"test/{name}"]


def _line(experiment: str, node: dict[str, Any]) -> Line:
    """One entry of ``figure.lines``."""
    where = f"{experiment}: figure.lines"
    for key in node:
        require(key in LINE, f"{where}.{key}", node[key], ", ".join(LINE), "key: fedgm")
    for key in LINE[:3]:
        if not node.get(key):
            raise ClashError(
                f"{where}.{key}", "(missing)", "a line has key, name and overrides", "key: fedgm"
            )
    overrides = tuple(str(node["overrides"]).split())
    return Line(node["key"], node["name"], overrides, node.get("grid"), str(node.get("row") or ""))


def _panel(experiment: str, words: str) -> Panel:
    """``train/loss first quarter``: a column, and which rounds where not all."""
    metric, _, period = words.partition(" ")
    allowed = " or ".join(f"METRIC {name}".strip() for name in WINDOWS)
    require(period in WINDOWS, f"{experiment}: figure.panels", words, allowed, "panels: [test/loss]")
    return Panel(metric, period)
