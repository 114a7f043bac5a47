"""The run folder: where it is, and files in it that are whole at every moment."""

import re
import shutil
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, ListConfig, OmegaConf

from fedgm.config.identity import NOT_IDENTITY, identity, identity_of_stored, number
from fedgm.errors import FedGMError
from fedgm.files import beside, make_folder, write_atomically
from fedgm.results import summary
from fedgm.results.find import configuration
from fedgm.seals import CONFIG, KEY, SUMMARY, changed, checksums, write_json

LABEL_LENGTH = 60
# Words that a folder's name leaves out: said by the folders around it, or without effect on the result.
NOT_LABEL = (*NOT_IDENTITY, "experiment", "algorithm", "trainer", "debug")


def label(cfg: DictConfig, overrides: Iterable[str]) -> str:
    """The algorithm and what else was set, in resolved values, so that eta=1 and eta=1.0 read alike."""
    words: set[str] = set()
    for override in overrides:
        key = override.split("=")[0].lstrip("+~")
        if key in NOT_LABEL or key.startswith(("hydra", *(f"{left_out}." for left_out in NOT_IDENTITY))):
            continue
        value = OmegaConf.select(cfg, key.replace("/", ".").split("@")[0])
        if isinstance(value, DictConfig):
            value = value.get("name")
        if isinstance(value, ListConfig):
            value = [number(entry) for entry in value]
        words.add(f"{key.split('.')[-1]}={number(value)}")
    text = ",".join([str(cfg.algorithm.name), *sorted(words)])
    return re.sub(r"[^\w.,=+\-\[\]]+", "", text)[: len(str(cfg.algorithm.name)) + LABEL_LENGTH]


def locate(cfg: DictConfig, overrides: Iterable[str], hash: str | None = None) -> Path:
    """``<output_dir>/<experiment>/<label>-<8 hex>/seed=<n>``; a run keeps the folder it has."""
    home, mark = Path(str(cfg.output_dir)) / str(cfg.name), hash or identity(cfg)
    try:
        stamp = home.stat().st_mtime_ns
        named = [path / f"seed={cfg.seed}" for path in _by_hash(home, stamp).get(mark[:8], ())]
    except OSError:
        stamp, named = None, []
    if there := [path for path in named if path.is_dir()]:
        return there[0]
    if stamp is not None and (older := _begun_by_older_versions(home, stamp).get((mark, cfg.seed))):
        return older
    return named[0] if named else home / f"{label(cfg, overrides)}-{mark[:8]}" / f"seed={cfg.seed}"


@lru_cache(maxsize=8)
def _by_hash(home: Path, stamp: int) -> dict[str, list[Path]]:
    """Folders by the end of their names; listed once for all points of a sweep."""
    del stamp  # changes when a folder is added
    folders: dict[str, list[Path]] = {}
    for path in sorted(home.iterdir()):
        start, _, mark = path.name.rpartition("-")
        if start:
            folders.setdefault(mark, []).append(path)
    return folders


@lru_cache(maxsize=8)
def _begun_by_older_versions(home: Path, stamp: int) -> dict[tuple[str, int], Path]:
    """Runs whose folder is not named by their hash of today; read once for all points of a sweep."""
    del stamp  # changes when a folder is added
    runs: dict[tuple[str, int], Path] = {}
    for path in sorted(home.glob("*/seed=*/summary.json")):
        facts = summary.read(path.parent)
        if facts.get("hash") and facts.get("seed") is not None:
            mark = stored_hash(path.parent, facts)
            if not path.parents[1].name.endswith(mark[:8]):
                runs.setdefault((mark, facts["seed"]), path.parent)
    return runs


def stored_hash(folder: Path, facts: dict[str, Any]) -> str:
    """The hash of the run in a folder, by today's rules: a summary with ``fixed_seeds`` has it already."""
    return facts["hash"] if "fixed_seeds" in facts else identity_of_stored(configuration(folder), facts)


def require_run(folder: Path, before: dict[str, Any], hash: str, seed: int) -> None:
    """Refuse a folder that holds another run, copied or moved to this one's place."""
    if "hash" in before and stored_hash(folder, before) != hash:
        what = "another configuration"
    elif before.get("seed", seed) != seed:
        what = f"seed {before['seed']}"
    else:
        return
    raise FedGMError(
        f"{folder} holds {what}, as a copy of another run's folder does. Move it away, "
        "or type rerun=true to empty it and run this one"
    )


def write_config(folder: Path, cfg: DictConfig, sync: bool) -> None:
    """The configuration as the run has it, with every value filled in."""
    write_atomically(folder / CONFIG, OmegaConf.to_yaml(cfg, resolve=True), sync)


def has_config(folder: Path, before: dict[str, Any]) -> bool:
    """Whether config.yaml is there as it was written, as far as the summary says how."""
    return bool(configuration(folder)) and not changed(folder, before, [CONFIG])


def restore_config(folder: Path, cfg: DictConfig, before: dict[str, Any], sync: bool) -> dict[str, Any]:
    """Write config.yaml again; returns the summary that covers it."""
    write_config(folder, cfg, sync)
    if KEY not in before:  # an older version's: a seal would say more than is known
        return before
    digests = {**(before.get("digests") or {}), **checksums(folder, [CONFIG])}
    return write_json(folder / SUMMARY, {**before, "digests": digests}, sync)


def create(folder: Path, sync: bool = False) -> None:
    """Make the folder, or say why that cannot be; links in a folder from elsewhere are not followed."""
    for place in (folder.parent, folder, folder / "checkpoints", folder / "checkpoints" / "clients"):
        if place.is_symlink():
            raise FedGMError(
                f"output_dir: {place} is a symbolic link: files would be written and removed where it leads. "
                "Remove it, or try output_dir=DIR with another folder"
            )
    try:
        make_folder(folder, sync)
        probe = beside(folder / "probe")
        probe.touch()
        probe.unlink(missing_ok=True)
    except OSError as error:
        reason = error.strerror or str(error)
        raise FedGMError(
            f"output_dir: {folder} cannot be written ({reason}). "
            "Allowed: a folder that you may write to. Try output_dir=DIR with another folder."
        ) from None


def empty(folder: Path) -> None:
    """Remove an earlier result, but not the lock that we hold."""
    for path in folder.iterdir():
        if path.name == "lock":
            continue
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()
