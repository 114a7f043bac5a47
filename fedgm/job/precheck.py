"""Everything about a configuration that can be refused before Lightning and the data are loaded."""

import inspect
from collections.abc import Mapping
from typing import Any

import numpy as np
from omegaconf import DictConfig

from fedgm.config import RunConfig, validate
from fedgm.config.limits import require_model_fits, require_possible
from fedgm.config.parts import build, check_part, target_of
from fedgm.errors import ConfigError, FedGMError, require

OWN = "fedgm."  # torchvision's models are looked at only once its operators are declared


def require_sound(cfg: DictConfig) -> RunConfig:
    """The typed configuration; schema first, then sizes, then the values of the parts."""
    config = validate(cfg)
    for group in ("algorithm", "schedule", "participation", "client", "upload", "task", "model"):
        node = getattr(config, group)
        ok = isinstance(node, Mapping) and "_target_" in node and "name" in node
        require(ok, group, node, "an option of this group, with its name and _target_", f"{group}=NAME")
    ok = isinstance(config.data.source, Mapping)
    require(ok, "data.source", config.data.source, "keys with a _target_", "data=synthetic")
    ok = isinstance(config.callbacks, Mapping)
    require(ok, "callbacks", config.callbacks, "entries with a _target_", "callbacks=none")
    for name, node in config.callbacks.items():
        ok = name == "name" or isinstance(node, Mapping)
        allowed = "keys with a _target_, from which a callback is built"
        require(ok, f"callbacks.{name}", node, allowed, f"~callbacks.{name}")
    layout = config.model.get("channels_last")
    require(
        isinstance(layout, bool), "model.channels_last", layout, "true or false", "model.channels_last=true"
    )
    require_possible(config)
    _require_parts(config)
    return config


def _require_parts(config: RunConfig) -> None:
    """Build what is cheap to build; what only the data decides is filled in with something plain."""
    rule: Any = build(config.algorithm, "algorithm")
    schedule: Any = build(config.schedule, "schedule")
    if hasattr(schedule, "plan") and hasattr(rule, "hyper"):  # else refused by its protocol
        schedule.plan(config.rounds, rule)
    from fedgm.participation import ClientFacts

    facts = ClientFacts(labels=lambda client: np.zeros(1, np.int64))
    scheme: Any = build(config.participation, "participation", facts)
    build(config.client, "client")
    build(config.upload, "upload")
    check_part(config.data.source, "data.source")
    if str(config.model["_target_"]).startswith(OWN):
        require_model_fits(config, _parameters(config), int(getattr(scheme, "history", 1)))


def _parameters(config: RunConfig) -> int:
    """The size of the model, built without memory for its weights."""
    import torch

    wanted = inspect.signature(target_of(config.model, "model")).parameters
    classes: Any = config.data.source.get("classes", 10)
    given = {"num_classes": classes, "vocabulary": 256, "block": config.data.source.get("block", 64)}
    known: dict[str, Any] = {k: v for k, v in given.items() if k in wanted and isinstance(v, int)}
    try:
        with torch.random.fork_rng(devices=[]), torch.device("meta"):
            net: Any = build(config.model, "model", **known)
            return sum(p.numel() for p in net.parameters())
    except FedGMError:
        raise
    except (RuntimeError, OverflowError, MemoryError) as error:  # sizes beyond what a tensor can have
        reason = str(error).splitlines()[0]
        raise ConfigError(
            "model", config.model["name"], f"sizes that exist ({reason})", "model.width=16"
        ) from None
