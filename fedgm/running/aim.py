"""Aim into a repository of the run folder, or into one for all runs.

Aim's own logger for Lightning is a class that cannot be named where Aim is not installed.
"""

from argparse import Namespace
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from fedgm.lightning import Logger, rank_zero_only


class AimLogger(Logger):
    """``track=aim``; without a ``repo`` the repository is ``save_dir``."""

    def __init__(
        self, save_dir: str, experiment: str, run_name: str | None = None, repo: str | None = None
    ) -> None:
        super().__init__()
        self._aim = import_module("aim")
        self._home, self._group, self._run_name = Path(repo or save_dir).expanduser(), experiment, run_name
        self._run: Any = None

    @property
    def name(self) -> str:
        """The experiment."""
        return self._group

    @property
    def version(self) -> str | None:
        """Aim's hash of the run."""
        return None if self._run is None else self._run.hash

    @property
    def experiment(self) -> Any:
        """Aim's own run, opened when there is something to log."""
        if self._run is None:
            self._home.mkdir(parents=True, exist_ok=True)
            quiet: dict[str, Any] = {"system_tracking_interval": None, "capture_terminal_logs": False}
            self._run = self._aim.Run(repo=str(self._home), experiment=self._group, **quiet)
            self._run.name = self._run_name or self._run.hash
        return self._run

    @rank_zero_only
    def log_hyperparams(self, params: dict[str, Any] | Namespace, *args: Any, **kwargs: Any) -> None:
        """The configuration, as a tree."""
        self.experiment["hparams"] = params if isinstance(params, dict) else vars(params)

    @rank_zero_only
    def log_metrics(self, metrics: Mapping[str, float], step: int | None = None) -> None:
        """A row, at its round."""
        for name, value in metrics.items():
            self.experiment.track(value, name=name, step=step)

    @rank_zero_only
    def finalize(self, status: str) -> None:
        """Close the run: everything is on the disk."""
        if self._run is not None:
            self._run.close()
