"""A logger: a line of text for each round."""

from argparse import Namespace
from pathlib import Path
from typing import Any

from fedgm.lightning import Logger


class Lines(Logger):
    """``lines.txt`` in the folder that it gets as ``save_dir``."""

    name, version = "lines", 0

    def __init__(self, save_dir: str, column: str) -> None:
        super().__init__()
        self.path, self.column = Path(save_dir) / "lines.txt", column

    def log_hyperparams(self, params: dict[str, Any] | Namespace, *args: Any, **kwargs: Any) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)

    def log_metrics(self, metrics: dict[str, float], step: int | None = None) -> None:
        with self.path.open("a") as file:
            file.write(f"{step} {metrics.get(self.column)}\n")
