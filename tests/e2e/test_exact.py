"""What must not change a result does not change one bit of it, and what must does."""

import os
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

import fedgm
from tests.conftest import quick
from tests.e2e.commands import TINY, result, rows, run_folder, timeless
from tests.waiting import PATIENCE

RUN = (*TINY, "rounds=4", "local.unit=steps", "local.epochs=2")
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    home = tmp_path_factory.mktemp("reference")
    fedgm.run([*RUN, f"output_dir={home}"])
    return result(home)


def outcome(home, *arguments):
    fedgm.run([*RUN, *arguments, f"output_dir={home}"])
    return result(home)


@pytest.mark.parametrize("threads", quick([1, 2], 1))
def test_two_workers_equal_one_whatever_the_machine_is_set_to(tmp_path, reference, threads):
    command = [sys.executable, "run.py", *RUN, "trainer.workers=2", f"output_dir={tmp_path}"]
    env = {**os.environ, "OMP_NUM_THREADS": str(threads)}
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    assert "workers  2" in done.stdout
    assert result(tmp_path) == reference


@pytest.mark.slow
def test_workers_that_have_nothing_to_evaluate_equal_one(commands, tmp_path, reference):
    # 5 workers, but 300 test and 200 training images are 3 and 2 batches
    command = commands.run(tmp_path / "out", *RUN, "trainer.workers=5")
    assert command.code == 0, command.text
    assert "workers  5" in command.text
    assert result(tmp_path / "out") == reference


def test_a_second_folder_and_another_global_random_state_give_the_same(tmp_path, reference):
    torch.manual_seed(123)
    np.random.seed(456)
    random.seed(789)
    assert outcome(tmp_path, "track.tags=[again]") == reference


def test_another_seed_gives_something_else(tmp_path, reference):
    model, found = outcome(tmp_path, "seed=1")
    assert model != reference[0]
    assert found != reference[1]


def test_one_stage_of_multistage_is_the_constant_schedule(tmp_path, reference):
    # paper_momentum.eta=7 is not used by the stages: their eta is that of schedule.etas
    assert (
        outcome(tmp_path, "schedule=multistage", "schedule.etas=[1.0]", "paper_momentum.eta=7") == reference
    )


def test_a_fixed_data_seed_keeps_the_split_while_the_training_varies(tmp_path):
    first, second, third = tmp_path / "a", tmp_path / "b", tmp_path / "c"
    # All clients, one epoch, batches so large that the split decides on their number.
    short = (
        *TINY, "rounds=1", "clients.count=20", "clients.per_round=20", "local.epochs=1",
        "local.batch_size=64",
    )  # fmt: skip
    a = fedgm.run([*short, "seed=1", "data.seed=5", f"output_dir={first}"])
    b = fedgm.run([*short, "seed=3", "data.seed=5", f"output_dir={second}"])
    fedgm.run([*short, "seed=3", f"output_dir={third}"])
    assert a.folder.parent.name == b.folder.parent.name  # one configuration, two seeds
    assert result(first)[0] != result(second)[0]
    # Steps of an epoch are the clients' sizes in batches: the split's own mark on the row.
    steps = [rows(home)[0]["cohort/steps"] for home in (first, second, third)]
    assert steps[0] == steps[1] != steps[2]


def test_one_number_written_in_two_ways_shares_a_folder_and_is_not_run_twice(tmp_path, capsys):
    first = fedgm.run([*RUN, "algorithm.eta=1", f"output_dir={tmp_path}"])
    before = contents(first.folder)
    capsys.readouterr()
    second = fedgm.run([*RUN, "algorithm.eta=1.0", "trainer.workers=2", f"output_dir={tmp_path}"])
    printed = capsys.readouterr().out
    assert second.folder == first.folder
    assert "already done (rerun=true starts again)" in printed
    assert "round 1/4" not in printed
    assert contents(first.folder) == before
    assert second.summary == first.summary


def test_rerun_starts_again(tmp_path, reference, capsys):
    first = fedgm.run([*RUN, f"output_dir={tmp_path}"])
    times = [row["time/round"] for row in rows(tmp_path)]
    (first.folder / "left-over").write_text("of an earlier version")
    capsys.readouterr()
    second = fedgm.run([*RUN, "rerun=true", f"output_dir={tmp_path}"])
    printed = capsys.readouterr().out
    assert second.folder == first.folder
    assert "round 1/4" in printed
    assert "continuing" not in printed
    assert [row["time/round"] for row in rows(tmp_path)] != times
    assert not (first.folder / "left-over").exists()
    assert result(tmp_path) == reference


def test_eta_moves_the_model_by_as_much(tmp_path, reference):
    """The comparisons above could be blind: one round with eta=2 must go twice as far as with eta=1."""
    models = []
    for eta in (1, 2):
        fedgm.run([*RUN, "rounds=1", f"algorithm.eta={eta}", f"output_dir={tmp_path / str(eta)}"])
        models.append(load_file(run_folder(tmp_path / str(eta)) / "model.safetensors"))
    one, two = (torch.cat([tensor.flatten() for tensor in model.values()]) for model in models)
    step = rows(tmp_path / "1")[0]["update/norm"] * rows(tmp_path / "1")[0]["server/gain"]
    assert (two - one).norm().item() == pytest.approx(step, rel=1e-3)
    assert timeless(rows(tmp_path / "1"))[0]["local/loss"] == reference[1][0]["local/loss"]


def contents(folder):
    """Names, times and bytes of all files; the lock comes and goes, so the folder's time does not count."""
    return {path.name: (path.stat().st_mtime_ns, path.read_bytes()) for path in folder.iterdir()}
