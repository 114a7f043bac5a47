"""Lightning's counters as plain dictionaries, for checkpoints: what its loops give, without deep copies.

``dataclasses.asdict``, which Lightning calls, copies every number as if it could change, in every round.
"""

from typing import Any

from fedgm.lightning import Loop, Progress


def states(loop: Loop, found: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """``loop.state_dict(found, prefix)``: the same keys in the same order."""
    found[f"{prefix}state_dict"] = loop.on_save_checkpoint()
    for name, value in vars(loop).items():
        if isinstance(value, Progress):
            found[prefix + name] = counters(value)
        elif isinstance(value, Loop):
            states(value, found, f"{prefix}{name}.")
    return found


def counters(progress: Progress) -> dict[str, Any]:
    """Numbers by name, in the order of the fields."""
    return {k: counters(v) if isinstance(v, Progress) else v for k, v in vars(progress).items()}
