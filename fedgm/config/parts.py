"""Parts chosen by ``_target_``: checked against the target's own signature, then built.

So a new rule, model or schedule is one file and one yaml; its type hints are its schema.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from types import NoneType, UnionType
from typing import Any, Literal, Protocol, Union, get_args, get_origin, get_type_hints

from hydra.utils import get_object, instantiate

from fedgm.errors import DOTTED, ClashError, ConfigError, near

NOT_PARAMETERS = ("name", "version", "channels_last")  # of the group, unless the target names them itself


def build(
    node: Mapping[str, Any],
    key: str,
    offer: object = None,
    kind: type | None = None,
    **extra: Any,
) -> Any:
    """Check the values of ``node`` (found at ``key``) and call its target with them.

    ``extra`` is passed in any case. ``offer`` goes to the parameters that are annotated with its type,
    whatever their names; a part that has none gets nothing. Nested nodes with a ``_target_`` are built first,
    with the same offer. ``kind`` is the protocol or class of the part: a target that promises something else
    is not even called.
    """
    extra |= dict.fromkeys(_asking(node, key, type(offer)) if offer is not None else (), offer)
    check_part(node, key, given=set(extra))
    if kind is not None:
        _require_kind(kind, promised(target_of(node, key)), node, key)
    wanted = inspect.signature(get_object(str(node["_target_"]))).parameters
    values = {k: v for k, v in node.items() if k not in NOT_PARAMETERS or k in wanted}
    for name, value in node.items():
        if name in values and isinstance(value, Mapping) and "_target_" in value:
            inner, where = _target(node, key)[2].get(name), f"{key}.{name}"
            extra[name] = build(_asked_for(values.pop(name), node, where), where, offer, _part(inner))
    # Partial, then called here: Hydra would copy what is passed through it, and wrap what is raised.
    built = instantiate({**values, "_partial_": True}, _convert_="all")(**extra)
    if kind is not None:
        _require_kind(kind, built, node, key)
    return built


def _asking(node: Mapping[str, Any], key: str, kind: type) -> list[str]:
    """Parameters of the target that are annotated with ``kind``, alone or in a union."""
    _, signature, hints = _target(node, key)
    return [name for name in signature.parameters if kind in (hints.get(name), *get_args(hints.get(name)))]


def _asked_for(node: Mapping[str, Any], around: Mapping[str, Any], key: str) -> dict[str, Any]:
    """A nested node without what the part around it has only passed on and its own target does not take.

    ``ideal`` passes count, per_round and seed to every sampler, also to one that draws nothing.
    """
    takes = _target(node, key)[1].parameters
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in takes.values()):
        return dict(node)
    passed_on = {k for k, v in node.items() if k not in takes and k in around and around[k] == v}
    return {k: v for k, v in node.items() if k not in passed_on or k == "_target_"}


def _part(hint: Any) -> type | None:
    """The protocol that a parameter's hint asks of a nested part; None where it says nothing."""
    return hint if inspect.isclass(hint) and getattr(hint, "_is_protocol", False) else None


def check_part(node: Mapping[str, Any], key: str, given: set[str] | None = None) -> None:
    """Raise :class:`ConfigError` for an unknown target, an unknown parameter or a value of the wrong type."""
    target, signature, hints = _target(node, key)
    names = [n for n, p in signature.parameters.items() if p.kind is not p.VAR_KEYWORD and n != "self"]
    open_ended = any(p.kind is p.VAR_KEYWORD for p in signature.parameters.values())
    for name, value in node.items():
        if name == "_target_" or (name in NOT_PARAMETERS and name not in names):
            continue
        where = f"{key}.{name}"
        if name not in names and not open_ended:
            meant = near(name, names, cutoff=0.75)
            hint = f"{key}.{meant}={value}" if meant else f"~{where}"
            raise ClashError(where, value, f"{target} takes {', '.join(names)}", hint)
        if name in hints and not fits(value, hints[name]):
            raise ConfigError(where, value, in_words(hints[name]), f"{where}={_example(hints[name])}")
    missing = [
        n for n in names if signature.parameters[n].default is inspect.Parameter.empty and n not in node
    ]
    for name in missing:
        if (
            name not in (given or set())
            and signature.parameters[name].kind is not inspect.Parameter.VAR_POSITIONAL
        ):
            hint = f"+{key}.{name}={_example(hints.get(name, float))}"
            raise ClashError(f"{key}.{name}", "(missing)", f"{target} needs it", hint)


def _require_kind(kind: type, made: Any, node: Mapping[str, Any], key: str) -> None:
    """Refuse a target that makes something other than this part."""
    if missing := lacks(made, kind):
        allowed = f"it does not make a {kind.__name__}: {missing}"
        raise ClashError(f"{key}._target_", node["_target_"], allowed, f"an option of {key.split('.')[0]}")


