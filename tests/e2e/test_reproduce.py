"""`fedgm reproduce` as a process: killed, continued, then redrawn from what is stored, without training."""

import json
import os
import signal
import subprocess
import sys

import pytest

from fedgm.results.find import below
from tests.e2e.sweep_process import until_seen
from tests.waiting import PATIENCE

SMALL = [
    "data.train_samples=200", "data.test_samples=20", "eval.train_samples=20", "clients.count=10",
    "clients.per_round=2", "local.unit=steps", "local.epochs=1", "track.mode=disabled", "rounds=8",
]  # fmt: skip
PROGRAM = [sys.executable, "-m", "fedgm", "reproduce", "fig5", "--profile", "tiny", "--seeds", "2"]


def start(output_dir, *arguments) -> subprocess.Popen:
    command = [*PROGRAM, "--output-dir", str(output_dir), "--workers", "2", *arguments, *SMALL]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, stdin=subprocess.DEVNULL
    )


def finish(process: subprocess.Popen) -> str:
    text, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, text
    return text


@pytest.mark.slow
def test_a_figure_killed_and_continued_is_drawn_judged_and_redrawn(tmp_path):
    home = tmp_path / "outputs"
    first = start(home)
    until_seen(lambda: any(home.glob("*/*/seed=*/metrics.jsonl")), first)
    os.kill(first.pid, signal.SIGKILL)
    first.communicate()
    text = finish(start(home, "--export", str(tmp_path / "results.jsonl")))
    assert "runs to do, about" in text
    assert "6 runs in" in text
    runs = below(home / "fedgm")
    assert len(runs) == 6
    assert {run.status for run in runs} <= {"finished", "diverged"}
    [verdict] = home.glob("figures/*/fig5/verdict.json")
    assert (verdict.parent / "fig5.pdf").exists()
    again = finish(start(tmp_path / "elsewhere", "--stored", str(tmp_path / "results.jsonl")))
    assert "runs to do" not in again
    [redrawn] = (tmp_path / "elsewhere").glob("figures/*/fig5/verdict.json")
    assert json.loads(redrawn.read_text()) == json.loads(verdict.read_text())
    assert (redrawn.parent / "fig5.png").read_bytes() == (verdict.parent / "fig5.png").read_bytes()
    assert not (tmp_path / "elsewhere" / "fedgm").exists()
