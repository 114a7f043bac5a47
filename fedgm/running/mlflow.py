"""MLflow into files of the run folder, or to a server: Lightning's own logger, started without surprises."""

import os
from typing import Any

from fedgm.lightning import MLFlowLogger

# MLflow 3 takes files only where this is said (a database needs packages that mlflow-skinny lacks), and
# reports its use over the network unless it is told not to. What a user has set is left as it is.
SETTINGS = {"MLFLOW_ALLOW_FILE_STORE": "true", "MLFLOW_DISABLE_TELEMETRY": "true"}


class MlflowLogger(MLFlowLogger):
    """``track=mlflow``; without a ``tracking_uri`` rows are files in ``save_dir``."""

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
        super().__init__(experiment_name, run_name, tracking_uri, save_dir=save_dir, **more)
