"""Server rates in the caption of a picture: those of all lines once, then what each line has beside them."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from fedgm.plain import plain
from fedgm.results.labels import in_turn
from fedgm.results.run import Run

RATES = ("eta", "beta", "nu")
MOST = 8  # different rates that a caption says
WIDEST = 60  # characters of a name in a caption


CHOSEN = re.compile(r"(?P<rates>.*) \(winner of .* on seed (?P<seed>\d+)\)")
IDLE = re.compile(r", beta [\d.]+, nu 0$")  # nu = 0: beta does nothing


class Rated(NamedTuple):
    """A line's name, its runs, its rates where words say them (a winner's, with its origin), its row."""

    name: str
    runs: Sequence[Run]
    words: str | None = None
    row: str = ""


def said(lines: Sequence[Rated]) -> str:
    """``Server rates: nu 0.9 in all; eta 2, beta 0.9: NAME and NAME.`` Not again what a name says itself.

    A row of lines with the same rates is named once.
    """
    chosen = [CHOSEN.fullmatch(line.words or "") for line in lines]
    seeds = {match["seed"] for match in chosen if match}
    are_winners = all(chosen) and len(seeds) == 1
    if are_winners:
        lines = [
            line._replace(words=IDLE.sub("", match["rates"]))
            for line, match in zip(lines, chosen, strict=True) if match
        ]  # fmt: skip
    own = {line.name: _rates(line.runs) for line in lines if not line.words}
    first = next(iter(own.values()), {})
    alone = len(own) > 1 and len(own) == len(lines)
    common = {key: text for key, text in first.items() if all(of.get(key) == text for of in own.values())}
    parts = [f"{_joined(common)} in all"] if alone and common else []
    grouped: dict[str, list[Rated]] = {}
    for line in lines:
        rates = own.get(line.name, {})
        rest = {
            key: text
            for key, text in rates.items()
            if not (alone and key in common) and not _says(line.name, f"{key} {text}")
        }
        if words := line.words or _joined(rest):
            grouped.setdefault(words, []).append(line)
    parts += [f"{words}: {_names(of, lines)}" for words, of in list(grouped.items())[:MOST]]
    parts += [f"and {len(grouped) - MOST} more"] if len(grouped) > MOST else []
    whose = f", winners of their grids on seed {seeds.pop()}" if are_winners else ""
    return f"Server rates{whose}: {'; '.join(parts)}." if parts else ""


def _names(of: Sequence[Rated], lines: Sequence[Rated]) -> str:
    """Their names; that of their row where they are all of it."""
    names, row = [line.name for line in of], of[0].row
    if len(of) > 1 and row and names == [line.name for line in lines if line.row == row]:
        return plain(row, WIDEST)
    return " and ".join(plain(name, WIDEST) for name in names)


def _rates(runs: Sequence[Run]) -> dict[str, str]:
    """eta, beta and nu of a line, each stage's where they change; none of rules without them."""
    stages = next((run.facts["stages"] for run in runs if run.facts.get("stages")), [])
    columns = {key: [stage.get(key) for stage in stages] for key in RATES}
    return {
        key: in_turn(column)
        for key, column in columns.items()
        if column and all(isinstance(value, int | float) for value in column)
    }


def _joined(rates: dict[str, str]) -> str:
    """``eta 2, beta = nu = 0.9``."""
    if "beta" in rates and rates["beta"] == rates.get("nu"):
        rates = {key: text for key, text in rates.items() if key == "eta"} | {"beta = nu =": rates["beta"]}
    return ", ".join(f"{key} {text}" for key, text in rates.items())


def _says(name: str, words: str) -> bool:
    """Whether a name has these rates in it; ``eta 1`` is not in ``eta 1.5``."""
    return re.search(rf"(?<!\w){re.escape(words)}(?![\w.]*\d)", name) is not None
