"""Pictures of a grid that W&B's agents have run: `fedgm sweep FILE --best` sends them if that was typed."""

import subprocess
import sys

import pytest

from fedgm.study import points, sweep_file
from tests.e2e.wandb_client import logged_in
from tests.e2e.wandb_stub import serving
from tests.study.stored_runs import store
from tests.waiting import PATIENCE

FILE = """
method: grid
metric: {name: test/acc, goal: maximize}
parameters:
  algorithm.eta: {values: [0.5, 1.0]}
command: ["${program}", profile=tiny, rounds=10, "${args_no_hyphens}"]
"""


@pytest.mark.slow
def test_the_winner_is_shown_without_wandb_unless_online_was_typed(tmp_path, stranger):
    path = tmp_path / "grid.yaml"
    path.write_text(FILE)
    made = points.make(sweep_file.read(path), [], [0], str(tmp_path / "o"))
    for job in made.jobs:
        store(job, [0.2 + 0.1 * job.point] * 10)
    command = [
        sys.executable,
        "-m",
        "fedgm",
        "sweep",
        str(path),
        "--best",
        "--output-dir",
        str(tmp_path / "o"),
    ]
    with serving() as server:
        env = logged_in(stranger, server.url, tmp_path)  # a key alone: runs would go online
        for words, pictures in (([], 0), (["track.mode=online"], 1)):
            done = subprocess.run(
                [*command, *words], env=env, cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True,
                text=True, timeout=PATIENCE,
            )  # fmt: skip
            assert done.returncode == 0, done.stdout + done.stderr
            assert str(made.folder / "heatmap.png") in done.stdout
            assert ("1 pictures sent to the W&B project fedgm" in done.stdout) == bool(pictures)
            sent = [row for name in server.runs for row in server.rows(name) if "heatmap" in row]
            assert len(sent) == pictures
