"""MLflow into files of the run folder, or to a server: Lightning's own logger, started without surprises."""

import json
import os
from argparse import Namespace
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from fedgm import intake
from fedgm.files import write_atomically
from fedgm.lightning import MLFlowLogger, rank_zero_only

# MLflow 3 takes files only where this is said (a database needs packages that mlflow-skinny lacks), and
# reports its use over the network unless it is told not to. What a user has set is left as it is.
SETTINGS = {"MLFLOW_ALLOW_FILE_STORE": "true", "MLFLOW_DISABLE_TELEMETRY": "true"}


class MlflowLogger(MLFlowLogger):
    """``track=mlflow``; without a ``tracking_uri`` rows are files in ``save_dir``.

    Files are written anew at every start. A server keeps what it has: the id of its run is stored beside
    ``save_dir``, and a run that continues sends the rounds that are missing there.
    """

    def __init__(
        self,
        save_dir: str,
        experiment_name: str,
        run_name: str | None = None,
        tracking_uri: str | None = None,
        **more: Any,
    ) -> None:
        for name, value in SETTINGS.items():
            os.environ.setdefault(name, value)
        self._stored = Path(f"{save_dir}-run.json") if tracking_uri else None
        known = _known(self._stored, tracking_uri)
        more.setdefault("run_id", known)
        super().__init__(experiment_name, run_name, tracking_uri, save_dir=save_dir, **more)
        self._continues = known is not None

    @cached_property
    def last(self) -> int:
        """The last round that the server has; -1 for none."""
        history = self.experiment.get_metric_history(self.run_id, "round") if self._continues else []
        return max((metric.step for metric in history), default=-1)

    @rank_zero_only
    def log_hyperparams(self, params: dict[str, Any] | Namespace) -> None:
        """The configuration, once: MLflow refuses another value for a key, as stop_after may have."""
        if self._continues:
            return
        super().log_hyperparams(params)
        if self._stored is not None:
            facts = {"run_id": self.run_id, "tracking_uri": self._tracking_uri}
            write_atomically(self._stored, json.dumps(facts))

    @rank_zero_only
    def log_metrics(self, metrics: Mapping[str, float], step: int | None = None) -> None:
        """A row, at its round, unless the server has it."""
        if (step or 0) > self.last:
            super().log_metrics(metrics, step)


def _known(path: Path | None, tracking_uri: str | None) -> str | None:
    """The id of the server's run, if an earlier start has stored one of this server."""
    if path is None or not path.is_file():
        return None
    try:
        facts = intake.from_json(intake.read_bytes(path, 2**16))
    except intake.UnfitFileError:
        return None
    return (
        facts.get("run_id") if isinstance(facts, dict) and facts.get("tracking_uri") == tracking_uri else None
    )
