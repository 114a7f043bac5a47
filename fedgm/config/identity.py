"""What makes two runs the same run: a hash that outlives added and renamed keys.

Stored results are found by it, so it may never change for a run that is already stored. A later version that
adds a key puts it into ``ADDED`` with the value that older versions implied; one that renames a key puts it
into ``RENAMED``; one that moves a target puts it into ``MOVED`` (:mod:`fedgm.config.moved`); a rule whose
arithmetic changes gets ``version: 2`` in its yaml, or an entry in ``CHANGED`` where it changes for some runs
alone. ``tests/unit/test_identity.py`` holds the hashes of 20 commands.
"""

import hashlib
import json
from collections.abc import Callable
from typing import Any, cast

from omegaconf import DictConfig, OmegaConf

from fedgm.config.contents import contents
from fedgm.config.moved import MOVED
from fedgm.errors import ConfigError

# What cannot change a bit of a result. Seeds have folders of their own; `paper_*`, `winners` and `best` only
# fill other keys, which count; `figure` only says what is drawn; of the profile only the name counts, because
# captions show it.
NOT_IDENTITY = (
    "seed", "output_dir", "rerun", "stop_after", "track", "checkpoint", "paper_rounds", "paper_momentum",
    "paper_delay", "winners", "best", "figure", "trainer.name", "trainer.workers", "trainer.devices",
    "trainer.keep_memory", "data.root", "data.source.root", "eval.metric",
)  # fmt: skip
# Key -> the value that versions without it implied: at that value it is left out.
ADDED: dict[str, Any] = {
    "participation.anchor": "start",
    "participation.age": "client",
    "algorithm.bias_correction": False,
    "eval.point": "sent",
    "eval.clients": 0,
    "data.shards": 2,
    "data.classes_per_client": 2,
    "local.state": "reset",
    "callbacks": {"name": "none"},
    "task": {"name": "classification", "_target_": "fedgm.tasks.cross_entropy.Classification"},
    "upload": {"name": "plain", "_target_": "fedgm.upload.message.Plain"},
}
# Key -> whether a run implies its value, as versions without the key did: then it is left out.
IMPLIED: dict[str, Callable[[dict[str, Any]], bool]] = {
    # `ideal` and `event` had no sampler; `autonomous`, which has no count of its own, always had one.
    "participation.sampler": lambda run: _samples_plainly(run["participation"]),
}
# Key now -> key as stored runs have it.
RENAMED: dict[str, str] = {}
# Rules whose arithmetic changed for some runs alone, which then count as another version: (key, which runs).
# `version: 2` in a yaml would part the others, too, from their stored results.
CHANGED: dict[str, Callable[[dict[str, Any]], bool]] = {
    # A stale client uses the control variate that it fetched with its model, not the newest.
    "client.version": lambda run: run["client"]["name"] == "scaffold" and _stale(run["participation"]),
    # FedNova's a_i of local momentum and FedProx instead of K_i.
    "participation.version": lambda run: (
        run["participation"].get("normalize") == "fednova"
        and bool(run["local"]["momentum"] or run["client"].get("mu"))
    ),
    # Under `stages`, etas multiply the eta of a rule outside FedGM's family instead of replacing it.
    "schedule.version": lambda run: (
        run["schedule"]["_target_"] == "fedgm.schedule.stages.Stages"
        and not run["algorithm"]["_target_"].startswith(
            ("fedgm.server.GeneralMomentum", "fedgm.server.schemes.")
        )
    ),
}
SEED = -(2**62)  # stands for the run's seed in keys that follow it; no seed may be negative


def identity(cfg: DictConfig) -> str:
    """SHA-256 of all that can change a result, in resolved values."""
    _require_unmasked(OmegaConf.to_container(cfg, resolve=True))
    values = _resolved(cfg)
    for key in NOT_IDENTITY:
        _pop(values, key)
    values["profile"] = values["profile"]["name"]
    local = values["local"]  # optimisers that were not chosen say nothing about the run
    local["optimizers"] = {local["optimizer"]: local["optimizers"].get(local["optimizer"])}
    if found := contents(values):  # a run without files of its own has the hash that it always had
        values["contents"] = found
    for key, implied in ADDED.items():
        if _get(values, key) == implied:
            _pop(values, key)
    for key in [key for key, holds in IMPLIED.items() if holds(values)]:
        _pop(values, key)
    for key in [key for key, holds in CHANGED.items() if holds(values)]:
        _put(values, key, max(2, _get(values, key) or 0))
    for now, before in RENAMED.items():
        if _has(values, now):
            _put(values, before, _pop(values, now))
    return hashlib.sha256(json.dumps(_plain(values), sort_keys=True).encode()).hexdigest()


def _samples_plainly(scheme: dict[str, Any]) -> bool:
    """Whether the sampler is the uniform one over the scheme's own clients."""
    same = {key: scheme.get(key) for key in ("count", "per_round", "seed")}
    return "count" in scheme and scheme.get("sampler") == {
        "name": "uniform", "_target_": "fedgm.participation.Uniform", **same
    }  # fmt: skip


def _stale(participation: dict[str, Any]) -> bool:
    """Whether a client may start from a past model."""
    return participation.get("delay", 1) > 1 or participation.get("max_staleness", 0) > 0


def _resolved(cfg: DictConfig) -> dict[str, Any]:
    """All values, the seed masked: keys that follow it must not tell seeds apart."""
    masked = OmegaConf.merge(cfg, {"seed": SEED})
    return cast(dict[str, Any], OmegaConf.to_container(masked, resolve=True))


def _require_unmasked(value: Any, key: str = "") -> None:
    """Refuse the mask where it was typed: the run would have the hash of one whose key follows the seed."""
    if isinstance(value, dict):
        for name, inner in value.items():
            _require_unmasked(inner, f"{key}.{name}" if key else str(name))
    elif isinstance(value, list):
        for inner in value:
            _require_unmasked(inner, key)
    elif str(SEED) in str(number(value)):
        raise ConfigError(key, value, "any other value: this one stands for the seed", f"{key}=0")


def _plain(value: Any, key: str = "") -> Any:
    """Whole floats as integers, at any depth: 1 and 1.0 mean the same run; targets where they were."""
    if isinstance(value, dict):
        return {k: _plain(v, k) for k, v in value.items()}
    if isinstance(value, list):
        return [_plain(v) for v in value]
    if key == "_target_" and isinstance(value, str):
        return MOVED.get(value, value)
    return number(value)


def number(value: Any) -> Any:
    """A whole float as the integer it is."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _get(values: dict[str, Any], key: str) -> Any:
    """The value at a dotted key, or None."""
    *path, last = key.split(".")
    for part in path:
        values = values.get(part) or {}
    return values.get(last)


def _has(values: dict[str, Any], key: str) -> bool:
    """Whether a dotted key is there, be it null."""
    *path, last = key.split(".")
    for part in path:
        values = values.get(part) or {}
    return last in values


def _pop(values: dict[str, Any], key: str) -> Any:
    """Remove a dotted key, if it is there, and return its value."""
    *path, last = key.split(".")
    for part in path:
        values = values.get(part) or {}
    return values.pop(last, None)


def _put(values: dict[str, Any], key: str, value: Any) -> None:
    *path, last = key.split(".")
    for part in path:
        values = values.setdefault(part, {})
    values[last] = value
