"""`fedgm sweep` as a process: killed, shared, crashing; every point runs once, with the same bytes."""

import os
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fedgm.track import record, rows
from tests.e2e.commands import is_alive, timeless

PROGRAM = [sys.executable, "-m", "fedgm", "sweep"]
SMALL = (
    "profile=tiny, data.train_samples=200, data.test_samples=20, eval.train_samples=20, clients.count=10, "
    "clients.per_round=2, local.unit=steps, local.epochs=1, track.mode=disabled"
)


def sweep_file(
    folder: Path, etas: str, betas: str = "[0.5]", more: str = "", rounds: int = 12, words: str = ""
) -> Path:
    path = folder / "grid.yaml"
    path.write_text(
        "method: grid\nmetric: {name: test/acc, goal: maximize}\nparameters:\n"
        f"  algorithm.eta: {{values: {etas}}}\n  algorithm.beta: {{values: {betas}}}\n{more}"
        f'command: ["${{program}}", +experiment=fedgm, {SMALL}, rounds={rounds}{words}, '
        '"${args_no_hyphens}"]\n'
    )
    return path


def start(path: Path, output_dir: Path, *arguments: str) -> subprocess.Popen:
    command = [*PROGRAM, str(path), "--output-dir", str(output_dir), "--workers", "2", *arguments]
    # A pytest in the background ignores SIGINT, and its children would inherit that.
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, stdin=subprocess.DEVNULL,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )  # fmt: skip


def finish(process: subprocess.Popen, code: int = 0) -> str:
    text, _ = process.communicate(timeout=300)
    assert process.returncode == code, text
    return text


def outcome(output_dir: Path) -> dict[str, tuple[bytes, list]]:
    """Model and rows of every run, by folder."""
    found = {}
    for model in sorted(output_dir.glob("*/*/seed=*/model.safetensors")):
        own = timeless(rows.read(model.parent / "metrics.jsonl"))
        found[str(model.parent.relative_to(output_dir))] = (model.read_bytes(), own)
    return found


def runs_begun(output_dir: Path) -> int:
    """How often a run was begun from round 1: more than there are runs means that one ran twice."""
    logs = output_dir.glob("*/*/seed=*/output.log")
    return sum(len(re.findall(r" round 1/", log.read_text())) for log in logs)


@pytest.mark.slow
def test_a_grid_killed_and_shared_by_two_runners_ends_as_an_undisturbed_one(tmp_path):
    path = sweep_file(tmp_path, "[0.5, 1.0]", "[0.5, 0.9]")
    text = finish(start(path, tmp_path / "calm"))
    assert "4 finished" in text
    assert (tmp_path / "calm" / "sweeps" / "tiny" / "grid" / "points.csv").exists()

    killed = start(path, tmp_path / "rough")
    deadline = time.monotonic() + 120
    while not any(rows.read(p) for p in (tmp_path / "rough").rglob("metrics.jsonl")):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    killed.kill()
    killed.communicate()
    pair = [start(path, tmp_path / "rough") for _ in range(2)]
    texts = [finish(process) for process in pair]
    assert all("4 finished" in text for text in texts)
    assert outcome(tmp_path / "rough") == outcome(tmp_path / "calm")
    # Two were open when they were killed, in their first rounds: each may have begun once more, no other.
    assert runs_begun(tmp_path / "rough") <= 4 + 2
    again = finish(start(path, tmp_path / "rough"))
    assert ": finished," not in again  # nothing is run twice


CRASH = """
import os, resource
from fedgm.server.momentum import GeneralMomentum

class Crash(GeneralMomentum):
    def step(self, x, state, delta, hyper):
        if hyper["eta"] == 1.0:
            os.abort()
        if hyper["eta"] == 1.5:
            used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
            resource.setrlimit(resource.RLIMIT_AS, (used + 2**28, used + 2**28))
            hoard = [bytearray(2**24) for _ in range(1000)]
        return super().step(x, state, delta, hyper)
"""


def test_a_crash_stays_in_its_run_and_ctrl_c_leaves_nothing_behind(tmp_path, monkeypatch):
    (tmp_path / "crashing.py").write_text(CRASH)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]))
    words = ", algorithm._target_=crashing.Crash"
    path = sweep_file(tmp_path, "[0.5, 1.0, 1.5, 2.0]", words=words, rounds=3)
    text = finish(start(path, tmp_path / "o"), code=1)
    assert "failed eta 1.0: ended by SIGABRT" in text
    assert "failed eta 1.5: " in text  # MemoryError, or what a library makes of it
    assert "2 finished" in text
    assert len(outcome(tmp_path / "o")) == 2

    process = start(sweep_file(tmp_path, "[3.0, 4.0]", rounds=4000), tmp_path / "o")
    deadline = time.monotonic() + 120
    while sum(bool(rows.read(p)) for p in (tmp_path / "o").rglob("metrics.jsonl")) < 4:  # two have ended
        assert time.monotonic() < deadline
        time.sleep(0.05)
    children = _descendants(process.pid)
    assert len(children) == 3  # the server and two runs
    process.send_signal(signal.SIGINT)
    assert "stopped; the same command continues" in finish(process, code=130)
    assert not any(is_alive(pid) for pid in children)
    states = {run.status for run in record.below(tmp_path / "o") if run.facts["rounds"] == 4000}
    assert states == {"stopped"}


def _rows_below(output_dir: Path) -> int:
    return sum(len(rows.read(path)) for path in output_dir.rglob("metrics.jsonl"))


def _descendants(pid: int) -> list[int]:
    try:
        own = [int(p) for p in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except (FileNotFoundError, ProcessLookupError):
        return []
    return own + [grandchild for child in own for grandchild in _descendants(child)]


@pytest.mark.slow
def test_twelve_points_killed_at_random_moments_three_times(tmp_path):
    """The runner, both, one run (the runner goes on to the end); with halving, which must decide the same."""
    halving = "early_terminate: {type: hyperband, min_iter: 3, eta: 3}\n"
    path = sweep_file(tmp_path, "[0.5, 1.0, 1.5, 2.0]", "[0.5, 0.7, 0.9]", halving)
    finish(start(path, tmp_path / "calm"))
    rng = random.Random(7)
    for what in ("runner", "both", "run"):
        process = start(path, tmp_path / "rough")
        goal = _rows_below(tmp_path / "rough") + rng.randint(2, 9)
        while _rows_below(tmp_path / "rough") < goal:
            assert process.poll() is None, process.communicate()[0]
            time.sleep(0.01)
        family = _descendants(process.pid)  # the server first, then its runs
        assert len(family) > 1, "the kill must hit an open run"
        if what in ("run", "both"):
            os.kill(rng.choice(family[1:]), signal.SIGKILL)
        if what in ("runner", "both"):
            process.kill()
        process.communicate(timeout=300)
    for process in [start(path, tmp_path / "rough") for _ in range(2)]:  # share what is left
        finish(process)
    assert len(outcome(tmp_path / "calm")) >= 1
    assert outcome(tmp_path / "rough") == outcome(tmp_path / "calm")
    calm, rough = (
        {
            str(run.folder.relative_to(tmp_path / name)): (run.status, timeless(run.evaluations))
            for run in found
        }
        for name, found in ((n, record.below(tmp_path / n)) for n in ("calm", "rough"))
    )
    assert rough == calm
