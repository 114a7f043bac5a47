"""Hydra's and OmegaConf's errors in the words of this project: key, value, what is expected, what to type."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields, is_dataclass
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException, MissingConfigException, OverrideParseException
from omegaconf import MISSING, DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException, ValidationError

from fedgm.config.options import default, figures, options
from fedgm.errors import ConfigError, near

# What composing a command line can raise. The last three: Hydra checks some words no further.
ERRORS = (HydraException, OmegaConfBaseException, ValueError, TypeError, AttributeError)
WORDS = {int: "a whole number", float: "a number", bool: "true or false", str: "a word", list: "a list [...]"}
EXAMPLES = {int: "1", float: "0.5", bool: "true", str: "name", list: "[]"}
Compose = Callable[[Sequence[str]], DictConfig]


def explained(error: Exception, words: Sequence[str], schema: type, compose: Compose) -> ConfigError:
    """The refusal behind an error that ``words`` caused while they were composed."""
    if isinstance(error, ConfigError):
        return error
    if unnamed := next((word for word in words if _is_choice(word)), None):
        return ConfigError(_key(unnamed), unnamed.partition("=")[2], "the name of an option", "--help")
    word = _culprit(error, words)
    key, value = _key(word), word.partition("=")[2]
    if isinstance(error, OverrideParseException) or not key:
        bad = next((other for other in words if not _key(other)), " ".join(words))
        told = word or str(getattr(error, "override", None) or bad)
        return ConfigError(told, "(unreadable)", "words such as key=value", "quotes around the whole word")
    if isinstance(error, MissingConfigException):
        return _no_option(error, word)
    if OverridesParser.create().parse_override(word).is_sweep_override():
        return ConfigError(
            key, value, "one value", f"one of them, python run.py -m for each, or {key}=[{value}] for a list"
        )
    cause: Any = error.__cause__ or error
    full = str(getattr(cause, "full_key", None) or key)
    if isinstance(cause, ValidationError):
        return ConfigError(full, value, expected(schema, full), f"{full}={example(schema, full)}")
    names = _keys_of([other for other in words if other != word], compose)
    if word.startswith("+") and key in names:
        return ConfigError(f"+{key}", value, f"no +: {key} is there already", f"{key}={value}")
    if key not in names and not word.startswith(("+", "~")) and options(key):
        return ConfigError(key, value, "a + before it: it is not chosen otherwise", f"+{key}={value}")
    if full not in names:
        return unknown_key(full, value, names)
    return ConfigError(key, value, (str(error).splitlines() or ["another value"])[0], "--help")


def unknown_key(key: str, value: object, existing: Iterable[str]) -> ConfigError:
    """The refusal of a key that nothing reads, with its siblings and the near name."""
    if key.split(".")[0] == "hydra":
        return ConfigError(key, value, "one of Hydra's keys", "--cfg hydra, which prints all of them")
    names = [name for name in existing if name != key]
    while (parent := key.rpartition(".")[0]) and not any(name.startswith(f"{parent}.") for name in names):
        key = parent  # what is missing is further up
    start = f"{parent}." if parent else ""
    siblings = {start + name.removeprefix(start).split(".")[0] for name in names if name.startswith(start)}
    same = [n for n in names if n.rpartition(".")[2] == key and not n.startswith(("paper_", "best."))]
    others = [name for name in names if name != parent]
    meant = next(iter(same), None) or near(key, sorted(siblings), 0.75) or near(key, others, 0.75)
    inside = f"a key of {parent}" if parent else "a key of the configuration"
    listed = ", ".join(sorted(name.removeprefix(start) for name in siblings))
    hint = f"{meant}={value}" if meant else "--cfg job, which prints all keys"
    hint = "schedule=auto" if parent == "algorithm" and str(value) == "auto" else hint
    return ConfigError(key, value, f"{inside} ({listed})", hint)


def require_known_keys(cfg: DictConfig, schema: type, prefix: str = "") -> None:
    """Refuse what ``+key=value`` added where the schema has no such key: nothing would read it."""
    hints = {field.name: field.type for field in fields(schema)}
    types, there = get_type_hints(schema), set(map(str, cfg))
    for name in (field.name for field in fields(schema) if field.default is MISSING):
        if name not in there:  # taken out with ~key
            where = prefix + name
            raise ConfigError(where, "(missing)", expected(schema, name), f"{where}={example(schema, name)}")
    for name in map(str, cfg):
        if name not in hints:
            raise unknown_key(prefix + name, cfg._get_node(name), keys(cfg, prefix))
        if OmegaConf.is_missing(cfg, name):
            where = prefix + name
            hint = f"{where}={example(schema, name)}"
            raise ConfigError(where, "(missing)", expected(schema, name), hint)
        node: Any = cfg._get_node(name)
        if isinstance(node, DictConfig) and is_dataclass(types[name]):
            require_known_keys(node, types[name], f"{prefix}{name}.")


def keys(cfg: DictConfig, prefix: str = "") -> list[str]:
    """All dotted keys of a configuration, nothing resolved."""
    names: list[str] = []
    for name in map(str, cfg):
        node: Any = cfg._get_node(name)
        inner = keys(node, f"{prefix}{name}.") if _is_tree(node) else []
        names += [f"{prefix}{name}", *inner]
    return names


def expected(schema: type, key: str) -> str:
    """What the schema allows at a key, in words."""
    kind, optional = _kind(schema, key)
    return WORDS.get(kind, "a group of keys") + (" or null" if optional else "")


def example(schema: type, key: str) -> str:
    """A value that the schema would take."""
    return EXAMPLES.get(_kind(schema, key)[0], "...")


def _kind(schema: type, key: str) -> tuple[Any, bool]:
    """The type of a key, and whether it may be null."""
    hint: Any = schema
    for name in key.split("."):
        hint = get_type_hints(hint).get(name, Any) if is_dataclass(hint) else Any
    if get_origin(hint) in (Union, UnionType):
        inner = [kind for kind in get_args(hint) if kind is not type(None)]
        return get_origin(inner[0]) or inner[0], True
    return get_origin(hint) or hint, False


def _is_choice(word: str) -> bool:
    """Whether it chooses an option of a group by something that is not a name."""
    key, _, value = word.partition("=")
    plain = re.fullmatch(r"[A-Za-z_][\w./-]*", value) and value not in ("null", "true", "false")
    return bool(value) and "," not in value and not plain and bool(options(_key(key)))


def _keys_of(words: Sequence[str], compose: Compose) -> list[str]:
    """All keys that the other words lead to, or the plain configuration where they too are wrong."""
    try:
        return keys(compose([word for word in words if "." not in _key(word)]))
    except ERRORS:
        return keys(compose([]))


def _is_tree(node: Any) -> bool:
    return isinstance(node, DictConfig) and not (
        node._is_none() or node._is_missing() or node._is_interpolation()
    )


def _key(word: str) -> str:
    return word.partition("=")[0].lstrip("+~").split("@")[0]


def _culprit(error: Exception, words: Sequence[str]) -> str:
    """The word that an error is about, as far as it says so."""
    text = f"{getattr(error, 'override', '')}\n{error}\n{error.__cause__ or ''}"
    if isinstance(error, MissingConfigException):
        group = str(error.missing_cfg_file).rpartition("/")[0]
        return next((word for word in words if _key(word) == group), "")
    for wanted in (lambda word: word, _key):
        for word in words:
            if wanted(word) and re.search(rf"(?<![\w./]){re.escape(wanted(word))}(?![\w./])", text):
                return word
    return words[0] if len(words) == 1 else ""


def _no_option(error: MissingConfigException, word: str) -> ConfigError:
    """A group without such an option: those that there are, and the near one."""
    group, _, option = str(error.missing_cfg_file).rpartition("/")
    names = [str(name) for name in error.options or []]
    drawn = _of_figure(option) if group == "experiment" else None
    usual = [name for name in names if name == default(group)] + names
    meant = drawn or near(option, names, 0.75) or next(iter(usual), None)
    sign = "+" if word.startswith("+") else ""
    allowed = f"one of {', '.join(names)}" if names else f"one option of {group}"
    return ConfigError(f"{sign}{group}", option, allowed, f"{sign}{group}={meant or 'NAME'}")


def _of_figure(word: str) -> str | None:
    """The experiment of a figure of the paper: multistage where somebody types fig2."""
    number = re.sub(r"^fig(ure)?_?", "", word.lower())
    drawn = {str(node["number"]): name for name, node in figures().items() if "number" in node}
    whole = {key.rstrip("abcd"): name for key, name in sorted(drawn.items(), reverse=True)}
    return drawn.get(number) or whole.get(number)
