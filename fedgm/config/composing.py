"""From the words of a command line, or a stored folder, to a checked configuration."""

from collections.abc import Sequence
from pathlib import Path
from typing import cast

from hydra import compose as hydra_compose
from hydra import initialize_config_dir
from hydra.core.config_store import ConfigStore
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from fedgm.config.refusals import ERRORS, explained, require_known_keys
from fedgm.config.schema import RunConfig
from fedgm.config.trust import read_stored
from fedgm.config.winners import winner
from fedgm.errors import ConfigError, RefusedError


def conf_dir() -> Path:
    """Where the yaml files are: inside an installed package, beside it in a checkout."""
    package = Path(__file__).parents[1]
    inside = package / "conf"
    return inside if inside.is_dir() else package.parent / "conf"


def register() -> None:
    """Make the schema and the ``fedgm.rounds`` resolver known to Hydra; repeating it does no harm."""
    ConfigStore.instance().store(name="run_schema", node=RunConfig)
    OmegaConf.register_new_resolver("fedgm.rounds", lambda t, scale: round(t * scale), replace=True)
    OmegaConf.register_new_resolver("fedgm.winner", winner, replace=True)


def compose(overrides: Sequence[str]) -> DictConfig:
    """What Hydra makes of a command line, without Hydra's command line; refuses as :class:`ConfigError`."""
    try:
        return _compose(overrides)
    except ERRORS as error:
        raise refusal(error, overrides) from None


def refusal(error: Exception, words: Sequence[str]) -> ConfigError:
    """What is wrong with the words of a command line, and what to type instead."""
    return explained(error, words, RunConfig, _compose)


def _compose(overrides: Sequence[str]) -> DictConfig:
    register()
    with initialize_config_dir(str(conf_dir().resolve()), version_base="1.3"):
        return hydra_compose("config", overrides=list(overrides))


def stored(folder: Path, trust: Sequence[str] = ()) -> DictConfig:
    """The configuration that a run folder keeps, with its types; it builds what ``trust.py`` admits."""
    path = folder / "config.yaml"
    try:
        return cast(DictConfig, OmegaConf.merge(OmegaConf.structured(RunConfig), read_stored(path, trust)))
    except OmegaConfBaseException as error:
        raise RefusedError(f"{path} is damaged ({str(error).splitlines()[0]})") from None


def validate(cfg: DictConfig) -> RunConfig:
    """The typed configuration; raises :class:`~fedgm.errors.ConfigError` on a value out of range."""
    require_known_keys(cfg, RunConfig)
    try:
        return cast(RunConfig, OmegaConf.to_object(cfg))
    except OmegaConfBaseException as error:
        key, reason = str(error.full_key or "configuration"), str(error).splitlines()[0]
        raise ConfigError(key, "(unreadable)", reason, f"another {key}") from None
