"""Winners of the grids, kept in ``conf/best/<profile>.yaml``, where the paper leaves (eta, beta, nu) open."""

from collections.abc import Mapping
from typing import Any

VALUES = ("eta", "beta", "nu")


def winner(key: str, otherwise: Any, *, _root_: Any) -> Any:
    """``${fedgm.winner:eta,1.0}``: eta of the grid's winner, or the second value where there is none."""
    found = entry(_root_.best, _root_.winners, _root_.algorithm.name, reading(_root_.participation))
    return otherwise if found is None or found.get(key) is None else found[key]


def reading(participation: Mapping[str, Any]) -> str | None:
    """How the paper's simulation is read: start, current or literal; None of schemes that are not stale."""
    anchor = participation.get("anchor")
    return "literal" if (anchor, participation.get("normalize")) == ("start", "none") else anchor


def entry(best: Any, experiment: str | None, algorithm: str, reading: str | None) -> Mapping[str, Any] | None:
    """The stored winner of ``<experiment>.<algorithm>``.

    Autonomous clients have ``<experiment>.<algorithm>.<reading>``: each reading has its own winner.
    """
    found: Any = best
    for part in (experiment, algorithm):
        found = (found or {}).get(part) if part else None
    if found and "eta" not in found:
        found = found.get(reading) if reading else None
    return found or None


def origin(
    best: Any, experiment: str | None, algorithm: Mapping[str, Any], participation: Mapping[str, Any]
) -> str | None:
    """What a caption must say of (eta, beta, nu) in an experiment that asks for winners; None in others."""
    if not experiment:
        return None
    read_as = reading(participation)
    found = entry(best, experiment, str(algorithm["name"]), read_as)
    if found is None or any(key in found and found[key] != algorithm.get(key) for key in VALUES):
        return "not a winner of the grid"
    beside = " (participation=autonomous_current)" if read_as == "current" else ""
    return f"winner of {found['sweep']}{beside} on seed {found['seed']}"
