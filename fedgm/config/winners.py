"""Winners of the grids, kept in ``conf/best/<profile>.yaml``, where the paper leaves (eta, beta, nu) open."""

from collections.abc import Mapping
from typing import Any

VALUES = ("eta", "beta", "nu")


def winner(key: str, otherwise: Any, *, _root_: Any) -> Any:
    """``${fedgm.winner:eta,1.0}``: eta of the grid's winner, or the second value where there is none."""
    best = entry(_root_.best, _root_.winners, _root_.algorithm.name, reading(_root_.participation))
    return otherwise if best is None or best.get(key) is None else best[key]


def reading(participation: Mapping[str, Any]) -> str | None:
    """How the paper's simulation is read: start, current or literal; None of schemes that are not stale."""
    anchor = participation.get("anchor")
    return "literal" if (anchor, participation.get("normalize")) == ("start", "none") else anchor


def entry(best: Any, experiment: str | None, algorithm: str, reading: str | None) -> Mapping[str, Any] | None:
    """The stored winner of ``<experiment>.<algorithm>``.

    Autonomous clients have ``<experiment>.<algorithm>.<reading>``: each reading has its own winner.
    """
    node: Any = best
    for part in (experiment, algorithm):
        node = (node or {}).get(part) if part else None
    if node and "eta" not in node:
        node = node.get(reading) if reading else None
    return node or None


def origin(
    best: Any, experiment: str | None, algorithm: Mapping[str, Any], participation: Mapping[str, Any]
) -> str | None:
    """What a caption must say of (eta, beta, nu) in an experiment that asks for winners; None in others."""
    if not experiment:
        return None
    read_as = reading(participation)
    values = entry(best, experiment, str(algorithm["name"]), read_as)
    if values is None or any(key in values and values[key] != algorithm.get(key) for key in VALUES):
        return "not a winner of the grid"
    beside = " (participation=autonomous_current)" if read_as == "current" else ""
    return f"winner of {values['sweep']}{beside} on seed {values['seed']}"
