"""What docs/design.md says about folders and files is true of the tree."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "design.md").read_text()
LAYOUT = TEXT.partition("## Layout")[2].partition("```\n")[2].partition("```")[0]


def test_the_layout_names_every_folder_of_the_package():
    named = re.findall(r"^fedgm/(\w+)/", LAYOUT, re.M)
    assert sorted(named) == sorted(path.parent.name for path in (ROOT / "fedgm").glob("*/__init__.py"))


def test_a_folder_stands_below_all_that_it_may_import():
    """The same order as the contract of lint-imports, which has the last layer first."""
    contract = (ROOT / "pyproject.toml").read_text().partition("layers = [")[2].partition("]")[0]
    layers = [re.findall(r"fedgm\.(\w+)", line) for line in reversed(contract.splitlines())]
    place = {name: number for number, layer in enumerate(layers) for name in layer}
    named = [name for name in re.findall(r"^fedgm/(\w+)/", LAYOUT, re.M) if name in place]
    assert len(named) > 20
    assert named == sorted(named, key=lambda name: place[name])


@pytest.mark.parametrize("page", ["docs/design.md", "CONTRIBUTING.md"])
def test_files_that_a_page_names_are_there(page):
    named = set(
        re.findall(r"`((?:fedgm|tests|docs|conf|hydra_plugins|examples)/[\w./]+)`", (ROOT / page).read_text())
    )
    assert len(named) > 10
    assert [name for name in sorted(named) if not (ROOT / name).exists()] == []
