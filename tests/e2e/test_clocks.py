"""Machines whose clocks step by 20 ms, stand still or go back: everything that reads a clock still works."""

import json
import math
import re
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

import fedgm
from fedgm import clock, lock
from fedgm.commands import main
from tests.clocks.sitecustomize import unreliable
from tests.fuzz.overrides import SMALL

ROOT = Path(__file__).parents[2]
CLOCKS = {"steps of 20 ms": (0.02, 0.0), "stands still": (math.inf, 0.0), "time.time goes back": (0.0, 0.3)}
SWEEP = f"""
method: grid
metric: {{name: test/acc, goal: maximize}}
parameters:
  algorithm.eta: {{values: [0.5, 1.0]}}
command: ["${{program}}", {", ".join(SMALL)}, rounds=2, "${{args_no_hyphens}}"]
"""


@pytest.fixture(params=CLOCKS)
def kind(request, monkeypatch) -> str:
    """The clocks of this process, and of those that it forks."""
    for name, stand_in in unreliable(*CLOCKS[request.param]).items():
        monkeypatch.setattr(time, name, stand_in)
    return request.param


def typed(*words: str) -> str:
    done = CliRunner().invoke(main, list(words), catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


def test_a_run_a_sweep_and_what_reads_them(tmp_path, kind, capsys):
    """Rows and progress lines of a run; the hours, the live lines and the end of a sweep; list and page."""
    home = tmp_path / "o"
    fedgm.run([*SMALL, "rounds=4", f"output_dir={home}"])
    found = next(home.rglob("metrics.jsonl"))
    rows = [json.loads(line) for line in found.read_text().splitlines()]
    assert len(rows) == 4
    for row in rows:
        assert row["time/round"] >= 0
        assert row["time/eval"] is None or row["time/eval"] >= 0
        assert (row["samples_per_s"] is None) == (row["time/round"] == 0)
    if kind == "stands still":
        assert [row["samples_per_s"] for row in rows] == [None] * 4
    (tmp_path / "s.yaml").write_text(SWEEP)
    sweep = ["sweep", str(tmp_path / "s.yaml"), "--output-dir", str(home), "--workers", "1"]
    assert re.search(r"time:    about \d+ seconds? with 1 workers", typed(*sweep, "--dry-run"))
    assert "2 finished" in typed(*sweep)
    assert "3 runs" in typed("list", str(home))
    typed("dashboard", str(home), "--out", str(tmp_path / "page.html"))


def test_nothing_else_reads_a_clock():
    """What fedgm.clock guards against, nobody else has to."""
    reads = re.compile(
        r"\btime\.(time|monotonic|perf_counter|process_time|thread_time|clock_gettime)(_ns)?\b"
        r"|\bfrom time import|\bdatetime\.(now|today|utcnow)|\bdate\.today"
    )
    files = [*ROOT.glob("fedgm/**/*.py"), *ROOT.glob("hydra_plugins/**/*.py"), ROOT / "run.py"]
    assert [path.name for path in files if reads.search(path.read_text())] == ["clock.py"]


def test_a_duration_is_never_negative_and_a_rate_may_be_unknown(monkeypatch):
    watch = clock.Stopwatch()
    before = time.perf_counter()
    monkeypatch.setattr(time, "perf_counter", lambda: before - 5)
    assert watch.seconds() == 0.0
    assert clock.rate(3, watch.seconds()) is None
    assert clock.rate(3, 2.0) == 1.5


def test_a_lock_survives_a_clock_that_jumps(tmp_path, monkeypatch):
    with lock.locked(tmp_path):
        assert lock.is_alive(tmp_path)
        now = time.time()
        monkeypatch.setattr(time, "time", lambda: now - 3600)
        assert lock.is_alive(tmp_path)
    assert not lock.is_alive(tmp_path)
