"""The files of conf/: where they are, which options a group has, and what one of them says."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from omegaconf import OmegaConf


def conf_dir() -> Path:
    """Where the yaml files are: inside an installed package, beside it in a checkout."""
    package = Path(__file__).parents[1]
    inside = package / "conf"
    return inside if inside.is_dir() else package.parent / "conf"


def options(group: str) -> list[str]:
    """Names of the options of a group such as ``data/partition``."""
    return sorted(path.stem for path in (conf_dir() / group).glob("*.yaml"))


def option(group: str, name: str, around: Mapping[str, Any]) -> dict[str, Any]:
    """What the yaml of an option says, its interpolations resolved among the values ``around`` it."""
    tree = OmegaConf.create({**around, "option": OmegaConf.load(conf_dir() / group / f"{name}.yaml")})
    return cast(dict[str, Any], OmegaConf.to_container(tree["option"], resolve=True))
