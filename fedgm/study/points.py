"""The runs of a sweep: each point of the file times each seed, with the folder that its result has."""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from omegaconf import DictConfig

from fedgm.config.winners import reading
from fedgm.errors import require, require_fits
from fedgm.running.folder import locate
from fedgm.study.composition import Composition, Configs, word
from fedgm.study.sweep_file import MOST, SweepFile, Value

LONGEST = 120  # characters of the name of a sweep's folder
NOT_NAMED = (
    "profile=",
    "hydra.",
    "track.",
    "track=",
)  # in the names of the folders around it, or without effect


@dataclass(frozen=True)
class Job:
    """One run: a point of the sweep with one seed."""

    point: int
    seed: int
    values: dict[str, Value]
    overrides: tuple[str, ...]
    folder: Path
    hash: str
    rounds: int
    eval_every: int

    @cached_property
    def key(self) -> tuple[str, int]:
        """What identifies its run."""
        return self.hash, self.seed


@dataclass(frozen=True)
class SweepPlan:
    """All jobs of a sweep, and what they have in common."""

    file: SweepFile
    extra: tuple[str, ...]
    jobs: tuple[Job, ...]
    configs: Sequence[DictConfig]  # of each job, to be checked before the first run
    experiment: str
    algorithm: str
    reading: str | None  # start | current | literal, of autonomous clients
    profile: str
    output_dir: Path

    @cached_property
    def seeds(self) -> list[int]:
        """In ascending order."""
        return sorted({job.seed for job in self.jobs})

    @property
    def folder(self) -> Path:
        """Where the sweep's table and pictures go."""
        words = [
            self.file.name,
            *(word for word in self.extra if not word.startswith(NOT_NAMED)),
        ]
        words += [f"seed={self.seeds[0]}"] if self.seeds[0] else []
        name = re.sub(r"[^\w.,=+\-\[\]]+", "-", ",".join(words))
        if len(name) > LONGEST:
            name = f"{name[: LONGEST - 9]}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"
        return self.output_dir / "sweeps" / self.profile / name


def make(file: SweepFile, extra: Sequence[str], seeds: Sequence[int], output_dir: str) -> SweepPlan:
    """Every point with its hash and folder; the first that cannot be composed is refused with its key."""
    _require_free(file, extra)
    seeds = list(dict.fromkeys(seeds))  # a seed named twice is one run
    once = "seed" not in file.points[0] or len(seeds) == 1
    require_fits(once, "--seeds", ",".join(map(str, seeds)), "the sweep file sets seed", "--seeds 0")
    jobs_planned = len(file.points) * len(seeds)
    require(jobs_planned <= MOST, "--seeds", f"{jobs_planned:,} runs", f"at most {MOST:,}", "fewer seeds")
    shared = [*file.fixed, *extra, f"output_dir={output_dir}"]
    composition = Composition(file, shared)
    jobs: list[Job] = []
    planned: list[tuple[int, dict[str, Value]]] = []
    for number, values in enumerate(file.points):
        for seed in seeds:
            planned.append((number, {**values, "seed": values.get("seed", seed)}))
            cfg, at, hash = composition.point(*planned[-1])
            words = (*shared, *(word(k, v) for k, v in values.items()), f"seed={cfg.seed}")
            rounds, every = int(at["rounds"]), int(at["eval.every"])
            folder = locate(cfg, words, hash)
            jobs.append(Job(number, int(cfg.seed), values, words, folder, hash, rounds, every))
    _require_distinct(file, jobs)
    configs = Configs(composition, planned)
    first = configs[0]
    return SweepPlan(
        file, tuple(extra), tuple(jobs), configs, str(first.name), str(first.algorithm.name),
        reading(first.participation), str(first.profile.name), Path(output_dir),
    )  # fmt: skip


OURS = {
    "seed": "--seeds 0,1,2", "output_dir": "--output-dir DIR", "stop_after": "early_terminate in the file",
    "rerun": "another --output-dir",
}  # fmt: skip


def _require_free(file: SweepFile, extra: Sequence[str]) -> None:
    """Refuse overrides that fight the file or the runner."""
    for given in (*file.fixed, *extra):
        key, _, value = given.lstrip("+~").partition("=")
        require_fits(key not in OURS, key, value, "the sweep itself decides this", OURS.get(key, ""))
        require_fits(key not in file.points[0], key, value, f"the sweep file sets {key}", f"edit {file.path}")


def _require_distinct(file: SweepFile, jobs: list[Job]) -> None:
    """Refuse points that are one run, and rungs that would mean different rounds."""
    seen: dict[tuple[str, int], int] = {}
    for job in jobs:
        other = seen.setdefault(job.key, job.point)
        words = f"points {other} and {job.point}"
        require(
            other == job.point, f"{file.path.name}: {file.place}", words, "points that differ", "remove one"
        )
    lengths = {(job.rounds, job.eval_every) for job in jobs}
    key, hint = f"{file.path.name}: early_terminate", "remove it, or sweep other keys"
    allowed = "equal rounds and eval.every: a rung compares runs after the same round"
    require(file.halving is None or len(lengths) == 1, key, "with several lengths", allowed, hint)
    allowed = "other keys: seeds judge, they do not compete"
    require(file.halving is None or "seed" not in file.points[0], key, "with parameters.seed", allowed, hint)
