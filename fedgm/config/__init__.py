"""A run's configuration: its schema, its parts by ``_target_``, and which of them a stored run may build."""

from fedgm.config.composing import (
    compose,
    refusal,
    register,
    reopened,
    require_sound,
    stored,
    validate,
    with_plain_paths,
)
from fedgm.config.options import conf_dir
from fedgm.config.schema import RunConfig, TrackConfig

__all__ = [
    "RunConfig",
    "TrackConfig",
    "compose",
    "conf_dir",
    "refusal",
    "register",
    "reopened",
    "require_sound",
    "stored",
    "validate",
    "with_plain_paths",
]
