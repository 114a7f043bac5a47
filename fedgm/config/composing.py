"""From the words of a command line, or a stored folder, to a checked configuration."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from hydra import compose as hydra_compose
from hydra import initialize_config_dir
from hydra.core.config_store import ConfigStore
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from fedgm.config.checks import require_possible, require_shape
from fedgm.config.identity import FILES
from fedgm.config.options import NAMED_BY, conf_dir, present_target
from fedgm.config.refusals import ERRORS, explained, require_known_keys
from fedgm.config.schema import RunConfig
from fedgm.config.trust import TRUSTED, is_in, read_stored, require_trusted
from fedgm.config.winners import winner
from fedgm.errors import ConfigError, RefusedError, require_working_folder
from fedgm.intake import HALVES
from fedgm.seals import require_as_written

PATHS = ("output_dir", "data.root", "data.source.root", *FILES)  # keys whose values are paths


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
    require_working_folder()
    register()
    with initialize_config_dir(str(conf_dir().resolve()), version_base="1.3"):
        return hydra_compose("config", overrides=with_plain_paths(overrides))


def with_plain_paths(words: Sequence[str]) -> list[str]:
    """Words with paths as people type them: quoted where Hydra's grammar needs it, ``~`` as the home folder.

    >>> with_plain_paths(["seed=1", "output_dir=Größe (2)", "output_dir=plain", "output_dir='quoted'"])
    ['seed=1', "output_dir='Größe (2)'", 'output_dir=plain', "output_dir='quoted'"]

    A comma separates paths in a multirun, and is a letter in one run:

    >>> with_plain_paths(["output_dir=a,b"]), with_plain_paths(["-m", "data.path=a.npz,b.npz"])
    (["output_dir='a,b'"], ['-m', 'data.path=a.npz,b.npz'])
    """
    is_multirun = any(word in ("-m", "--multirun") for word in words)
    return [_plain_path(word, is_multirun) for word in words]


def _plain_path(word: str, may_be_several: bool) -> str:
    if HALVES.search(word):
        raise RefusedError(
            f"{word}: it has bytes that are not text in this locale. Try other letters, or LC_ALL=C.UTF-8"
        )
    key, sign, value = word.partition("=")
    if key.lstrip("+") not in PATHS or not sign:
        return word
    if value == "~" or value.startswith("~/"):
        value = str(Path(value).expanduser())
    try:
        several = OverridesParser.create().parse_override(f"{key}={value}").is_sweep_override()
    except HydraException:
        several, may_be_several = True, False
    if several and not may_be_several:
        escaped = value.replace("'", "\\'")
        return f"{key}='{escaped}'"
    return f"{key}={value}"


def stored(folder: Path, trust: Sequence[str] = ()) -> DictConfig:
    """The configuration that a run folder keeps, with its types; it builds what ``trust.py`` admits."""
    path = folder / "config.yaml"
    require_as_written(folder, path.name, "the command of the run again: it writes the file")
    values = _with_present_targets(read_stored(path)) | {"figure": None}  # readers build nothing of it
    require_trusted(values, "", trust)
    try:
        return cast(DictConfig, OmegaConf.merge(OmegaConf.structured(RunConfig), values))
    except OmegaConfBaseException as error:
        raise RefusedError(f"{path} is damaged ({str(error).splitlines()[0]})") from None


def reopened(folder: Path, trust: Sequence[str] = ()) -> RunConfig:
    """The typed configuration of a stored run, refused for what a command line would be refused for."""
    register()
    return require_sound(stored(folder, trust))


def _with_present_targets(values: dict[str, Any]) -> dict[str, Any]:
    """An older configuration, with the ``_target_`` that each part of ours has today, found by its name."""
    trainer = values.get("trainer")
    if isinstance(trainer, dict):
        values = {**values, "trainer": {key: value for key, value in trainer.items() if key != "devices"}}
    for key, name in NAMED_BY.items():
        node, option = _select(values, key), _select(values, name)
        target = str(_select(node, "_target_"))
        if isinstance(option, str) and target.startswith("fedgm.") and is_in(target, TRUSTED):
            node["_target_"] = present_target(key, option) or target
    return values


def _select(values: Any, key: str) -> Any:
    """The value at a dotted key, or None."""
    for part in key.split("."):
        values = values.get(part) if isinstance(values, dict) else None
    return values


def validate(cfg: DictConfig) -> RunConfig:
    """The typed configuration; raises :class:`~fedgm.errors.ConfigError` on a value out of range."""
    require_known_keys(cfg, RunConfig)
    try:
        return cast(RunConfig, OmegaConf.to_object(cfg))
    except OmegaConfBaseException as error:
        key, reason = str(error.full_key or "configuration"), str(error).splitlines()[0]
        raise ConfigError(key, "(unreadable)", reason, f"another {key}") from None


def require_sound(cfg: DictConfig) -> RunConfig:
    """The typed configuration: schema first, then shapes, then sizes that this machine can hold."""
    config = validate(cfg)
    require_shape(config)
    require_possible(config)
    return config
