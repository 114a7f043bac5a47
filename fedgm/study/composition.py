"""One composition a sweep: a point sets its values in it, and only what follows them is resolved again."""

import re
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from functools import lru_cache
from typing import Any, NamedTuple

from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from fedgm.config import compose, conf_dir
from fedgm.config.identity import FILES, beside_config, identity_of, resolved
from fedgm.errors import ClashError, ConfigError, near
from fedgm.study.sweep_file import SweepFile, Value

RESOLVERS = ("fedgm.rounds", "fedgm.winner", "oc.select", "oc.env", "oc.decode")  # what they read is known
# What is read without being named: by fedgm.winner, and by the hash, which looks at seeds and files.
READ = {"best", "winners", "name", "anchor", "normalize", "seed", "pattern", "path", "speeds"}
KEPT = 200  # configurations in memory
_ABSENT = object()


class Point(NamedTuple):
    """A configuration, its resolved values by dotted keys, and its hash."""

    cfg: DictConfig  # shared with the points that follow
    values: Mapping[str, Any]
    hash: str


class _Base(NamedTuple):
    cfg: DictConfig
    values: dict[str, Any]
    facts: dict[str, Any]


class Composition:
    """The configurations of a sweep's points; words that choose files in conf/ are composed by Hydra."""

    def __init__(self, file: SweepFile, shared: Sequence[str]) -> None:
        self.file, self.shared = file, list(shared)
        self._composed: dict[tuple[str, ...], DictConfig] = {}
        self._free: dict[tuple[str, ...], set[str]] = {}
        self._bases: dict[str, _Base] = {}

    def config(self, number: int, values: Mapping[str, Value]) -> DictConfig:
        """A configuration that belongs to the caller."""
        cfg = deepcopy(self._with_groups(number, values))
        for key, value in values.items():
            if not _is_group(key):
                _set(self.file, cfg, key, value)
        return cfg

    def point(self, number: int, values: Mapping[str, Value]) -> Point:
        """What the hash of a point needs; valid until the next one."""
        groups = _groups(values)
        if groups not in self._free:
            self._free[groups] = _free(self.config(number, values), values)
        free = [key for key in values if key in self._free[groups] and "${" not in str(values[key])]
        bound = {key: value for key, value in values.items() if key not in free}
        mark = repr((groups, bound))
        if mark not in self._bases:
            if len(self._bases) >= KEPT:
                self._bases.clear()
            cfg = self.config(number, values)
            self._bases[mark] = _Base(cfg, resolved(cfg), beside_config(cfg))
        cfg, at, facts = self._bases[mark]
        for key in free:
            _set(self.file, cfg, key, values[key])
            at[key] = OmegaConf.select(cfg, key)
        return Point(cfg, at, identity_of(at, int(cfg.seed), facts))

    def _with_groups(self, number: int, values: Mapping[str, Value]) -> DictConfig:
        groups = _groups(values)
        if groups not in self._composed:
            words = [*self.shared, *groups]
            try:
                self._composed[groups] = compose(words)
            except ConfigError as error:
                reason, key = " ".join(str(error).split()), f"{self.file.path.name}: point {number}"
                raise ClashError(key, " ".join(words), reason, "python run.py --help") from None
        return self._composed[groups]


class Configs(Sequence[DictConfig]):
    """The configuration of each job, made when it is asked for."""

    def __init__(self, composition: Composition, points: Sequence[tuple[int, dict[str, Value]]]) -> None:
        self._composition, self._points = composition, points

    def __len__(self) -> int:
        return len(self._points)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self._composition.config(*point) for point in self._points[index]]
        return self._composition.config(*self._points[index])


def word(key: str, value: Value) -> str:
    """``key=value`` as a user would type it."""
    words = {None: "null", True: "true", False: "false"}
    shown = words[value] if value is None or isinstance(value, bool) else value
    return f"{key}={shown}"


def _groups(values: Mapping[str, Value]) -> tuple[str, ...]:
    return tuple(word(key, value) for key, value in values.items() if _is_group(key))


@lru_cache(maxsize=1024)
def _is_group(key: str) -> bool:
    """Whether a key chooses a file in conf/ (algorithm, participation/sampler) rather than a value."""
    return (conf_dir() / key).is_dir()


def _free(cfg: DictConfig, values: Mapping[str, Value]) -> set[str]:
    """Keys that no other value of the configuration follows: those that no ``${...}`` in it can mean."""
    texts = list(_interpolations(cfg))
    resolvers = {name for text in texts for name in re.findall(r"\$\{\s*([\w.]+)\s*:", text)}
    if not resolvers <= {*RESOLVERS} or any(re.search(r"[.{]\s*\$\{|\[", text) for text in texts):
        return set()
    named = {last for text in texts for last in re.findall(r"(\w+)(?![\w.])", text)} | READ
    leaves = {key for key in values if not _is_group(key) and key not in FILES}
    return {key for key in leaves if not named & {*key.split(".")}}


def _interpolations(node: Any) -> Iterator[str]:
    """All texts with ``${``, at any depth."""
    raw = OmegaConf.to_container(node, resolve=False) if isinstance(node, DictConfig) else node
    if isinstance(raw, dict | list):
        for inner in raw.values() if isinstance(raw, dict) else raw:
            yield from _interpolations(inner)
    elif isinstance(raw, str) and "${" in raw:
        yield raw


def _set(file: SweepFile, cfg: DictConfig, key: str, value: Value) -> None:
    """What Hydra makes of a ``key=value`` word after composing, without composing again."""
    where, hint = f"{file.path.name}: {file.place}.{key}", "python run.py --cfg job shows all keys"
    try:
        if OmegaConf.select(cfg, key, throw_on_missing=False, default=_ABSENT) is _ABSENT:
            closest = near(key, _keys(cfg))
            hint = f"{closest}: in its place" if closest else hint
            raise ConfigError(where, value, "a key of the configuration", hint) from None
        OmegaConf.update(cfg, key, value, merge=True)
    except OmegaConfBaseException as error:
        raise ClashError(where, value, str(error).splitlines()[0], hint) from None


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
