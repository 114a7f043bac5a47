"""The W&B side of a run: never asks, never hangs, and a resumed run is one run."""

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from fedgm.config import TrackConfig
from fedgm.config.identity import dotted
from fedgm.errors import ClashError, ConfigError
from fedgm.plain import plain
from fedgm.results.curve import SCORE, Score
from fedgm.results.rows import Row
from fedgm.results.run import Run
from fedgm.running.wandb_key import has_key

if TYPE_CHECKING:
    import wandb

INIT_TIMEOUT = 15  # seconds; W&B's own 90 are a long silence on a machine without network
LONGEST = 128  # characters of a group's name
OLD_NAMES = {"dryrun": "offline", "run": "online"}  # W&B still accepts them
MODES = ("online", "offline", "disabled", "shared", *OLD_NAMES)  # of WANDB_MODE
Mode = Literal["online", "offline", "disabled"]


def in_sweep_agent() -> bool:
    """Whether `wandb agent` started this process."""
    return bool(os.environ.get("WANDB_SWEEP_ID"))


def resolve_mode(mode: str) -> Mode:
    """What ``track.mode`` comes to here; a sweep's record must reach its server.

    Online without a key is offline: W&B would show a menu on a terminal and wait.
    """
    if mode != "disabled":
        _require_known_mode()
    asked = _asked(mode)
    resolved: Mode = asked if asked in ("offline", "disabled") else "online" if has_key() else "offline"
    if in_sweep_agent() and resolved != "online":
        allowed = "inside a sweep agent the sweep waits for the rows: online, with a key (wandb login)"
        raise ClashError("track.mode", resolved, allowed, "fedgm sweep FILE without an account")
    return resolved


def _asked(mode: str) -> str | None:
    """What the user wants: ``track.mode``, or where that is auto, W&B's own variable."""
    variable = os.environ.get("WANDB_MODE")
    return OLD_NAMES.get(variable or "", variable) if mode == "auto" else mode


def _require_known_mode() -> None:
    """Refuse a value of W&B's variable for which W&B would raise a traceback."""
    mode = os.environ.get("WANDB_MODE")
    if mode and mode not in MODES:
        raise ConfigError("WANDB_MODE", mode, f"one of {', '.join(MODES)}", "unset WANDB_MODE")


class WandbRecord:
    """One W&B run. Offline it is written again with all stored rows, so that one folder holds all of it."""

    run: "wandb.Run | None"

    def __init__(
        self, track: TrackConfig, folder: Path, run_id: str, config: dict[str, Any], facts: Mapping[str, Any]
    ) -> None:
        import wandb

        self.run = None
        self.folder, self.artifacts = folder, track.artifacts
        self.sent = -1  # the last round that the record already holds; round 0 is the untrained model
        self.score = Score()
        mode = resolve_mode(track.mode)
        if mode == "disabled":
            return
        if mode == "offline" and _asked(track.mode) == "online":
            print("track.mode=online needs a key (`wandb login`): recording offline; `wandb sync` sends it")
        options: dict[str, Any] = {
            "project": track.project,
            "entity": track.entity,
            "group": (track.group or setting_of(folder))[:LONGEST],
            "job_type": config["algorithm"]["name"],
            "tags": [*track.tags, *_tags(config)],
            "name": f"{folder.parent.name}/{folder.name}",
            "id": os.environ.get("WANDB_RUN_ID") if in_sweep_agent() else run_id,
            "dir": folder,
            "config": shown_config(config, folder, facts),
        }
        quiet: dict[str, Any] = {"init_timeout": INIT_TIMEOUT, "silent": True, "console": "wrap"}
        if mode == "online":
            try:
                self.run = wandb.init(**options, resume="allow", settings=wandb.Settings(**quiet))
                self.sent = int(self.run.summary.get("round", -1))
            except Exception as error:
                if in_sweep_agent():
                    raise
                print(
                    f"W&B cannot be reached ({_first_line(error)}): recording offline; `wandb sync` sends it"
                )
                wandb.teardown()  # the attempt would go on holding the run's id
                mode = "offline"
        if mode == "offline":
            shutil.rmtree(folder / "wandb", ignore_errors=True)
            self.run = wandb.init(**options, mode="offline", settings=wandb.Settings(**quiet))
        assert self.run is not None
        self.run.define_metric("round")
        self.run.define_metric("*", step_metric="round")

    def log(self, row: Row) -> None:
        """Send a round, once; ``round`` is the x axis, never W&B's own step."""
        means = self.score.after(row)
        if self.run is not None and (row["round"] or 0) > self.sent:
            self.run.log({k: v for k, v in {**row, **means}.items() if v is not None})

    def finish(self, summary: dict[str, Any] | None, failed: bool) -> None:
        """Close the run in any case, or the next job of a multirun would write into it."""
        if self.run is None:
            return
        for name in ("final", "best", "last10") if summary else ():
            for key, value in ((summary or {}).get(name) or {}).items():
                self.run.summary[f"{name}/{key}"] = value
        if summary:
            self.run.summary["status"] = summary["status"]
            for column, chance in _chance(summary).items():  # what a run that diverged is ranked by
                self.run.summary[f"{SCORE}{column}"] = chance
            self._attach()
        self.run.finish(exit_code=1 if failed else 0)
        self.run = None

    def _attach(self) -> None:
        """The picture of the curves as a panel, and with ``track.artifacts`` the model."""
        import wandb

        picture, model = self.folder / "curves.png", self.folder / "model.safetensors"
        assert self.run is not None
        if picture.exists():
            self.run.log({"curves": wandb.Image(str(picture))})
        if self.artifacts and model.exists():
            artifact = wandb.Artifact(f"model-{self.run.id}", type="model")
            artifact.add_file(str(model))
            self.run.log_artifact(artifact)


def setting_of(folder: Path) -> str:
    """What all seeds of a configuration share: the name of their folder, which ends in its hash."""
    return folder.parent.name


def shown_config(config: Mapping[str, Any], folder: Path, facts: Mapping[str, Any]) -> dict[str, Any]:
    """Keys as people type them: ``algorithm`` is a name and ``algorithm.eta`` a number, in a sweep or not.

    In a sweep W&B keeps the sweep's own words (``algorithm.nu: ${algorithm.beta}``): there ``resolved``
    holds the values.
    """
    names = {group: node["name"] for group, node in config.items() if _has_name(node)}
    about = {"setting": setting_of(folder), "commit": facts.get("commit")}
    if facts.get("parameters"):
        about["parameters"] = facts["parameters"]
    whole = {"resolved": dict(config)} if in_sweep_agent() else {}
    return {**dotted(config), **names, **about, **whole}


def _has_name(node: Any) -> bool:
    return isinstance(node, Mapping) and "name" in node


def _chance(summary: Mapping[str, Any]) -> dict[str, float]:
    """The score of a run that ended as diverged, by column; nothing for others."""
    run = Run(dict(summary), {}, [])
    chances = {column: run.chance(column) for column in run.board.columns} if run.is_divergent else {}
    return {column: chance for column, chance in chances.items() if chance is not None}


def _tags(config: dict[str, Any]) -> list[str]:
    """What people filter runs by; W&B takes at most 64 characters."""
    groups = [config[group]["name"] for group in ("algorithm", "schedule", "participation", "profile")]
    return [str(name)[:64] for name in dict.fromkeys([config["name"], *groups])]


def _first_line(error: BaseException) -> str:
    return plain((str(error).splitlines() or [type(error).__name__])[0], most=120)
