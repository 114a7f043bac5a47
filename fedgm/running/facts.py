"""summary.json as a run writes it: what is known before the first round, and how it stands."""

import platform
import subprocess
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from fedgm.config import RunConfig
from fedgm.config.winners import origin
from fedgm.results import rows
from fedgm.results.summary import Status, covered
from fedgm.running.parts import Parts
from fedgm.seals import SUMMARY, checksums, write_json
from fedgm.server.plan import Decided, Plan
from fedgm.tasks.metric import scoreboard

PACKAGES = ("fedgm", "torch", "pytorch-lightning", "hydra-core", "wandb", "numpy")


def facts_of(config: RunConfig, parts: Parts, folder: Path, mark: str) -> dict[str, Any]:
    """All that is known before the first round."""
    rule, plan, board = parts.engine.rule, parts.engine.plan, parts.board
    return {
        "status": Status.RUNNING,
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
        **({"decided": "during the run"} if isinstance(plan, Decided) else {}),
        "gain": rule.gain(plan.at(1)[1]),
        "hash": mark,
        "folder": str(folder.relative_to(config.output_dir)),
        "versions": versions(),
        "commit": commit(),
    }


def of_plan(plan: Plan) -> dict[str, Any]:
    """Stages that were decided during the run, as they are by now."""
    if not isinstance(plan, Decided):
        return {}
    stages = [{"rounds": stage.rounds, **stage.hyper} for stage in plan.stages]
    return {"stages": stages, "last": plan.stages[-1].hyper}


def of_data(given: Mapping[str, Any]) -> dict[str, Any]:
    """What only the data know: the number of classes, so that readers know what chance is."""
    return {"classes": given.get("num_classes")}


def write(
    folder: Path, static: dict[str, Any], status: str, sync: bool = False, **more: Any
) -> dict[str, Any]:
    """Write the summary with what the rows say by now and the checksums of what it covers; return it."""
    stored = rows.read(folder / "metrics.jsonl")
    summary = {**static, "status": status, **rows.summarise(stored, scoreboard(static)), **more}
    summary["digests"] = checksums(folder, covered(status))
    return write_json(folder / SUMMARY, summary, sync)


def versions() -> dict[str, str]:
    """Versions of what a result depends on; the instruction set too: AVX2 and AVX512 round differently."""
    import torch  # readers of summaries do without it

    installed = {"python": platform.python_version(), "cpu": torch.backends.cpu.get_cpu_capability()}
    for package in PACKAGES:
        try:
            installed[package] = version(package)
        except PackageNotFoundError:
            installed[package] = "source"
    return installed


WRITTEN = (":!docs", ":!conf/best")  # by sweeps, beside runs that go on: rows, winners


def commit() -> str | None:
    """The commit of a checkout, with a mark where its code was changed; None for an installed package."""
    root = Path(__file__).parents[2]
    if not (root / ".git").exists():
        return None

    def git(*words: str) -> subprocess.CompletedProcess[str]:
        command = ["git", "--no-optional-locks", *words]
        return subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=10)

    try:
        named = git("describe", "--always", "--abbrev=12")
        changed = git("diff", "--no-ext-diff", "--quiet", "HEAD", "--", ".", *WRITTEN).returncode != 0
    except (OSError, subprocess.SubprocessError):
        return None
    return named.stdout.strip() + "-dirty" * changed if named.returncode == 0 else None
