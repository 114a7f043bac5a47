"""A stored run sent to W&B later: rows, configuration and summary."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any


def send(folder: Path, project: str | None = None, trust: Sequence[str] = ()) -> bool:
    """Replay one run's rows under its own id; False where the server could not be reached."""
    from omegaconf import OmegaConf

    from fedgm import config
    from fedgm.track import rows, summary
    from fedgm.track.wandb_run import WandbRecord

    config.register()
    cfg = config.stored(folder, trust)
    track = config.validate(cfg).track
    track.mode, track.project = "online", project or track.project
    known = summary.read(folder)
    values: Any = OmegaConf.to_container(cfg, resolve=True)
    record = WandbRecord(track, folder, f"{known['hash'][:16]}-{known['seed']}", values)
    reached = record.run is not None and not record.run.offline
    for row in rows.read(folder / "metrics.jsonl"):
        record.log(row)
    record.finish(known, failed=False)
    return reached
