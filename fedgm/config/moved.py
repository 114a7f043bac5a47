"""Targets that have moved and keys that are gone: stored runs have the old ones, and keep their hash."""

from typing import Any

# `_target_` now -> as older runs have it.
MOVED: dict[str, str] = {
    "fedgm.participation.ideal": "fedgm.participation.Ideal",
    "fedgm.participation.under_clock": "fedgm.participation.Event",
    "fedgm.schedule.Constant": "fedgm.server.Constant",
    "fedgm.schedule.Multistage": "fedgm.server.Multistage",
    "fedgm.schedule.decay.Cosine": "fedgm.server.decay.Cosine",
    "fedgm.schedule.decay.Cyclic": "fedgm.server.decay.Cyclic",
    "fedgm.schedule.decay.Polynomial": "fedgm.server.decay.Polynomial",
    "fedgm.schedule.decay.WarmupStep": "fedgm.server.decay.WarmupStep",
    "fedgm.schedule.schedule_free.UniformAverage": "fedgm.server.schedule_free.UniformAverage",
    "fedgm.schedule.stages.Stages": "fedgm.server.stages.Stages",
    "fedgm.schedule.sutskever.Sutskever": "fedgm.server.sutskever.Sutskever",
}
RETIRED = ("trainer.devices",)  # never part of a hash; trainer.workers says it
NOW = {before: now for now, before in MOVED.items()}


def with_present_targets(node: Any) -> Any:
    """A tree of stored values with every target where it is today."""
    if isinstance(node, dict):
        return {
            key: NOW.get(value, value)
            if key == "_target_" and isinstance(value, str)
            else with_present_targets(value)
            for key, value in node.items()
        }
    return [with_present_targets(value) for value in node] if isinstance(node, list) else node


def without_retired_keys(values: dict[str, Any]) -> dict[str, Any]:
    """Stored values without the keys that no version reads any more."""
    kept = dict(values)
    for group, name in (key.split(".") for key in RETIRED):
        if isinstance(kept.get(group), dict):
            kept[group] = {key: value for key, value in kept[group].items() if key != name}
    return kept
