"""What the docs say about folders and files is true of the tree."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TABLE = (ROOT / "docs" / "architecture.md").read_text().partition("| folder |")[2].partition("\n\n")[0]


def named_folders() -> list[str]:
    return re.findall(r"`(\w+)/`", "\n".join(line.split("|")[1] for line in TABLE.splitlines()[2:]))


def test_the_page_names_every_folder_of_the_package():
    assert sorted(named_folders()) == sorted(
        path.parent.name for path in (ROOT / "fedgm").glob("*/__init__.py")
    )


def test_a_folder_stands_above_all_that_it_may_import():
    """The same order as the contract of lint-imports."""
    contract = (ROOT / "pyproject.toml").read_text().partition("layers = [")[2].partition("]")[0]
    layers = [re.findall(r"fedgm\.(\w+)", line) for line in contract.splitlines()]
    place = {name: number for number, layer in enumerate(layers) for name in layer}
    assert named_folders() == sorted(named_folders(), key=lambda name: place[name])


@pytest.mark.parametrize("page", ["docs/architecture.md", "docs/decisions.md", "CONTRIBUTING.md"])
def test_files_that_a_page_names_are_there(page):
    text = (ROOT / page).read_text()
    named = set(re.findall(r"`((?:fedgm|tests|docs|conf|hydra_plugins|examples)/[\w./]+)`", text))
    assert [name for name in sorted(named) if not (ROOT / name).exists()] == []
