"""Like beside like: which runs solve the same problem, and on which seed a winner was chosen."""

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from fedgm.config.identity import counted
from fedgm.results.labels import QUIET
from fedgm.results.run import Key, Run, Status

# Data and split, model, clients and when they take part, local work, rounds, and how it is measured. What is
# left is the method: server rule, schedule, client and upload rules.
PROBLEM = ("data.", "model.", "clients.", "participation.", "local.", "rounds", "task.", "eval.")
ALWAYS = ("data.name", "model.name", "rounds")  # said of every problem
FIRST = ("participation.name", "data.alpha", "data.partition", "participation.delay", "clients.count")


@dataclass(frozen=True)
class Problem:
    """What it is called in an address and by people, and its runs."""

    id: str
    label: str
    runs: list[Run]


def problems(runs: Iterable[Run]) -> list[Problem]:
    """The problems of the runs: those with several algorithms first, then those with most runs."""
    members: dict[str, list[Run]] = {}
    for run in runs:
        text = json.dumps(_problem(run), sort_keys=True, default=str)
        members.setdefault(sha256(text.encode()).hexdigest()[:8], []).append(run)
    groups = sorted(members, key=lambda id: (len(set(map(_algorithm, members[id]))) < 2, -len(members[id])))
    labels = _labels([_problem(members[id][0]) for id in groups])
    return [Problem(id, label, members[id]) for id, label in zip(groups, labels, strict=True)]


def choosers(problem: Problem) -> set[Key]:
    """Runs whose score chose a winner, and so is too high to judge it (docs/claims.md).

    A seed on which more settings of an algorithm were run than on any other seed is one of a grid: its best
    setting was chosen on it.
    """
    chosen: set[Key] = set()
    for algorithm in {_algorithm(run) for run in problem.runs}:
        some = [run for run in problem.runs if _algorithm(run) == algorithm]
        seeds = Counter(run.seed for run in some).most_common(2)
        if seeds[0][1] < 2 or (len(seeds) > 1 and seeds[0][1] == seeds[1][1]):
            continue
        finished = [run for run in some if run.seed == seeds[0][0] and run.status == Status.FINISHED]
        ranked = {run.key: rank for run in finished if (rank := _rank(run)) is not None}
        chosen |= {max(ranked, key=lambda key: ranked[key])} if ranked else set()
    return chosen


def _rank(run: Run) -> float | None:
    """The score, more is better; None where a summary from elsewhere does not say what is judged."""
    try:
        sign, score = 1 if run.board.judge.better == "higher" else -1, run.score()
    except (TypeError, ValueError, KeyError, AttributeError, StopIteration):
        return None
    return None if score is None else sign * score


def _algorithm(run: Run) -> str:
    return str(run.facts.get("algorithm"))


def _problem(run: Run) -> dict[str, Any]:
    """The values that the problem of a run consists of."""
    values = counted(run.config, run.seed, run.facts)
    return {
        key: value
        for key, value in values.items()
        if key.startswith(PROBLEM) and key.rpartition(".")[2] not in QUIET
    }


def _labels(values: Sequence[dict[str, Any]]) -> list[str]:
    """Data, model and rounds of each, and as many keys as tell them apart."""
    rest = sorted({key for one in values for key in one} - {*ALWAYS, *FIRST})
    keys: list[str] = [*ALWAYS]
    for key in (*FIRST, *rest):
        if len(set(_texts(values, [*keys, key]))) > len(set(_texts(values, keys))):
            keys.append(key)
    return [", ".join(word for word in words if word) or "no configuration" for words in _texts(values, keys)]


def _texts(values: Sequence[dict[str, Any]], keys: Sequence[str]) -> list[tuple[str, ...]]:
    return [tuple(_word(key, one[key]) if key in one else "" for key in keys) for one in values]


def _word(key: str, value: Any) -> str:
    text = f"{value:g}" if isinstance(value, float) else str(value)
    if key == "rounds":
        return f"{text} rounds"
    group, _, last = key.rpartition(".")
    plain = group in ("data", "participation")
    return text if last == "name" else f"{last} {text}" if plain else f"{group} {last} {text}"
