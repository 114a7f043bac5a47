"""Packages that others import and a run does not need: they load when somebody asks for them.

Lightning imports torchmetrics, which imports torchvision and matplotlib for metrics that no run calls; and
every step of a torch optimiser imports ``torch._dynamo`` (with it sympy) to tell a compiler that may never
come about a graph break. Together that is more than half of the CPU time of a run's imports.
``FEDGM_EAGER_IMPORTS=1`` imports everything at once.
"""

import os
import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType, SimpleNamespace
from typing import Any, Union

EAGER = "FEDGM_EAGER_IMPORTS"
DYNAMO = "torch._dynamo"


class Later:
    """Stands for something of a module that is not loaded, and loads it when it is needed."""

    def __init__(self, owner: "Deferral", module: str, resolve: Callable[[], Any]) -> None:
        self._owner, self._module, self._resolve = owner, module, resolve

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """What the call gives, or will give."""
        # Called while an import goes on it is a decorator, or makes one: the result can wait, too.
        return self._owner.give(self._module, lambda: self._resolve()(*args, **kwargs))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # `typing` looks for them in annotations
            raise AttributeError(name)
        return self._owner.give(self._module, lambda: getattr(self._resolve(), name))

    def __instancecheck__(self, thing: object) -> bool:
        """Nothing is an instance of a class that was never loaded."""
        loaded = sys.modules.get(self._module)
        return loaded is not None and not isinstance(loaded, _Dynamo) and isinstance(thing, self._resolve())

    def __or__(self, other: Any) -> Any:
        return Union[self, other]  # noqa: UP007 - of things that are no types yet

    def __ror__(self, other: Any) -> Any:
        return Union[other, self]  # noqa: UP007


class _StandIn(ModuleType):
    """A module of a deferred package, as whoever imported it goes on to see it."""

    _owner: "Deferral"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self._owner.give(self.__name__, lambda: getattr(import_module(self.__name__), name))


class Deferral(MetaPathFinder, Loader):
    """While it is in place, modules of the packages are stand-ins; afterwards those load the real ones."""

    def __init__(self, packages: Sequence[str]) -> None:
        self.packages, self.active = packages, True

    def give(self, module: str, resolve: Callable[[], Any]) -> Any:
        """Something that loads later or, when the deferral is over, the thing itself."""
        return Later(self, module, resolve) if self.active else resolve()

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """Ours, if the package is deferred."""
        ours = fullname.split(".")[0] in self.packages
        return ModuleSpec(fullname, self, is_package=True) if ours else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """An empty module that knows where to look."""
        module = _StandIn(spec.name)
        module._owner = self
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Nothing runs."""


@contextmanager
def deferred(*packages: str) -> Generator[None]:
    """Imports of ``packages`` inside the block load nothing; those loaded already stay as they are."""
    wanted = [] if os.environ.get(EAGER) else [name for name in packages if name not in sys.modules]
    finder = Deferral(wanted)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        finder.active = False
        for name in [name for name, module in sys.modules.items() if isinstance(module, _StandIn)]:
            del sys.modules[name]


class _Dynamo(ModuleType):
    """``torch._dynamo`` for programs that compile nothing; any other name in it loads the real one."""

    def __init__(self) -> None:
        super().__init__(DYNAMO)
        self.__path__ = list[str]()
        self.graph_break = _nothing
        self.disable = _disable
        self.trace_rules = SimpleNamespace(clear_lru_cache=_nothing)
        self.OptimizedModule = Later(Deferral(()), DYNAMO, lambda: _real_dynamo().OptimizedModule)

    def __getattr__(self, name: str) -> Any:
        if name in ("__file__", "__cached__"):
            raise AttributeError(name)
        return getattr(_real_dynamo(), name)


class _DynamoParts(MetaPathFinder, Loader):
    """``import torch._dynamo.config`` beside the stand-in: the real package comes, with all its parts."""

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """Only for a part that the real package has loaded by itself; else Python's own finders know it."""
        if not fullname.startswith(f"{DYNAMO}.") or not isinstance(sys.modules.get(DYNAMO), _Dynamo):
            return None
        real = _real_dynamo()
        if found := sys.modules.get(fullname):
            # Python would take the module's own spec instead of ours, and load a second copy.
            self._spec, found.__dict__["__spec__"] = found.__spec__, None
            return ModuleSpec(fullname, self)
        for finder in sys.meta_path:
            if finder is not self and (spec := finder.find_spec(fullname, real.__path__, None)):
                return spec
        return None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """The module that is there already."""
        return sys.modules[spec.name]

    def exec_module(self, module: ModuleType) -> None:
        """It has run; it only gets its own spec back."""
        module.__dict__["__spec__"] = self._spec


def defer_dynamo() -> None:
    """Put the stand-in where torch's optimisers and Lightning look; nothing happens where it is loaded."""
    import torch

    if DYNAMO in sys.modules or os.environ.get(EAGER):
        return
    sys.meta_path.insert(0, _DynamoParts())
    sys.modules[DYNAMO] = torch._dynamo = _Dynamo()


def _real_dynamo() -> ModuleType:
    """Load it, in the place of the stand-in."""
    import torch

    if isinstance(sys.modules.get(DYNAMO), _Dynamo):
        del sys.modules[DYNAMO]
        torch.__dict__.pop("_dynamo", None)
    return import_module(DYNAMO)


def _nothing() -> None:
    """A graph break, where no graph is made."""


def _disable(function: Callable[..., Any], *options: Any, **more: Any) -> Callable[..., Any]:
    """As ``torch._dynamo.disable``: without a compiler the function itself, with one what it makes of it."""
    made: list[Callable[..., Any]] = []

    def call(*args: Any, **kwargs: Any) -> Any:
        if isinstance(sys.modules.get(DYNAMO), _Dynamo):
            return function(*args, **kwargs)
        if not made:
            made.append(_real_dynamo().disable(function, *options, **more))
        return made[0](*args, **kwargs)

    return call
