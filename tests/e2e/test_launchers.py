"""A multirun by another launcher has the folders and bits of a plain one, and skips what is done."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from fedgm.results import rows
from tests.e2e.commands import TINY, timeless
from tests.waiting import PATIENCE

ROOT = Path(__file__).parents[2]
JOBS = ("-m", *TINY, "rounds=2", "algorithm=fedavg,fedgm")


def folders(output_dir: Path) -> dict[str, tuple[bytes, list]]:
    """Model and rows of each run, by its place below ``output_dir``."""
    return {
        str(path.parent.relative_to(output_dir)): (
            path.read_bytes(), timeless(rows.read(path.with_name("metrics.jsonl"))),
        )
        for path in output_dir.glob("*/*/seed=*/model.safetensors")
    }  # fmt: skip


@pytest.mark.parametrize(
    "launcher",
    [
        pytest.param("joblib", marks=pytest.mark.slow),
        pytest.param("submitit_local", marks=pytest.mark.slow),
    ],
)
def test_a_launcher_runs_the_same_runs_and_skips_them_afterwards(tmp_path, commands, launcher):
    if launcher.startswith("submitit"):
        pytest.importorskip("submitit", reason="pip install 'fedgm[cluster]'")
    plain = commands.run(tmp_path / "plain", *JOBS)
    assert plain.code == 0, plain.text
    command = [sys.executable, str(ROOT / "run.py"), *JOBS, f"hydra/launcher={launcher}"]
    env = {k: v for k, v in os.environ.items() if not k.startswith("WANDB_")}
    texts = []
    for _ in range(2):
        done = subprocess.run(
            [*command, f"output_dir={tmp_path / 'o'}"], cwd=tmp_path, env=env, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, timeout=PATIENCE,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        texts.append(done.stdout + said_by_jobs(tmp_path / "o"))
        assert len(folders(tmp_path / "o")) == 2
        assert folders(tmp_path / "o") == folders(tmp_path / "plain")
    assert texts[0].count("already done") == 0
    assert texts[1].count("already done") == 2
    assert {path.name for path in tmp_path.iterdir() if path.is_dir()} == {"plain", "o"}  # no stray folder


def said_by_jobs(output_dir: Path) -> str:
    """What jobs printed that have an output file of their own, as on a cluster."""
    return "".join(path.read_text() for path in output_dir.glob(".multirun/.submitit/*/*_log.out"))
