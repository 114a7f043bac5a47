"""`fedgm.sweep` in a program: a random search is run, and its table comes back."""

import os
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from fedgm.results import rows
from tests.waiting import PATIENCE

FILE = """
method: random
run_cap: 3
metric: {name: test/loss, goal: minimize}
parameters:
  algorithm.beta: {min: 0.5, max: 0.9}
  algorithm.eta: {values: [1e-1, 5e-1]}  # words to yaml, numbers to Hydra
command: ["${program}", +experiment=fedgm, profile=tiny, data.train_samples=200, data.test_samples=20,
  eval.train_samples=20, clients.count=10, clients.per_round=2, local.unit=steps, local.epochs=1,
  track.mode=disabled, "${args_no_hyphens}"]
"""
PROGRAM = """
import sys, fedgm
file, output_dir, table = sys.argv[1:]
found = fedgm.sweep(file, ["rounds=3"], seeds=[1], workers=2, output_dir=output_dir)
found.to_json(table, orient="records", double_precision=15)
"""


def swept(folder: Path) -> tuple[pd.DataFrame, str]:
    """The table, and what was printed."""
    path, table = folder / "random.yaml", folder / "table.json"
    path.write_text(FILE)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(path), str(folder / "o"), str(table)],
        capture_output=True, text=True, timeout=PATIENCE, stdin=subprocess.DEVNULL,
        env={**os.environ, "COLUMNS": "200"},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return pd.read_json(table, orient="records", precise_float=True), done.stdout


@pytest.mark.slow
def test_a_random_search_from_python_is_run_and_gives_its_table(tmp_path):
    found, said = swept(tmp_path)
    assert list(zip(found["point"], found["seed"], strict=True)) == [(0, 1), (1, 1), (2, 1)]
    assert set(found["status"]) == {"finished"}
    assert set(found["algorithm.eta"]) == {0.1, 0.5}
    assert found["algorithm.beta"].between(0.5, 0.9).all()
    for line in found.to_dict("records"):
        own = rows.read(Path(str(line["folder"])) / "metrics.jsonl")
        losses = [row["test/loss"] for row in own]
        assert len(losses) == line["rounds"] == 3
        assert line["last10"] == pytest.approx(sum(losses) / 3)
        assert line["final"] == pytest.approx(losses[-1])
        assert own[0]["server/eta"] == line["algorithm.eta"]
    kept = pd.read_csv(tmp_path / "o" / "sweeps" / "tiny" / "random,rounds=3,seed=1" / "points.csv")
    assert list(kept["hash"]) == list(found["hash"])
    assert said.count(": finished, ") == 3  # a line for each run that ends
    assert "[3/3] " in said
    assert "3 finished" in said
