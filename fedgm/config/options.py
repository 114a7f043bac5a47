"""The files of conf/: where they are, which options a group has, and what one of them says."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import yaml
from omegaconf import OmegaConf

# Where a part of ours is -> the key that names it, which is also its group and option.
NAMED_BY = {
    "algorithm": "algorithm.name",
    "schedule": "schedule.name",
    "participation": "participation.name",
    "participation.sampler": "participation.sampler.name",
    "client": "client.name",
    "upload": "upload.name",
    "sending": "sending.name",
    "privacy": "privacy.name",
    "work": "work.name",
    "task": "task.name",
    "model": "model.name",
    "data.source": "data.name",
    "data.partition": "data.partition.name",
}


def conf_dir() -> Path:
    """Where the yaml files are: inside an installed package, beside it in a checkout."""
    package = Path(__file__).parents[1]
    inside = package / "conf"
    return inside if inside.is_dir() else package.parent / "conf"


def options(group: str) -> list[str]:
    """Names of the options of a group such as ``data/partition``."""
    return sorted(path.stem for path in (conf_dir() / group).glob("*.yaml"))


def default(group: str) -> str | None:
    """The option of a group that holds where nobody chooses one."""
    listed = yaml.safe_load((conf_dir() / "config.yaml").read_text())["defaults"]
    return next((entry[group] for entry in listed if isinstance(entry, dict) and group in entry), None)


def option(group: str, name: str, around: Mapping[str, Any]) -> dict[str, Any]:
    """What the yaml of an option says, its interpolations resolved among the values ``around`` it."""
    tree = OmegaConf.create({**around, "option": OmegaConf.load(conf_dir() / group / f"{name}.yaml")})
    return cast(dict[str, Any], OmegaConf.to_container(tree["option"], resolve=True))


def figures() -> dict[str, dict[str, Any]]:
    """Experiment -> its ``figure:``, of those that have one."""
    paths = sorted((conf_dir() / "experiment").glob("*.yaml"))
    contents = {path.stem: yaml.safe_load(path.read_text()) for path in paths}
    return {
        name: content["figure"]
        for name, content in contents.items()
        if isinstance(content, dict) and content.get("figure")
    }


def present_target(key: str, name: str) -> str | None:
    """The ``_target_`` of the part at ``key`` in our option ``name``; None where there is no such option."""
    group = NAMED_BY[key].removesuffix(".name").replace(".", "/")
    path = conf_dir() / group / f"{name}.yaml"
    if not re.fullmatch(r"\w+", name) or not path.is_file():
        return None
    if said := re.search(r"^[^#\n]*\b_target_: ([\w.]+)", path.read_text(), re.MULTILINE):
        return said[1]
    bases = OmegaConf.select(OmegaConf.load(path), "defaults", default=[])
    return next((target for base in map(str, bases) if (target := present_target(key, base))), None)
