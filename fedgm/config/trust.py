"""Which targets a stored configuration may build: a run folder can come from anybody.

The command line, and yaml files that it names, are the user's own words and are not restricted.
"""

import inspect
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import yaml
from hydra.utils import get_object
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from fedgm import intake
from fedgm.errors import DOTTED, ConfigError, RefusedError

# Packages whose own classes and functions may be built. Of fedgm those where parts are: fedgm.api.run would
# take any command line from the folder.
TRUSTED = (
    "fedgm.server", "fedgm.schedule", "fedgm.schedules", "fedgm.participation", "fedgm.client",
    "fedgm.upload", "fedgm.tasks", "fedgm.models", "fedgm.data", "torch.optim", "torch.nn",
    "torchvision.models", "pytorch_lightning.callbacks", "pytorch_lightning.loggers",
    "fedgm.running.mlflow", "fedgm.running.comet", "fedgm.federated.personal", "fedgm.theory.auto",
    "fedgm.optim",
)  # fmt: skip
# Where a part is built, and compared with its protocol before it is called. Elsewhere a target would be built
# without: there only what trust= admits.
PLACES = re.compile(
    r"(algorithm|schedule|participation(\.sampler)?|client|upload|sending|privacy|work|task|model|data\.(source|partition)|"
    r"(local\.optimizers|callbacks|track\.loggers)\.[^.\[\]]+)\._target_"
)
LARGEST = 2**20  # bytes of a config.yaml; ours have a few thousand


def trusted_words(words: Iterable[str]) -> tuple[str, ...]:
    """The packages of ``trust=[package,...]`` among the words of a command line."""
    packages: list[str] = []
    for word in words:
        if word.startswith("trust="):
            names = word.removeprefix("trust=").removeprefix("[").removesuffix("]").split(",")
            for name in (name.strip() for name in names):
                if not re.fullmatch(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", name):
                    raise ConfigError("trust", name, "names of packages", "trust=[my_package]")
                packages.append(name)
    return tuple(packages)


def text_of(path: Path) -> str:
    """The text of a config.yaml; a ValueError for one that would take more memory than it looks."""
    text = intake.read_text(path, LARGEST)
    intake.require_shallow(text, aliases=False)
    return text


def read_stored(path: Path) -> dict[str, Any]:
    """A run folder's config.yaml as plain values; nothing may be built before ``require_trusted``."""
    try:
        values: Any = OmegaConf.to_container(OmegaConf.create(text_of(path)))
    except (OSError, ValueError, RecursionError, yaml.YAMLError, OmegaConfBaseException) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise RefusedError(
            f"{path} is damaged ({reason}). Allowed: the config.yaml of a run. "
            "Try the command of the run again: it writes the file"
        ) from None
    if not isinstance(values, dict) or not values:
        raise RefusedError(f"{path} is damaged (it has no keys). Allowed: the config.yaml of a run")
    return values


def require_trusted(node: Any, key: str, trust: Sequence[str] = ()) -> None:
    """Refuse a tree of values with a target that is not admitted, at any depth."""
    if isinstance(node, str) and "${" in node:
        raise ConfigError(key, node, "a value: stored configurations are resolved", "the run's own command")
    if isinstance(node, str) and "://" in node and key.startswith("data."):
        raise ConfigError(key, node, "no address: a folder does not say where data is fetched", f"~{key}")
    if isinstance(node, list):
        for number, value in enumerate(node):
            require_trusted(value, f"{key}[{number}]", trust)
    if not isinstance(node, dict):
        return
    for name, value in node.items():
        where = f"{key}.{name}" if key else str(name)
        if name == "_target_":
            _require_target(where, value, (*(TRUSTED if PLACES.fullmatch(where) else ()), *trust))
        elif isinstance(name, str) and re.fullmatch(r"_\w+_", name):  # Hydra's own words: _args_, _partial_
            raise ConfigError(where, value, "a parameter of the part", f"~{where}")
        else:
            require_trusted(value, where, trust)


def _require_target(key: str, name: Any, packages: Sequence[str]) -> None:
    """First the path, before anything is imported; then where the thing behind it was defined."""
    if not isinstance(name, str) or not is_in(name, packages):
        raise _refusal(key, name)
    try:
        target = get_object(name)
    except Exception as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise ConfigError(key, name, f"an importable name ({reason})", DOTTED) from None
    plain = (inspect.isclass(target) or inspect.isfunction(target)) and "." not in target.__qualname__
    if not plain or not is_in(f"{target.__module__}.", packages):
        raise _refusal(key, name)


def is_in(name: str, packages: Sequence[str]) -> bool:
    """Whether a dotted name is below one of the packages."""
    return any(name.startswith(f"{package}.") for package in packages)


def _refusal(key: str, name: Any) -> ConfigError:
    allowed = f"a class or function defined in {', '.join(TRUSTED)}: a folder builds nothing else"
    package = name.split(".")[0] if isinstance(name, str) and re.match(r"[A-Za-z_]\w*", name) else "package"
    return ConfigError(
        key, name, allowed, f"trust=[{package}], if you know what it does and who wrote the folder"
    )
