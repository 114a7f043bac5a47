"""The Hydra entry point behind ``run.py`` and ``fedgm run``."""

import sys
import traceback
from typing import Any

import hydra
from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode
from omegaconf import DictConfig
from rich.console import Console

from fedgm import config
from fedgm.cli.starting import ready
from fedgm.errors import FedGMError


def task(cfg: DictConfig) -> dict[str, Any]:
    """One job. Alone it ends the process with a message; in a multirun it reports and lets others run."""
    from fedgm.job.launch import execute
    from fedgm.tasks.metric import scoreboard
    from fedgm.track.wandb_run import in_sweep_agent

    ready()
    hydra_config = HydraConfig.get()
    alone = hydra_config.mode != RunMode.MULTIRUN
    console = Console()
    try:
        result = execute(cfg, list(hydra_config.overrides.task), console, alone)
    except FedGMError as error:
        print(f"error: {error}", file=sys.stderr)
        if alone:
            raise SystemExit(error.exit_code) from None
        return {"status": "failed", "reason": str(error)}
    except KeyboardInterrupt:
        # Of a multirun, too: who stops one job means all. Of a sweep agent it is the end that early_terminate
        # wants: the agent takes codes above 0 for failures, and gives up after five at its start.
        raise SystemExit(0 if in_sweep_agent() else 130) from None
    except Exception as error:
        if alone:
            raise
        traceback.print_exc()
        return {"status": "failed", "reason": f"{type(error).__name__}: {error}"}
    board, final = scoreboard(result.summary), result.summary.get("final") or {}
    return {
        "status": result.status,
        "folder": str(result.folder),
        "metric": board.headline.replace("/", " "),
        "shown": board.show(board.headline, final),
    }


def main() -> None:
    """Compose with Hydra and run."""
    config.register()
    try:
        hydra.main(version_base="1.3", config_path=str(config.conf_dir()), config_name="config")(task)()
    except KeyboardInterrupt:  # between two jobs, or while the result is drawn
        raise SystemExit(130) from None
