"""summary.json: what a run was and how it ended."""

import platform
import subprocess
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from fedgm.config import RunConfig
from fedgm.config.winners import origin
from fedgm.errors import FedGMError
from fedgm.files import digest
from fedgm.schedule import Plan
from fedgm.server import ServerRule
from fedgm.tasks.metric import Scoreboard, scoreboard
from fedgm.track import rows, shape
from fedgm.track.folder import read_json, write_json

PACKAGES = ("fedgm", "torch", "pytorch-lightning", "hydra-core", "wandb", "numpy")
DONE = ("finished", "diverged")
RESULTS = ("metrics.jsonl", "model.safetensors")  # without which a run is not done
WELL = (*DONE, "paused")  # ends that nobody has to look after


def facts_of(
    config: RunConfig, rule: ServerRule, plan: Plan, folder: Path, mark: str, board: Scoreboard
) -> dict[str, Any]:
    """All that is known before the first round."""
    return {
        "status": "running",
        "name": config.name,
        "algorithm": config.algorithm["name"],
        "schedule": config.schedule["name"],
        "participation": config.participation["name"],
        "profile": config.profile.name,
        "model": config.model["name"],
        "data": config.data.name,
        "task": config.task["name"],
        **board.describe(),
        "seed": config.seed,
        "rounds": config.rounds,
        "origin": origin(config.best, config.winners, config.algorithm, config.participation),
        "stages": [{"rounds": stage.rounds, **stage.hyper} for stage in plan.stages],
        "last": plan.at(config.rounds)[1],
        "gain": rule.gain(plan.at(1)[1]),
        "hash": mark,
        "folder": str(folder.relative_to(config.output_dir)),
        "versions": versions(),
        "commit": commit(),
    }


def write(
    folder: Path, static: dict[str, Any], status: str, sync: bool = False, **more: Any
) -> dict[str, Any]:
    """Write the summary with what the rows say by now, and return it."""
    own = rows.read(folder / "metrics.jsonl")
    summary = {**static, "status": status, **rows.summarise(own, scoreboard(static)), **more}
    write_json(folder / "summary.json", summary, sync)
    return summary


def read(folder: Path) -> dict[str, Any]:
    """The summary, or nothing where there is none, or a damaged one."""
    found = read_json(folder / "summary.json") or {}
    return found if shape.is_summary(found) else {}


def own(folder: Path) -> dict[str, Any]:
    """The summary as the command of the run needs it; nothing where it lacks a key."""
    found = read(folder)
    return found if shape.is_own(found) else {}


def is_damaged(folder: Path) -> bool:
    """Whether there is a summary that the command of the run cannot use."""
    return (folder / "summary.json").exists() and not own(folder)


def digests(folder: Path, names: Sequence[str] = RESULTS) -> dict[str, str]:
    """Checksums of a run's results, as far as they are there."""
    paths = [folder / name for name in names]
    return {path.name: digest(path.read_bytes()) for path in paths if path.is_file()}


def require_whole(folder: Path, done: dict[str, Any]) -> None:
    """A run that is done has its results: else it is refused, because only the user knows where they went."""
    now, own = digests(folder), rows.read(folder / "metrics.jsonl")
    lost = [name for name in RESULTS if name not in now] or _changed(done, now, own)
    if not lost and not agrees(done, own):
        lost = ["summary.json (changed: its results are not those of the rows)"]
    if lost:
        raise FedGMError(
            f"{folder}: the run is {done['status']}, but damaged: {', '.join(lost)} "
            f"{'is' if len(lost) == 1 else 'are'} no longer there as written. "
            "Put it back, or type rerun=true to run it again"
        )


def is_whole(folder: Path, done: dict[str, Any], own: list[rows.Row]) -> bool:
    """The same for readers of many runs: of a model they only see whether it is there."""
    known = done.get("digests") or {}
    gone = [name for name in known if not (folder / name).is_file()]
    return not gone and not _changed(done, digests(folder, RESULTS[:1]), own)


def agrees(known: dict[str, Any], own: list[rows.Row]) -> bool:
    """Whether a summary says what its rows say."""
    try:
        found = rows.summarise(own, scoreboard(known))
    except (KeyError, StopIteration):  # a metric that the rows, or the summary itself, do not have
        return False
    return all(found[key] == known.get(key) for key in ("final", "best", "last10"))


def _changed(done: dict[str, Any], now: dict[str, str], own: list[rows.Row]) -> list[str]:
    """Results that are there, but not as the run has written them; older versions kept no checksums."""
    known = done.get("digests") or {}
    if changed := [f"{name} (changed)" for name in now if known.get(name, now[name]) != now[name]]:
        return changed
    whole = done.get("rounds_done") in (None, len(own))
    return [] if whole else [f"metrics.jsonl (changed: it has {len(own)} rows)"]


def changes(before: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """What differs between the program that began a run and the one that continues it."""
    old, new = before.get("versions") or {}, now["versions"]
    notes = [f"{k} {old[k]} -> {new[k]}" for k in new if k in old and old[k] != new[k]]
    if before.get("commit") != now["commit"]:
        notes.append(f"commit {before.get('commit')} -> {now['commit']}")
    return notes


def versions() -> dict[str, str]:
    """Versions of what a result depends on; the instruction set too: AVX2 and AVX512 round differently."""
    import torch  # readers of summaries do without it

    found = {"python": platform.python_version(), "cpu": torch.backends.cpu.get_cpu_capability()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "source"
    return found


def commit() -> str | None:
    """The commit of a checkout, with a mark where files were changed; None for an installed package."""
    root = Path(__file__).parents[2]
    if not (root / ".git").exists():
        return None
    try:
        return subprocess.run(
            ["git", "describe", "--always", "--dirty", "--abbrev=12"],
            cwd=root, capture_output=True, text=True, check=True, timeout=10,
        ).stdout.strip()  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return None
