"""docs/systems.md: every option of the groups that it describes has one complete line."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "systems.md").read_text()
GROUPS = ["algorithm", "client", "participation", "upload", "sending", "privacy", "schedule", "work"]


def section(group):
    return TEXT.partition(f"\n## {group}\n")[2].partition("\n## ")[0]


def options(group):
    return sorted(path.stem for path in (ROOT / "conf" / group).glob("*.yaml"))


def lines(group):
    """Cells of every line that names an option."""
    rows = [line for line in section(group).splitlines() if line.startswith("| `")]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in rows]


@pytest.mark.parametrize("group", GROUPS)
def test_every_option_has_one_line_and_no_line_is_left_over(group):
    named = sorted(line[0].strip("`") for line in lines(group))
    samplers = options("participation/sampler") if group == "participation" else []
    assert named == sorted([*options(group), *samplers])


@pytest.mark.parametrize("group", GROUPS)
def test_every_line_is_complete(group):
    for line in lines(group):
        assert len(line) == 6, line
        assert all(line), line
