"""A folder shared by several machines: whose run it is, and whose decision counts."""

import json
import os
import socket
import time
from dataclasses import replace

import pytest

from fedgm import lock
from fedgm.errors import RunLockedError
from fedgm.study import points, rungs
from fedgm.study.runner import Runner
from fedgm.study.sweep_progress import Results, targets
from tests.study.planned_sweep import plan
from tests.study.stored_runs import store

ABSENT = 5_000_000  # no process of this machine: above what Linux hands out


@pytest.fixture
def planned(tmp_path) -> points.SweepPlan:
    return plan(tmp_path)


def held_elsewhere(folder, beat: float) -> str:
    """A lock as a run on another machine leaves it, with its last heartbeat so many seconds ago."""
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps({"pid": ABSENT, "host": f"not-{socket.gethostname()}", "since": time.time() - 600})
    (folder / "lock").write_text(text)
    os.utime(folder / "lock", (time.time() - beat,) * 2)
    return text


def test_a_fresh_heartbeat_from_another_machine_is_a_lock(tmp_path):
    """The kernel's own lock is free: on many shared disks it does not reach other machines."""
    text = held_elsewhere(tmp_path, beat=lock.STALE / 2)
    before = (tmp_path / "lock").stat().st_mtime_ns
    assert lock.is_alive(tmp_path)
    with pytest.raises(RunLockedError, match=rf"process {ABSENT} on not-{socket.gethostname()} since "):
        lock.locked(tmp_path).__enter__()
    # The other machine still holds it, and our look was no heartbeat.
    assert (tmp_path / "lock").read_text() == text
    assert (tmp_path / "lock").stat().st_mtime_ns == before


def test_a_runner_leaves_a_point_alone_while_another_machine_works_on_it(planned):
    job = planned.jobs[0]
    runner = Runner(Results(planned), 1, lambda runner: None, lambda runner, job: None)
    assert runner._is_free(job)
    held_elsewhere(job.folder, beat=lock.STALE / 2)
    assert not runner._is_free(job)
    assert runner.results.state(job) == "running"
    held_elsewhere(job.folder, beat=lock.STALE + 1)  # that machine is gone
    assert runner._is_free(job)


def test_of_two_decisions_the_first_counts_and_nothing_else_is_left(planned):
    assert rungs.read(planned, 6) is None
    assert rungs.keep(planned, 6, [1, 2]) == [1, 2]
    assert rungs.keep(planned, 6, [3, 4]) == [1, 2]  # it came too late
    assert rungs.read(planned, 6) == [1, 2]
    assert len(list(planned.folder.iterdir())) == 1
    assert rungs.keep(planned, 18, [1]) == [1]  # another rung
    fewer = replace(planned, jobs=planned.jobs[:4])
    assert rungs.read(fewer, 6) is None  # another sweep of the same name


def test_a_changed_decision_is_taken_again(planned):
    """By one digit: the rung's points would otherwise be others than those that won."""
    for number, job in enumerate(planned.jobs):
        store(job, [0.1, 0.1 * number], "paused")
    limits = targets(Results(planned))
    (path,) = planned.folder.glob("rung-6-*.json")
    assert json.loads(path.read_text())["survivors"] == [4, 5]
    path.write_text(path.read_text().replace("[4, 5]", "[1, 5]"))
    assert rungs.read(planned, 6) is None
    with pytest.warns(UserWarning, match="is damaged: the rung decides again"):
        assert targets(Results(planned)) == limits
    assert rungs.read(planned, 6) == [4, 5]


def test_a_decision_of_an_older_version_counts(planned):
    rungs.keep(planned, 6, [1, 2])
    (path,) = planned.folder.glob("rung-6-*.json")
    path.write_text(json.dumps({"survivors": [3, 4], "round": 6}))  # without a seal
    assert rungs.read(planned, 6) == rungs.keep(planned, 6, [1, 2]) == [3, 4]


def test_a_runner_that_decides_too_late_follows_the_other(planned, monkeypatch):
    """Both find no decision, and the other is faster; it has seen points crash that went well here."""
    for number, job in enumerate(planned.jobs):
        store(job, [0.1, 0.1 * number], "paused")
    look = rungs.read

    def look_and_be_overtaken(made: points.SweepPlan, until: int) -> list[int] | None:
        found = look(made, until)
        if until == 6 and found is None:
            rungs.keep(made, until, [0, 1])
        return found

    monkeypatch.setattr(rungs, "read", look_and_be_overtaken)
    limits = targets(Results(planned))
    assert [limits[job.key] for job in planned.jobs] == [18, 18, 6, 6, 6, 6]  # by itself: 4 and 5
