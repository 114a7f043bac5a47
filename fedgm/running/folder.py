"""The run folder: where it is, and files in it that are whole at every moment."""

import re
import shutil
from collections.abc import Iterable
from pathlib import Path

from omegaconf import DictConfig, ListConfig, OmegaConf

from fedgm.config.identity import NOT_IDENTITY, identity, number
from fedgm.errors import FedGMError
from fedgm.files import beside, make_folder

LABEL_LENGTH = 60
# Words that a folder's name leaves out: said by the folders around it, or without effect on the result.
NOT_LABEL = (*NOT_IDENTITY, "experiment", "algorithm", "trainer")


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
    home = Path(str(cfg.output_dir)) / str(cfg.name)
    mark = (hash or identity(cfg))[:8]
    existing = sorted(home.glob(f"*-{mark}"))
    run = existing[0] if existing else home / f"{label(cfg, overrides)}-{mark}"
    return run / f"seed={cfg.seed}"


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
