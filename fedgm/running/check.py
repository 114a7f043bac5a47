"""Everything about a configuration that can be refused before Lightning and the data are loaded."""

import inspect
from typing import Any

import numpy as np
from omegaconf import DictConfig

from fedgm.config import RunConfig, validate
from fedgm.config.limits import require_model_fits, require_possible
from fedgm.config.parts import build, check_part, target_of
from fedgm.config.shape import require_shape
from fedgm.models.size import parameters

OWN = "fedgm."  # torchvision's models are looked at only once its operators are declared


def require_sound(cfg: DictConfig) -> RunConfig:
    """The typed configuration; schema first, then sizes, then the values of the parts."""
    config = validate(cfg)
    require_shape(config)
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
    """The size of the model; what only the data decides of it is guessed."""
    wanted = inspect.signature(target_of(config.model, "model")).parameters
    classes: Any = config.data.source.get("classes", 10)
    given = {"num_classes": classes, "vocabulary": 256, "block": config.data.source.get("block", 64)}
    known: dict[str, Any] = {k: v for k, v in given.items() if k in wanted and isinstance(v, int)}
    return parameters(config.model, known)
