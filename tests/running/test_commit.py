"""The commit of a run: marked where the code that made it was changed, not where runs have written."""

import os
import subprocess
from pathlib import Path

import pytest

from fedgm.running import facts


def git(root: Path, *words: str) -> None:
    who = ("-c", "user.name=a", "-c", "user.email=a@b")
    subprocess.run(["git", *who, *words], cwd=root, check=True, capture_output=True)


@pytest.fixture(autouse=True)
def nobodys_git(monkeypatch):
    """Without the settings of whoever runs the tests, and of a hook that may run them."""
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A repository with code, rows and winners, as fedgm's own has them."""
    for name in (
        "fedgm/running/facts.py",
        "docs/results/rows.jsonl",
        "conf/best/small.yaml",
        "conf/config.yaml",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("as committed\n")
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-qm", "first")
    monkeypatch.setattr(facts, "__file__", str(tmp_path / "fedgm/running/facts.py"))
    return tmp_path


@pytest.mark.parametrize("name", ["docs/results/rows.jsonl", "conf/best/small.yaml"])
def test_what_runs_write_is_no_change_of_the_code(checkout, name):
    (checkout / name).write_text("another row\n")
    commit = facts.commit()
    assert commit is not None
    assert len(commit) == 12


@pytest.mark.parametrize("name", ["fedgm/running/facts.py", "conf/config.yaml"])
def test_a_change_of_the_code_is_marked(checkout, name):
    (checkout / name).write_text("changed\n")
    assert str(facts.commit()).endswith("-dirty")


def test_an_installed_package_has_none(tmp_path, monkeypatch):
    monkeypatch.setattr(facts, "__file__", str(tmp_path / "fedgm/running/facts.py"))
    assert facts.commit() is None
