"""One run, from a composed configuration to its result; Lightning is imported once that is sound."""

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from omegaconf import DictConfig

from fedgm.config import require_sound
from fedgm.config.identity import identity
from fedgm.errors import ConfigError, FedGMError, require_fits
from fedgm.running.folder import locate
from fedgm.screen import Screen
from fedgm.starting import ready, without_treespec_warning

if TYPE_CHECKING:
    from fedgm.federated.cohort import CohortTrainer
    from fedgm.lightning import pl
    from fedgm.running.one_run import RunResult


@without_treespec_warning()
def execute(
    cfg: DictConfig,
    overrides: Sequence[str],
    console: Screen,
    alone: bool = True,
    callbacks: "Sequence[pl.Callback]" = (),
    cohorts: "Callable[..., CohortTrainer] | None" = None,
) -> "RunResult":
    """Run it, continue it, or report that it is done; ``alone`` is False in a multirun.

    ``cohorts`` trains the clients; without it this machine does.
    """
    config = require_sound(cfg)
    _require_backend()
    mark = identity(cfg)
    folder = locate(cfg, overrides, mark)
    from fedgm.participation.live import Live
    from fedgm.running.parts import build_parts  # imports torch

    parts = build_parts(config, folder, overrides)
    parts.cohorts = cohorts
    reason = "its clients arrive on a real clock, which only a deployment has"
    fits = cohorts is not None or not isinstance(parts.participation, Live)
    require_fits(fits, "participation", config.participation["name"], reason, "fedgm deploy local")
    from fedgm.running.one_run import OneRun  # imports Lightning

    ready()  # imports are over: Ctrl-C is the run's from now on
    try:
        return OneRun(config, cfg, parts, folder, mark, console, alone, callbacks).result()
    except OSError as error:  # before training, or after it: between them the run itself reports it
        if error.filename is None:
            raise
        path = error.filename2 or error.filename
        hint = "Give read and write permission, or move what is in the way"
        raise FedGMError(f"{path}: {error.strerror}. {hint}") from None


def require_working(cfg: DictConfig, overrides: Sequence[str]) -> None:
    """Refuse what the configuration alone shows to be wrong; nothing is loaded and nothing written."""
    config = require_sound(cfg)
    from fedgm.running.parts import build_parts

    build_parts(config, None, overrides)


def _require_backend() -> None:
    """Refuse a backend that matplotlib does not have, before training: with it, Lightning's import fails."""
    if (name := os.environ.get("MPLBACKEND", "agg")).lower() != "agg":  # ours, which is always there
        try:
            import matplotlib
        except ValueError as error:
            raise ConfigError("MPLBACKEND", name, str(error), "unset MPLBACKEND") from None
        del matplotlib
