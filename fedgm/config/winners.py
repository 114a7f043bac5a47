"""Winners of the grids, kept in ``conf/best/<profile>.yaml``, where the paper leaves (eta, beta, nu) open."""

from collections.abc import Mapping
from typing import Any

VALUES = ("eta", "beta", "nu")


def winner(key: str, otherwise: Any, *, _root_: Any) -> Any:
    """``${fedgm.winner:eta,1.0}``: eta of the grid's winner, or the second value where there is none."""
    found = entry(_root_.best, _root_.winners, _root_.algorithm.name, _root_.participation.get("anchor"))
    return otherwise if found is None or found.get(key) is None else found[key]


def entry(best: Any, experiment: str | None, algorithm: str, anchor: str | None) -> Mapping[str, Any] | None:
    """The stored winner of ``<experiment>.<algorithm>``.

    Autonomous clients have ``<experiment>.<algorithm>.<anchor>``: each reading of Alg. 4 has its own winner.
    """
    found: Any = best
    for part in (experiment, algorithm):
        found = (found or {}).get(part) if part else None
    if found and "eta" not in found:
        found = found.get(anchor) if anchor else None
    return found or None


def origin(best: Any, experiment: str | None, algorithm: Mapping[str, Any], anchor: str | None) -> str | None:
    """What a caption must say of (eta, beta, nu) in an experiment that asks for winners; None in others."""
    if not experiment:
        return None
    found = entry(best, experiment, str(algorithm["name"]), anchor)
    if found is None or any(key in found and found[key] != algorithm.get(key) for key in VALUES):
        return "not a winner of the grid"
    reading = f" (participation=autonomous_{anchor})" if anchor == "current" else ""
    return f"winner of {found['sweep']}{reading} on seed {found['seed']}"
