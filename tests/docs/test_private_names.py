"""Private names of other packages: all that we use stand in docs/decisions.md, with place and reason."""

import ast
import inspect
import re
import textwrap
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FILES = [
    *sorted((ROOT / "fedgm").rglob("*.py")),
    *sorted((ROOT / "hydra_plugins").rglob("*.py")),
    ROOT / "run.py",
]
if find_spec("flwr") is None:  # its classes cannot be looked at; both files use documented names alone
    FILES = [path for path in FILES if "\nfrom flwr" not in path.read_text()]
# Documented in spite of the underscore: namedtuple's methods and os._exit.
PUBLIC = {"_asdict", "_fields", "_make", "_replace", "_exit"}
READERS = ("getattr", "setattr", "hasattr", "delattr")


def is_private(name: str) -> bool:
    return bool(re.fullmatch(r"_[A-Za-z]\w*", name)) and name not in PUBLIC


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def is_self(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id in ("self", "cls")


def defined(node: ast.AST) -> set[str]:
    """Private names that a piece of code defines: functions, classes, variables, parameters, self._name."""
    names: set[str] = set()
    for part in ast.walk(node):
        if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(part.name)
        elif isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
            names.add(part.id)
        elif isinstance(part, ast.Attribute) and isinstance(part.ctx, ast.Store) and is_self(part.value):
            names.add(part.attr)
    return {name for name in names if is_private(name)}


def imported(node: ast.AST) -> list[str]:
    """Full names that an import statement asks for."""
    if isinstance(node, ast.ImportFrom) and node.module and not node.level:
        return [f"{node.module}.{alias.name}" for alias in node.names]
    return [alias.name for alias in node.names] if isinstance(node, ast.Import) else []


def used(node: ast.AST, ours: set[str]) -> set[str]:
    """Private names that are imported from elsewhere, or read of something that is not ours."""
    names: set[str] = set()
    for part in ast.walk(node):
        for full in imported(part):
            if full.split(".")[0] != "fedgm":
                names |= {word for word in full.split(".") if is_private(word)}
        if isinstance(part, ast.Attribute) and is_private(part.attr):
            # Of self it is ours or inherited; what is inherited, `borrowed` finds.
            names |= set() if part.attr in ours else {part.attr}
        if isinstance(part, ast.Call) and isinstance(part.func, ast.Name) and part.func.id in READERS:
            name = part.args[1] if len(part.args) > 1 else None
            text = str(name.value) if isinstance(name, ast.Constant) else ""
            names |= {text} if is_private(text) and text not in ours else set()
    return names


def foreign_bases(path: Path, node: ast.ClassDef) -> list[type]:
    """Classes of other packages that a class of ours inherits from."""
    if not node.bases or path.name == "run.py":
        return []
    module = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    cls = getattr(import_module(module), node.name, None)
    bases = inspect.getmro(cls) if isinstance(cls, type) else ()
    third = [
        base
        for base in bases
        if base.__module__.split(".")[0] in ("pytorch_lightning", "torch", "hydra", "wandb")
    ]
    return third


@cache
def private_members(base: type) -> frozenset[str]:
    """Private methods and attributes of a class, read from its source."""
    try:
        return frozenset(defined(ast.parse(textwrap.dedent(inspect.getsource(base)))))
    except (OSError, TypeError):
        return frozenset()


def borrowed(path: Path) -> set[str]:
    """Private names of a foreign base that a class of ours overrides or touches through self."""
    overridden: set[str] = set()
    for node in ast.walk(tree(path)):
        if not isinstance(node, ast.ClassDef):
            continue
        bases = foreign_bases(path, node)
        members = {
            part.attr for part in ast.walk(node) if isinstance(part, ast.Attribute) and is_self(part.value)
        }
        members |= {part.name for part in node.body if isinstance(part, ast.FunctionDef)}
        overridden |= {name for base in bases for name in private_members(base)} & {
            n for n in members if is_private(n)
        }
    return overridden


def listed() -> dict[str, set[str]]:
    """Files of each name in the table of docs/decisions.md."""
    text = (ROOT / "docs" / "decisions.md").read_text().partition("## Private names")[2].partition("\n## ")[0]
    rows = [line.split("|") for line in text.splitlines() if line.startswith("| `")]
    return {re.findall(r"`(.+?)`", row[1])[0]: set(re.findall(r"`(.+?)`", row[3])) for row in rows}


@pytest.mark.slow
def test_the_list_of_private_names_is_complete_and_has_nothing_else():
    ours = set().union(*(defined(tree(path)) for path in FILES))
    files: dict[str, set[str]] = {}
    for path in FILES:
        for name in used(tree(path), ours) | borrowed(path):
            files.setdefault(name, set()).add(str(path.relative_to(ROOT)))
    assert files == listed()


@pytest.mark.parametrize(
    ("code", "names"),
    [
        ("from hydra._internal.utils import x", {"_internal"}),
        ("from torch.nn import _reduction as r", {"_reduction"}),
        ("trainer._results = 1", {"_results"}),
        ("print(self.loop._ours, self._ours)", set()),
        ("getattr(cfg, '_get_node')", {"_get_node"}),
        ("from fedgm.data import _ours", set()),
        ("point._asdict()", set()),
    ],
)
def test_the_search_finds_them(code, names):
    assert used(ast.parse(code), {"_ours"}) == names


def test_an_overridden_private_method_of_a_base_is_found():
    assert "_configure_launcher" in borrowed(ROOT / "fedgm" / "federated" / "workers.py")
