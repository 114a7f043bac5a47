"""What makes two runs the same run: a hash of their configurations, computed whenever it is needed.

No hash has to be kept alive: that of a stored run is computed again from its ``config.yaml``. The rules:

1. Every value that can change a bit of the result counts, resolved; 1 and 1.0 are the same value.
2. A key that was added later does not count at the value that was ``IMPLIED`` before it existed.
3. A part of ours counts by its name and its parameters, not by ``_target_``: moving its file moves no hash. A
   part of another package counts by both. A part whose arithmetic changes gets ``version: 2`` in its yaml.
4. A key called ``seed`` whose value is the run's seed follows it, so that seeds of one setting share a hash;
   ``fixed_seeds`` names those that do not follow it even where the two numbers are equal.
5. Files that a run reads count by their contents, whose checksums are its ``contents``.

What rules 4 and 5 need is not in ``config.yaml``: a run writes :func:`beside_config` into its summary. Runs
of older versions have neither: seeds follow wherever they are equal, and their files count by path alone.
"""

import hashlib
import json
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

from omegaconf import DictConfig, OmegaConf

# What cannot change a bit of a result. Seeds have folders of their own; `paper_*`, `winners` and `best` only
# fill other keys, which count; `figure` only says what is drawn.
NOT_IDENTITY = (
    "seed", "output_dir", "rerun", "stop_after", "track", "checkpoint", "paper_rounds", "paper_momentum",
    "paper_delay", "winners", "best", "figure", "trainer.name", "trainer.workers", "trainer.devices",
    "trainer.keep_memory", "trainer.profiler", "data.root", "data.source.root", "data.owners", "eval.metric",
)  # fmt: skip
# Key -> the value that versions without it had.
IMPLIED: dict[str, Any] = {
    "participation.anchor": "start",
    "participation.age": "client",
    "participation.sampler.name": "uniform",
    "algorithm.bias_correction": False,
    "eval.point": "sent",
    "eval.clients": 0,
    "eval.held_out": 0,
    "data.shards": 2,
    "data.classes_per_client": 2,
    "data.shared": 0,
    "data.source.jitter": 0.5,
    "data.source.tint": 0.25,
    "local.state": "reset",
    "callbacks.name": "none",
    "task.name": "classification",
    "upload.name": "plain",
    "sending.name": "all",
    "privacy.name": "none",
    "work.name": "constant",
}
# Keys that name a file or a folder whose contents count.
FILES = ("data.path", "data.source.path", "participation.speeds", "participation.arrivals")
ARRIVALS = "arrivals.jsonl"  # of a run folder that participation.arrivals names
# A configuration without these is only a part of one, of a damaged folder.
NEEDED = frozenset(("name", "rounds", "algorithm.name", "data.name", "clients.count"))


def identity(cfg: DictConfig) -> str:
    """The hash of a composed configuration."""
    values = resolved(cfg)
    return identity_of(values, int(cfg.seed), _beside(cfg, values))


def setup_of(cfg: DictConfig) -> str:
    """The hash of what a composed configuration says outside ``data.*``, without the contents of files."""
    values = {key: value for key, value in resolved(cfg).items() if not key.startswith("data.")}
    return identity_of(values, int(cfg.seed))


def identity_of(config: Mapping[str, Any], seed: int, facts: Mapping[str, Any] | None = None) -> str:
    """The hash of a resolved configuration with dotted keys; ``facts`` is what :func:`beside_config` says."""
    values = counted(config, seed, facts)
    return hashlib.sha256(json.dumps(values, sort_keys=True, default=str).encode()).hexdigest()