def target_of(node: Mapping[str, Any], key: str) -> Callable[..., Any]:
    """What ``_target_`` names."""
    name = node.get("_target_")
    try:
        return get_object(str(name))
    except Exception as error:
        reason = str(error).splitlines()[0]
        allowed = f"an importable name ({reason})"
        raise ConfigError(f"{key}._target_", name, allowed, DOTTED) from None


def _target(node: Mapping[str, Any], key: str) -> tuple[str, inspect.Signature, dict[str, Any]]:
    """The target's name, signature and, as far as they can be read, type hints."""
    name, target = node.get("_target_"), target_of(node, key)
    try:
        hints = get_type_hints(target.__init__ if inspect.isclass(target) else target)
    except Exception:
        hints = {}  # a library's unreadable hints: its own errors must do
    try:
        signature = inspect.signature(target)
    except (TypeError, ValueError):
        allowed = "a class or a function that says which parameters it takes"
        raise ConfigError(f"{key}._target_", name, allowed, "the full dotted path of one") from None
    return str(name), signature, hints


def fits(value: object, hint: Any) -> bool:
    """Whether a plain yaml value may be passed where ``hint`` stands; unknown hints accept anything."""
    origin, args = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return any(fits(value, a) for a in args)
    if origin is Literal:
        return value in args
    if isinstance(origin, type) and issubclass(origin, Sequence):
        return isinstance(value, list | tuple) and all(fits(v, args[0]) for v in value)
    if _part(hint) is not None:
        return isinstance(value, Mapping) and "_target_" in value
    if hint is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool)
    if hint in (bool, str, NoneType):
        return isinstance(value, hint)
    return True


def in_words(hint: Any) -> str:
    """A hint in words, for error messages."""
    origin, args = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return " or ".join(in_words(a) for a in args)
    if origin is Literal:
        return " or ".join(str(a) for a in args)
    if isinstance(origin, type) and issubclass(origin, Sequence):
        return f"a list, each entry {in_words(args[0])}"
    if (part := _part(hint)) is not None:
        return f"a {part.__name__} by its _target_"
    words = {float: "a number", int: "a whole number", bool: "true or false", str: "a word", NoneType: "null"}
    return words.get(hint, str(hint))


def _example(hint: Any) -> str:
    """A value that would be accepted."""
    origin, args = get_origin(hint), get_args(hint)
    if origin is Literal:
        return str(args[0])
    if origin in (Union, UnionType):
        return _example(args[0])
    if isinstance(origin, type) and issubclass(origin, Sequence):
        return "[" + _example(args[0]) + "]"
    return {float: "0.9", int: "1", bool: "true", str: "name"}.get(hint, "...")


def promised(target: Any) -> Any:
    """What calling the target makes: the class itself, or a function's return type; Any if it says nothing.

    So a function that does something else (and returns None) is refused before it is called.
    """
    if inspect.isclass(target):
        return target
    try:
        said = get_type_hints(target).get("return", Any)
        return said if inspect.isclass(said) or get_origin(said) is not None else Any
    except Exception:  # names that exist for type checkers alone
        said = getattr(target, "__annotations__", {}).get("return", Any)
        is_ours = str(getattr(target, "__module__", "")).startswith("fedgm.")  # whose parts are all readable
        return NoneType if said in (None, "None") else object if is_ours else Any


def lacks(made: Any, kind: type) -> str:
    """What a class or an object lacks to be of a kind, in words; empty where nothing is missing."""
    if made is Any:
        return ""
    if get_origin(made) in (Union, UnionType):
        return next((text for part in get_args(made) if (text := lacks(part, kind))), "")
    made = get_origin(made) or made
    cls = made if inspect.isclass(made) else type(made)
    if not getattr(kind, "_is_protocol", False):
        return "" if issubclass(cls, kind) else f"{cls.__name__} is not a subclass of it"
    have = {name for base in cls.__mro__ for name in getattr(base, "__annotations__", {})}
    names = _methods(kind) if inspect.isclass(made) else _methods(kind) | _fields(kind)
    missing = sorted(name for name in names if not hasattr(made, name) and name not in have)
    return f"{cls.__name__} has no {', '.join(missing)}" if missing else ""


def _methods(kind: type) -> set[str]:
    """Methods and properties, which a class has before there is an instance."""
    bases = [base for base in kind.__mro__ if base not in (object, Protocol)]
    return {name for base in bases for name in vars(base) if not name.startswith("_")}


def _fields(kind: type) -> set[str]:
    return {name for base in kind.__mro__ for name in getattr(base, "__annotations__", {}) if name[0] != "_"}
