"""Where rows go besides metrics.jsonl: Lightning's own Logger interface, W&B among them."""

import inspect
import re
import shutil
from argparse import Namespace
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf

from fedgm.clock import wall
from fedgm.config import RunConfig, TrackConfig
from fedgm.config.parts import build, check_part, target_of
from fedgm.errors import ClashError, require
from fedgm.federated.events import StageEnd
from fedgm.lightning import Logger, rank_zero_only
from fedgm.running.roundlog import RoundLog
from fedgm.running.wandb_run import WandbRecord, resolve_mode

TAKEN = ("checkpoints", "wandb")  # folders of a run that are not loggers'


class WandbLogger(Logger):
    """One W&B run behind Lightning's interface; opened by the first worker, when there is something to log.

    Lightning's own W&B logger sets ``WANDB_MODE`` for the whole process, and ends a run before its result is
    known.
    """

    def __init__(self, open_record: Callable[[], WandbRecord]) -> None:
        super().__init__()
        self._open = open_record
        self._record: WandbRecord | None = None

    @property
    def name(self) -> str:
        """Of the kind of logger."""
        return "wandb"

    @property
    def version(self) -> str | None:
        """W&B's id of the run."""
        return self._record.run.id if self._record and self._record.run else None

    @property
    def record(self) -> WandbRecord:
        """The W&B side."""
        if self._record is None:
            self._record = self._open()
        return self._record

    @property
    def experiment(self) -> Any:
        """W&B's own run, or None where it is disabled."""
        return self.record.run

    @rank_zero_only
    def log_hyperparams(self, params: dict[str, Any] | Namespace, *args: Any, **kwargs: Any) -> None:
        """The configuration is given when the run is opened."""

    @rank_zero_only
    def log_metrics(self, metrics: Mapping[str, float], step: int | None = None) -> None:
        """Send a row, once; what other callbacks log gets the round as its x axis."""
        if "round" in metrics:
            self.record.log(dict(metrics))
        elif self.record.run is not None:
            self.record.run.log({**metrics, "round": step})

    def announce(self, end: StageEnd) -> None:
        """Where a stage ended, in W&B's summary."""
        if self.record.run is not None:
            self.record.run.summary[f"stage/{end.stage} ends"] = end.round

    def close(self, summary: dict[str, Any], failed: bool) -> None:
        """End the run with its result, whatever it is."""
        if self._record is not None:
            self._record.finish(summary, failed)


def check_loggers(track: TrackConfig) -> None:
    """Refuse a logger whose name or values are wrong, before anything is written."""
    for name, node in track.loggers.items():  # its folder is emptied: it must be its own
        plain = re.fullmatch(r"[A-Za-z_][\w-]*", name) and name not in TAKEN
        allowed = f"a plain word other than {', '.join(TAKEN)}"
        require(bool(plain), "track.loggers", name, allowed, "track.loggers.mine")
        key = f"track.loggers.{name}"
        check_part(node, key, given=set(_place(node, key, Path())))


def build_loggers(track: TrackConfig, folder: Path) -> list[Logger]:
    """The loggers of ``track.loggers``, each with an empty folder: all stored rows are replayed into it.

    It is emptied first: some loggers write there as soon as they are built.
    """
    for name in track.loggers:
        shutil.rmtree(folder / name, ignore_errors=True)
    return [_build(name, node, folder / name) for name, node in track.loggers.items()]


def _build(name: str, node: Mapping[str, Any], home: Path) -> Logger:
    key = f"track.loggers.{name}"
    try:
        return build(node, key, kind=Logger, **_place(node, key, home))
    except ModuleNotFoundError as error:
        reason = f"it needs a package that is not installed ({str(error).splitlines()[0].rstrip('.')})"
        raise ClashError("track", name, reason, f"pip install 'fedgm[{name}]', or track=csv") from None


def _place(node: Mapping[str, Any], key: str, home: Path) -> dict[str, str]:
    """The folder, for a logger with ``save_dir``: Lightning's own word, and no type tells it apart."""
    asked = "save_dir" in inspect.signature(target_of(node, key)).parameters
    return {"save_dir": str(home)} if asked and "save_dir" not in node else {}


def round_log(
    config: RunConfig,
    cfg: DictConfig,
    folder: Path,
    facts: Mapping[str, Any],
    loggers: Callable[[], list[Logger]],
) -> RoundLog:
    """The record of a run, with W&B first among its loggers; ``facts`` are read when W&B is opened."""
    values: Any = OmegaConf.to_container(cfg, resolve=True)
    again = f"-{int(wall())}" if config.rerun else ""  # W&B keeps the run that is done again under its id
    run_id = f"{facts['hash'][:16]}-{config.seed}{again}"
    every = loggers()
    if resolve_mode(config.track.mode) != "disabled":
        every.insert(0, WandbLogger(lambda: WandbRecord(config.track, folder, run_id, values, facts)))
    return RoundLog(folder / "metrics.jsonl", every, values, config.checkpoint.sync)
