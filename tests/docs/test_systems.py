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


@pytest.mark.parametrize(
    ("group", "option", "said"),
    [
        ("algorithm", "schedule_free", "the authors' code has c = 1/t"),
        ("algorithm", "slowmo", "not where a scheduler changes it"),
        ("algorithm", "fedmom", "part of *all* samples"),
        ("algorithm", "fednag", "the paper calls Nesterov at the server so"),
        ("algorithm", "fedsgd", "the paper calls two-sided FedAvg so"),
        ("algorithm", "triple", "the original returns a third sequence"),
        ("algorithm", "fedacg", "Its authors evaluate x̄: `eval.point=average`"),
        ("client", "mifa", "G_i is 0 until client i has come"),
        ("participation", "fedasync", "the paper's Alg. 1 writes t - τ"),
    ],
)
def test_what_differs_from_the_original_is_said(group, option, said):
    differs = {line[0].strip("`"): line[4] for line in lines(group)}
    assert said in differs[option]


def test_the_files_of_two_options_say_it_too():
    said = {
        "algorithm/fedacg": "add  eval.point=average",
        "participation/fedasync": "its paper writes t - tau",
    }
    for name, text in said.items():
        assert text in (ROOT / "conf" / f"{name}.yaml").read_text()
