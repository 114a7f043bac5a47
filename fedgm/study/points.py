"""The runs of a sweep: each point of the file times each seed, with the folder that its result has."""

import hashlib
import re
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from fedgm.config import compose, conf_dir
from fedgm.config.identity import identity
from fedgm.config.winners import reading
from fedgm.errors import ClashError, ConfigError, near, require, require_fits
from fedgm.running.folder import locate
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

    @property
    def key(self) -> tuple[str, int]:
        """What identifies its run."""
        return self.hash, self.seed


@dataclass(frozen=True)
class SweepPlan:
    """All jobs of a sweep, and what they have in common."""

    file: SweepFile
    extra: tuple[str, ...]
    jobs: tuple[Job, ...]
    configs: tuple[DictConfig, ...]  # of each job, to be checked before the first run
    experiment: str
    algorithm: str
    reading: str | None  # start | current | literal, of autonomous clients
    profile: str
    output_dir: Path

    @property
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
    """Compose every point; the first that cannot be composed is refused with its key."""
    _require_free(file, extra)
    once = "seed" not in file.points[0] or len(seeds) == 1
    require_fits(once, "--seeds", ",".join(map(str, seeds)), "the sweep file sets seed", "--seeds 0")
    jobs_planned = len(file.points) * len(seeds)
    require(jobs_planned <= MOST, "--seeds", f"{jobs_planned:,} runs", f"at most {MOST:,}", "fewer seeds")
    shared = [*file.fixed, *extra, f"output_dir={output_dir}"]
    bases: dict[tuple[str, ...], DictConfig] = {}
    jobs: list[Job] = []
    configs: list[DictConfig] = []
    for number, values in enumerate(file.points):
        groups = tuple(_word(key, value) for key, value in values.items() if _is_group(key))
        if groups not in bases:
            bases[groups] = _composed(file, [*shared, *groups], number)
        for seed in seeds:
            cfg = _updated(file, bases[groups], {**values, "seed": values.get("seed", seed)})
            words = (*shared, *(_word(k, v) for k, v in values.items()), f"seed={cfg.seed}")
            hash, rounds, every = identity(cfg), int(cfg.rounds), int(cfg.eval.every)
            folder = locate(cfg, words, hash)
            jobs.append(Job(number, int(cfg.seed), values, words, folder, hash, rounds, every))
            configs.append(cfg)
    _require_distinct(file, jobs)
    first = configs[0]
    return SweepPlan(
        file, tuple(extra), tuple(jobs), tuple(configs), str(first.name), str(first.algorithm.name),
        reading(first.participation), str(first.profile.name), Path(output_dir),
    )  # fmt: skip


OURS = {
    "seed": "--seeds 0,1,2", "output_dir": "--output-dir DIR", "stop_after": "early_terminate in the file",
    "rerun": "another --output-dir",
}  # fmt: skip


def _require_free(file: SweepFile, extra: Sequence[str]) -> None:
    """Refuse overrides that fight the file or the runner."""
    for word in (*file.fixed, *extra):
        key, _, value = word.lstrip("+~").partition("=")
        require_fits(key not in OURS, key, value, "the sweep itself decides this", OURS.get(key, ""))
        require_fits(key not in file.points[0], key, value, f"the sweep file sets {key}", f"edit {file.path}")


def _require_distinct(file: SweepFile, jobs: list[Job]) -> None:
    """Refuse points that are one run, and rungs that would mean different rounds."""
    seen: dict[tuple[str, int], int] = {}
    for job in jobs:
        other = seen.setdefault(job.key, job.point)
        words = f"points {other} and {job.point}"
        require(
            other == job.point, f"{file.path.name}: parameters", words, "points that differ", "remove one"
        )
    lengths = {(job.rounds, job.eval_every) for job in jobs}
    key, hint = f"{file.path.name}: early_terminate", "remove it, or sweep other keys"
    allowed = "equal rounds and eval.every: a rung compares runs after the same round"
    require(file.halving is None or len(lengths) == 1, key, "with several lengths", allowed, hint)
    allowed = "other keys: seeds judge, they do not compete"
    require(file.halving is None or "seed" not in file.points[0], key, "with parameters.seed", allowed, hint)


def _is_group(key: str) -> bool:
    """Whether a key chooses a file in conf/ (algorithm, participation/sampler) rather than a value."""
    return (conf_dir() / key).is_dir()


def _word(key: str, value: Value) -> str:
    """``key=value`` as a user would type it."""
    words = {None: "null", True: "true", False: "false"}
    shown = words[value] if value is None or isinstance(value, bool) else value
    return f"{key}={shown}"


def _composed(file: SweepFile, words: list[str], number: int) -> DictConfig:
    """Hydra's composition, its refusal in our words."""
    try:
        return compose(words)
    except ConfigError as error:
        reason = " ".join(str(error).split())
        raise ClashError(
            f"{file.path.name}: point {number}", " ".join(words), reason, "python run.py --help"
        ) from None


def _updated(file: SweepFile, base: DictConfig, values: dict[str, Any]) -> DictConfig:
    """What Hydra makes of ``key=value`` words after composing, without composing again."""
    cfg = deepcopy(base)
    for key, value in values.items():
        if _is_group(key):
            continue
        try:
            if OmegaConf.select(cfg, key, throw_on_missing=False, default=_ABSENT) is _ABSENT:
                raise KeyError(key)
            OmegaConf.update(cfg, key, value, merge=True)
        except KeyError:
            closest = near(key, _keys(cfg))
            hint = f"{closest}: in its place" if closest else "python run.py --cfg job shows all keys"
            where = f"{file.path.name}: parameters.{key}"
            raise ConfigError(where, value, "a key of the configuration", hint) from None
        except OmegaConfBaseException as error:
            where = f"{file.path.name}: parameters.{key}"
            raise ClashError(
                where, value, str(error).splitlines()[0], "python run.py --cfg job shows all keys"
            ) from None
    return cfg


_ABSENT = object()


def _keys(cfg: DictConfig) -> list[str]:
    """All dotted keys, to suggest the closest."""
    keys: list[str] = []

    def walk(node: Any, prefix: str) -> None:
        for key in node:
            keys.append(f"{prefix}{key}")
            inner = (
                None
                if OmegaConf.is_interpolation(node, key) or OmegaConf.is_missing(node, key)
                else node[key]
            )
            if isinstance(inner, DictConfig):
                walk(inner, f"{prefix}{key}.")

    walk(cfg, "")
    return keys
