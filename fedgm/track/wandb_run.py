"""The W&B side of a run: never asks, never hangs, and a resumed run is one run."""

import os
import shutil
from netrc import NetrcParseError, netrc
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlparse

from fedgm.config import Track
from fedgm.errors import ConfigError
from fedgm.track.rows import Row

if TYPE_CHECKING:
    import wandb

INIT_TIMEOUT = 15  # seconds; W&B's own 90 are a long silence on a machine without network
Mode = Literal["online", "offline", "disabled"]


def in_sweep_agent() -> bool:
    """Whether `wandb agent` started this process."""
    return bool(os.environ.get("WANDB_SWEEP_ID"))


def has_key() -> bool:
    """Whether W&B could log in without asking."""
    if os.environ.get("WANDB_API_KEY"):
        return True
    host = urlparse(os.environ.get("WANDB_BASE_URL", "https://api.wandb.ai")).hostname or ""
    try:
        return netrc(os.environ.get("NETRC")).authenticators(host) is not None
    except (OSError, NetrcParseError):
        return False


def resolve_mode(mode: str) -> Mode:
    """What ``track.mode`` comes to here; a sweep's record must reach its server."""
    asked = os.environ.get("WANDB_MODE") if mode == "auto" else mode
    if asked in ("online", "offline", "disabled"):
        resolved: Mode = asked
    else:
        resolved = "online" if has_key() else "offline"
    if in_sweep_agent() and resolved != "online":
        allowed = "inside a sweep agent the sweep waits for the rows: online, with a key (wandb login)"
        raise ConfigError("track.mode", resolved, allowed, "fedgm sweep FILE without an account")
    return resolved


class WandbRecord:
    """One W&B run. Offline it is written anew with all stored rows, so that one folder holds all of it."""

    run: "wandb.Run | None"

    def __init__(self, track: Track, folder: Path, run_id: str, config: dict[str, Any]) -> None:
        import wandb

        self.run = None
        self.sent = 0  # the last round that the record already holds
        mode = resolve_mode(track.mode)
        if mode == "disabled":
            return
        options: dict[str, Any] = {
            "project": track.project,
            "entity": track.entity,
            "group": track.group or config["name"],
            "tags": track.tags,
            "name": f"{folder.parent.name}/{folder.name}",
            "id": os.environ.get("WANDB_RUN_ID") if in_sweep_agent() else run_id,
            "dir": folder,
            "config": config,
        }
        quiet: dict[str, Any] = {"init_timeout": INIT_TIMEOUT, "silent": True, "console": "off"}
        if mode == "online":
            try:
                self.run = wandb.init(**options, resume="allow", settings=wandb.Settings(**quiet))
                self.sent = int(self.run.summary.get("round") or 0)
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
        if self.run is not None and (row["round"] or 0) > self.sent:
            self.run.log({k: v for k, v in row.items() if v is not None})

    def finish(self, summary: dict[str, Any] | None, failed: bool) -> None:
        """Close the run in any case, or the next job of a multirun would write into it."""
        if self.run is None:
            return
        for name in ("final", "best", "last10") if summary else ():
            for key, value in ((summary or {}).get(name) or {}).items():
                self.run.summary[f"{name}/{key}"] = value
        if summary:
            self.run.summary["status"] = summary["status"]
        self.run.finish(exit_code=1 if failed else 0)
        self.run = None


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:80]
