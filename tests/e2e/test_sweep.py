"""`fedgm sweep` as a process: killed, shared, crashing; every point runs once, with the same bytes."""

import os
import random
import signal
from pathlib import Path

import pytest

from fedgm.results import rows
from fedgm.results.find import below
from tests.e2e.commands import is_alive, timeless
from tests.e2e.sweep_process import (
    begun,
    descendants,
    finish,
    folders,
    has_checkpoint,
    is_continued,
    is_open,
    kill_a_run,
    kill_all,
    note_lost,
    outcome,
    rows_below,
    start,
    sweep_file,
    until_seen,
)

HALVING = "early_terminate: {type: hyperband, min_iter: 3, eta: 3}\n"


@pytest.mark.slow
def test_a_grid_killed_and_shared_by_two_runners_ends_as_an_undisturbed_one(tmp_path):
    path = sweep_file(tmp_path, "[0.5, 1.0]", "[0.5, 0.9]")
    text = finish(start(path, tmp_path / "calm"))
    assert "4 finished" in text
    assert (tmp_path / "calm" / "sweeps" / "tiny" / "grid" / "points.csv").exists()

    rough, lost = tmp_path / "rough", dict[Path, int]()
    killed = start(path, rough)
    until_seen(lambda: sum(map(has_checkpoint, folders(rough))) == 2, killed)
    kill_all(killed)
    note_lost(rough, lost)
    halfway = [folder for folder in folders(rough) if is_open(folder) and has_checkpoint(folder)]
    assert halfway
    pair = [start(path, rough) for _ in range(2)]
    texts = [finish(process) for process in pair]
    assert all("4 finished" in text for text in texts)
    assert outcome(rough) == outcome(tmp_path / "calm")
    assert [begun(folder) - lost.get(folder, 0) for folder in folders(rough)] == [1] * 4
    assert [folder for folder in folders(rough) if is_continued(folder)] == halfway  # inside the open runs
    again = finish(start(path, tmp_path / "rough"))
    assert ": finished," not in again  # nothing is run twice


CRASH = """
import os, resource, signal
from pathlib import Path
from fedgm.server.momentum import GeneralMomentum

class Crash(GeneralMomentum):
    def step(self, x, state, delta, hyper):
        eta = hyper["eta"]
        if eta == 1.0:
            os.abort()
        if eta == 1.5:
            used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
            resource.setrlimit(resource.RLIMIT_AS, (used + 2**28, used + 2**28))
            hoard = [bytearray(2**24) for _ in range(1000)]
        if eta in (2.5, 3.0):  # what the kernel does when memory is short; it spares 3.0 the third time
            notes = Path(__file__).with_name(f"{eta}.txt")
            with notes.open("a") as file:
                file.write(Path("/proc/self/oom_score_adj").read_text())
            if eta == 2.5 or len(notes.read_text().split()) < 3:
                os.kill(os.getpid(), signal.SIGKILL)
        return super().step(x, state, delta, hyper)
"""


@pytest.mark.slow
def test_a_crash_stays_in_its_run(tmp_path, monkeypatch):
    (tmp_path / "crashing.py").write_text(CRASH)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]))
    words = ", algorithm._target_=crashing.Crash"
    path = sweep_file(tmp_path, "[0.5, 1.0, 1.5, 2.0, 2.5, 3.0]", words=words, rounds=3)
    text = finish(start(path, tmp_path / "o"), code=1)
    assert "failed eta 1.0: ended by SIGABRT" in text
    assert "failed eta 1.5: MemoryError" in text
    assert "failed eta 2.5: killed (out of memory?)" in text
    assert "3 finished" in text
    assert len(outcome(tmp_path / "o")) == 3
    # Three deaths and no fourth start; 500: a run is the first to go when memory is short.
    assert (tmp_path / "2.5.txt").read_text().split() == ["500"] * 3
    assert (tmp_path / "3.0.txt").read_text().split() == ["500"] * 5  # two deaths, then three rounds


@pytest.mark.slow
@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("to", ["sweep", "group"])  # a terminal and a batch system send it to the whole group
def test_a_stopped_sweep_leaves_nothing_behind(tmp_path, signum, to):
    process = start(sweep_file(tmp_path, "[3.0, 4.0]", rounds=4000), tmp_path / "o")
    files = "*/*/seed=*/metrics.jsonl"
    until_seen(lambda: sum(bool(rows.read(p)) for p in (tmp_path / "o").glob(files)) == 2, process)
    children = descendants(process.pid)
    assert len(children) == 3  # the server and two runs
    group = [pid for pid in children if os.getpgid(pid) != pid]  # each run leads a group of its own
    assert len(group) == 1
    for pid in group if to == "group" else []:
        os.kill(pid, signum)
    process.send_signal(signum)
    text = finish(process, code=130)
    assert "stopped; the same command continues" in text
    assert "Traceback" not in text
    assert not any(is_alive(pid) for pid in children)
    assert [run.status for run in below(tmp_path / "o")] == ["stopped", "stopped"]


@pytest.mark.slow
@pytest.mark.parametrize("halving", ["", HALVING], ids=["whole", "halving"])
def test_twelve_points_killed_at_random_moments_three_times(tmp_path, halving):
    """One run, then its runner, then a run and the runner at once; halving must decide the same."""
    path = sweep_file(tmp_path, "[0.5, 1.0, 1.5, 2.0]", "[0.5, 0.7, 0.9]", halving)
    finish(start(path, tmp_path / "calm"))
    rough, lost, draw = tmp_path / "rough", dict[Path, int](), random.Random(7)
    process, victims = start(path, rough), []
    for what in ("run", "runner", "both"):
        goal = rows_below(rough) + draw.randint(2, 9)
        until_seen(lambda goal=goal: rows_below(rough) >= goal, process)
        if what != "runner":
            victims.append(kill_a_run(process, rough, draw))
        if what == "run":
            until_seen(lambda: is_continued(victims[0]), process)  # by the runner that saw it die
            continue
        # The kill must hit an open run.
        until_seen(lambda running=process: len(descendants(running.pid)) > 1, process)
        kill_all(process)
        note_lost(rough, lost)
        if what == "runner":
            process = start(path, rough)
    assert rows_below(rough) < rows_below(tmp_path / "calm")  # something is left to do
    for process in [start(path, rough) for _ in range(2)]:  # share what is left
        finish(process)
    assert len(outcome(tmp_path / "calm")) == (2 if halving else 12)
    assert outcome(rough) == outcome(tmp_path / "calm")
    assert [begun(folder) - lost.get(folder, 0) for folder in folders(rough)] == [1] * 12
    assert all(is_continued(folder) for folder in victims)
    ended = [
        {str(run.folder.relative_to(home)): (run.status, timeless(run.evaluations)) for run in below(home)}
        for home in (rough, tmp_path / "calm")
    ]
    assert ended[0] == ended[1]
