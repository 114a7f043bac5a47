"""Import order: beside a CPU-only torch, Lightning can be imported only after ``fedgm.lightning``."""

import ast
from pathlib import Path

import pytest

import fedgm

PACKAGE = Path(fedgm.__file__).parent
FILES = [*PACKAGE.rglob("*.py"), *(PACKAGE.parent / "hydra_plugins").rglob("*.py")]
DOOR = "fedgm.lightning"  # declares the operators that torchvision looks up
BEHIND_IT = ("pytorch_lightning", "torchvision", "torchmetrics")


def imported(path: Path) -> list[str]:
    """Modules in the order in which importing the file asks for them; functions import later."""
    names = []
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.ImportFrom) and node.module:
            names.append(node.module)
        elif isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
    return names


def too_early(names: list[str]) -> list[str]:
    """What stands before the door, though it needs it."""
    before = names[: names.index(DOOR)] if DOOR in names else names
    return [name for name in before if name.split(".")[0] in BEHIND_IT]


@pytest.mark.parametrize("path", sorted(FILES), ids=lambda path: str(path.relative_to(PACKAGE.parent)))
def test_whatever_needs_the_operators_comes_after_them(path):
    if path == PACKAGE / "lightning.py":
        return
    assert too_early(imported(path)) == []


def test_the_check_can_fail():
    assert too_early(["torch", "pytorch_lightning.trainer", DOOR]) == ["pytorch_lightning.trainer"]
    assert too_early(["torchvision.models"]) == ["torchvision.models"]
    assert too_early([DOOR, "pytorch_lightning"]) == []