def counted(config: Mapping[str, Any], seed: int, facts: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The values that are hashed, by their keys: two runs of one setting have the same."""
    fixed_seeds = (facts or {}).get("fixed_seeds") or ()
    values: dict[str, Any] = {}
    for key, value in config.items():
        if _counts(key, config):
            follows = _is_seed(key) and value == seed and key not in fixed_seeds
            values[key] = "seed" if follows else _plain(value)
    for key in [key for key in values if _is_passed_on(key, values)]:
        del values[key]
    for key, implied in IMPLIED.items():
        if values.get(key) == implied:
            del values[key]
    if contents := (facts or {}).get("contents"):
        values["contents"] = contents
    return values


def identity_of_stored(config: Mapping[str, Any], facts: Mapping[str, Any]) -> str:
    """The hash of a stored run; the one in its summary where its configuration is damaged."""
    is_whole = config.keys() >= NEEDED and facts.get("seed") is not None
    return identity_of(config, facts["seed"], facts) if is_whole else str(facts.get("hash"))


def beside_config(cfg: DictConfig) -> dict[str, Any]:
    """What :func:`identity_of` needs besides the resolved configuration: a run writes it into its summary."""
    return _beside(cfg, resolved(cfg))


def dotted(node: Mapping[Any, Any], prefix: str = "") -> dict[str, Any]:
    """All leaves of a tree by their whole keys; lists and empty trees are leaves."""
    leaves: dict[str, Any] = {}
    for key, value in node.items():
        leaves |= (
            dotted(value, f"{prefix}{key}.")
            if isinstance(value, dict) and value
            else {f"{prefix}{key}": value}
        )
    return leaves


def number(value: Any) -> Any:
    """A whole float as the integer it is."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _beside(cfg: DictConfig, values: Mapping[str, Any]) -> dict[str, Any]:
    seeds = [key for key in values if _is_seed(key) and _counts(key, values)]
    with_another_seed = OmegaConf.merge(cfg, {"seed": int(cfg.seed) + 1})  # not resolved as a whole: slow
    fixed_seeds = sorted(key for key in seeds if values[key] == OmegaConf.select(with_another_seed, key))
    return {"fixed_seeds": fixed_seeds, "contents": _contents(values)}


def resolved(cfg: Any) -> dict[str, Any]:
    """The values of a composed configuration by dotted keys."""
    return dotted(cast(dict[str, Any], OmegaConf.to_container(cfg, resolve=True)))


def _counts(key: str, config: Mapping[str, Any]) -> bool:
    """Whether a key can change the result, or names what does."""
    if _is_left_out(key):
        return False
    if key.startswith("profile."):  # its values only fill other keys; captions show its name
        return key == "profile.name"
    if key.startswith("local.optimizers."):  # those that were not chosen say nothing about the run
        return key.startswith(f"local.optimizers.{config.get('local.optimizer')}.")
    node, _, last = key.rpartition(".")
    if last == "_target_" and str(config[key]).startswith("fedgm."):
        return f"{node}.name" not in config and node != "data.source"  # which data.name names
    return True


@lru_cache(maxsize=4096)
def _is_left_out(key: str) -> bool:
    return any(key == left_out or key.startswith(f"{left_out}.") for left_out in NOT_IDENTITY)


def _is_seed(key: str) -> bool:
    return key.endswith(".seed")


def _is_passed_on(key: str, values: Mapping[str, Any]) -> bool:
    """Whether a scheme only hands the value on to its sampler, which older versions had no keys for."""
    start, _, name = key.rpartition(".")
    around = f"participation.{name}"
    return (
        start == "participation.sampler"
        and around in values
        and values[around] == values[key]
        and name != "name"
    )


def _plain(value: Any) -> Any:
    """Whole floats as integers, at any depth."""
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_plain(inner) for inner in value]
    return number(value)


def _contents(values: Mapping[str, Any]) -> dict[str, str]:
    """A checksum for each file that is there; one that is missing is refused later, by whoever reads it."""
    pattern = str(values.get("data.source.pattern") or "*")
    paths = {key: Path(values[key]).expanduser() for key in FILES if isinstance(values.get(key), str)}
    if (run := paths.get("participation.arrivals")) is not None and run.is_dir():
        paths["participation.arrivals"] = run / ARRIVALS
    checksums = {key: _checksum(path, pattern) for key, path in paths.items()}
    return {key: checksum for key, checksum in checksums.items() if checksum is not None}


def _checksum(path: Path, pattern: str) -> str | None:
    """Of a file its content, of a folder the names and contents of the files that are read."""
    try:
        if not path.is_dir():
            return _checksum_of_file(path)
        files = sorted(file for file in path.rglob(pattern) if file.is_file())
        lines = [f"{file.relative_to(path).as_posix()} {_checksum_of_file(file)}\n" for file in files]
    except OSError:
        return None
    return hashlib.sha256("".join(lines).encode(errors="surrogateescape")).hexdigest()


def _checksum_of_file(path: Path) -> str:
    """Read once for all points of a sweep, again when the file has been touched."""
    if not path.is_file():  # a pipe would never end
        raise OSError(f"{path} is not a file")
    status = path.stat()
    return _read(path.resolve(), (status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns))


@lru_cache(maxsize=1024)
def _read(path: Path, stamp: tuple[int, ...]) -> str:
    del stamp  # tells two states of a file apart
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
