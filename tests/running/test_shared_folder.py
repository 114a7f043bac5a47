"""Two machines on one folder whose process numbers are equal, as in containers; disks without hard links."""

import os
import socket
from pathlib import Path

import pytest

from fedgm.files import write_atomically
from fedgm.running.folder import create
from fedgm.study import points, rungs, sweep_file

FILE = """
method: grid
metric: {name: test/acc, goal: maximize}
parameters:
  algorithm.eta: {values: [0.5, 1.0, 2.0]}
command: ["${program}", profile=tiny, "${args_no_hyphens}"]
"""


@pytest.fixture
def planned(tmp_path) -> points.SweepPlan:
    (tmp_path / "s.yaml").write_text(FILE)
    return points.make(sweep_file.read(tmp_path / "s.yaml"), [], [0], str(tmp_path / "o"))


@pytest.fixture
def meanwhile(monkeypatch):
    """Do something on the other machine, in the middle of what this one does: before or after ``name``."""

    def arrange(owner, name: str, act, after: bool = False) -> None:
        real = getattr(owner, name)

        def interrupted(*arguments, **named):
            monkeypatch.setattr(owner, name, real)  # once
            done = real(*arguments, **named) if after else None
            with monkeypatch.context() as there:
                there.setattr(socket, "gethostname", lambda: "another-machine")
                act()
            return done if after else real(*arguments, **named)

        monkeypatch.setattr(owner, name, interrupted)

    return arrange


def left(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("theirs", [[1], []])
def test_of_two_runners_that_decide_a_rung_at_once_the_faster_one_counts(planned, meanwhile, theirs):
    meanwhile(os, "link", lambda: rungs.keep(planned, 6, theirs))
    assert rungs.keep(planned, 6, [0]) == theirs
    assert rungs.read(planned, 6) == theirs
    assert len(left(planned.folder)) == 1  # nothing but the decision


def test_a_rung_decides_once_on_a_disk_without_hard_links(planned, monkeypatch):
    def refuse(*paths):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)  # what a FAT disk says; there is none here
    assert rungs.keep(planned, 6, [2]) == [2]
    assert rungs.keep(planned, 6, [0]) == rungs.read(planned, 6) == [2]
    assert len(left(planned.folder)) == 1


def test_a_file_that_two_machines_write_at_once_is_that_of_the_later(tmp_path, meanwhile):
    path = tmp_path / "points.csv"
    meanwhile(os, "fsync", lambda: write_atomically(path, "theirs"))
    write_atomically(path, "ours", sync=True)
    assert path.read_text() == "ours"
    assert left(tmp_path) == ["points.csv"]


def test_a_run_folder_that_two_machines_open_at_once_is_writable_for_both(tmp_path, meanwhile):
    meanwhile(Path, "touch", lambda: create(tmp_path / "run"), after=True)
    create(tmp_path / "run")
    assert left(tmp_path / "run") == []


def test_how_runs_are_tracked_does_not_part_two_runners(planned, tmp_path):
    """The decisions of the rungs are in this folder."""
    tracked = points.make(planned.file, ["track.mode=disabled"], [0], str(tmp_path / "o"))
    other = points.make(planned.file, ["local.lr=0.02"], [0], str(tmp_path / "o"))
    assert tracked.folder == planned.folder != other.folder
