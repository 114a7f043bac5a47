"""A run folder's configuration, ready to be built from: what a command line is refused for, it is, too."""

from collections.abc import Sequence
from pathlib import Path

from fedgm.config.composing import register, stored, validate
from fedgm.config.limits import require_possible
from fedgm.config.schema import RunConfig
from fedgm.config.shape import require_shape


def reopened(folder: Path, trust: Sequence[str] = ()) -> RunConfig:
    """The typed configuration of a stored run: its targets admitted, its sizes possible here."""
    register()
    config = validate(stored(folder, trust))
    require_shape(config)
    require_possible(config)
    return config
