"""Whether a thing, or the class that a target promises, is the part that is asked for."""

import inspect
from types import NoneType, UnionType
from typing import Any, Protocol, Union, get_args, get_origin, get_type_hints


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
        own = str(getattr(target, "__module__", "")).startswith("fedgm.")  # whose parts are all readable
        return NoneType if said in (None, "None") else object if own else Any


def lacks(found: Any, kind: type) -> str:
    """What a class or a thing lacks to be of a kind, in words; empty where nothing is missing."""
    if found is Any:
        return ""
    if get_origin(found) in (Union, UnionType):
        return next((text for part in get_args(found) if (text := lacks(part, kind))), "")
    found = get_origin(found) or found
    own = found if inspect.isclass(found) else type(found)
    if not getattr(kind, "_is_protocol", False):
        return "" if issubclass(own, kind) else f"{own.__name__} is no subclass of it"
    have = {name for base in own.__mro__ for name in getattr(base, "__annotations__", {})}
    names = _methods(kind) if inspect.isclass(found) else _methods(kind) | _fields(kind)
    missing = sorted(name for name in names if not hasattr(found, name) and name not in have)
    return f"{own.__name__} has no {', '.join(missing)}" if missing else ""


def _methods(kind: type) -> set[str]:
    """Methods and properties, which a class has before there is an instance."""
    bases = [base for base in kind.__mro__ if base not in (object, Protocol)]
    return {name for base in bases for name in vars(base) if not name.startswith("_")}


def _fields(kind: type) -> set[str]:
    return {name for base in kind.__mro__ for name in getattr(base, "__annotations__", {}) if name[0] != "_"}
