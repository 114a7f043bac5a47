"""Comet into an archive of the run folder, or to its server.

Every start of a run, also one that continues, is a new experiment of Comet's with all rows since round 0. The
archive of the start before is replaced; a server keeps both. A start that is killed leaves no archive.
Lightning's own logger keeps nothing where it is offline: it disables Comet there.
"""

import os
from argparse import Namespace
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from fedgm.config.identity import dotted
from fedgm.lightning import Logger, rank_zero_only


class CometLogger(Logger):
    """``track=comet``; with ``online`` rows go to the server, else to an archive in ``save_dir``."""

    def __init__(
        self, save_dir: str, project: str, run_name: str | None = None, online: bool = False
    ) -> None:
        super().__init__()
        os.environ.setdefault("COMET_DISABLE_AUTO_LOGGING", "1")  # it would change torch and others
        self._home, self._project, self._run_name, self._online = Path(save_dir), project, run_name, online
        self._comet = import_module("comet_ml")
        self._experiment: Any = None

    @property
    def name(self) -> str:
        """The project."""
        return self._project

    @property
    def version(self) -> str | None:
        """Comet's key of the run."""
        return None if self._experiment is None else self._experiment.get_key()

    @property
    def experiment(self) -> Any:
        """Comet's own object, opened when there is something to log."""
        if self._experiment is None:
            self._home.mkdir(parents=True, exist_ok=True)
            settings = self._comet.ExperimentConfig(name=self._run_name, offline_directory=str(self._home))
            self._experiment = self._comet.start(
                project=self._project, online=self._online, experiment_config=settings
            )
        return self._experiment

    @rank_zero_only
    def log_hyperparams(self, params: dict[str, Any] | Namespace, *args: Any, **kwargs: Any) -> None:
        """The configuration, by dotted keys."""
        self.experiment.log_parameters(dotted(params if isinstance(params, dict) else vars(params)))

    @rank_zero_only
    def log_metrics(self, metrics: Mapping[str, float], step: int | None = None) -> None:
        """A row, at its round."""
        self.experiment.log_metrics(dict(metrics), step=step)

    @rank_zero_only
    def finalize(self, status: str) -> None:
        """End the run: an archive is whole, a server has all."""
        if self._experiment is not None:
            self._experiment.end()
