"""The record of a run before its first row: which loggers it has, and under which id W&B knows it."""

from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf

from fedgm.clock import wall
from fedgm.config import RunConfig
from fedgm.running.loggers import WandbLogger, build_loggers
from fedgm.running.roundlog import RoundLog
from fedgm.running.wandb_run import WandbRecord, resolve_mode


def round_log(config: RunConfig, cfg: DictConfig, folder: Path, mark: str) -> RoundLog:
    """The record of a run, with W&B first among its loggers; nothing is opened yet."""
    values: Any = OmegaConf.to_container(cfg, resolve=True)
    again = f"-{int(wall())}" if config.rerun else ""  # W&B keeps the run that is done again under its id
    run_id = f"{mark[:16]}-{config.seed}{again}"
    loggers = build_loggers(config.track, folder)
    if resolve_mode(config.track.mode) != "disabled":
        loggers.insert(0, WandbLogger(lambda: WandbRecord(config.track, folder, run_id, values)))
    return RoundLog(folder / "metrics.jsonl", loggers, values, config.checkpoint.sync)
