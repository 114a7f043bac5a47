"""A sweep's pictures as one W&B run of job type ``sweep``, where runs go online."""

import hashlib
from pathlib import Path
from typing import Any

from fedgm.running.wandb_run import INIT_TIMEOUT, resolve_mode
from fedgm.study.points import SweepPlan


def send(plan: SweepPlan, pictures: list[Path]) -> str | None:
    """Send them; what to tell the user, or None where there is nothing to tell."""
    track = plan.configs[0].track
    if not pictures or resolve_mode(str(track.mode)) != "online":
        return None
    import wandb

    quiet: dict[str, Any] = {"init_timeout": INIT_TIMEOUT, "silent": True, "console": "off"}
    try:
        run = wandb.init(
            project=track.project, entity=track.entity, group=plan.experiment, job_type="sweep",
            name=plan.folder.name, dir=plan.folder, settings=wandb.Settings(**quiet), id=_id(plan),
            resume="allow",
        )  # fmt: skip
        run.log({picture.stem: wandb.Image(str(picture)) for picture in pictures})
        run.finish()
    except Exception as error:  # a picture that does not arrive must not hide a result that is stored
        reason = (str(error).splitlines() or [type(error).__name__])[0][:80]
        return f"W&B did not take the pictures ({reason}); they are in {plan.folder}"
    return f"{len(pictures)} pictures sent to the W&B project {track.project}"


def _id(plan: SweepPlan) -> str:
    """The same run of W&B for the same sweep: pictures that were sent again replace the old ones."""
    runs = "".join(job.hash for job in plan.jobs)
    return f"sweep-{hashlib.sha256(runs.encode()).hexdigest()[:16]}"
