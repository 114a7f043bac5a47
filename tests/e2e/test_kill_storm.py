"""kill -9 at a dozen moments of one run, chosen to hurt; minutes, so only in `make test-all`."""

import os
import random
import time
from contextlib import suppress
from pathlib import Path

import pytest
from test_resume import after, die_and_come_back

import fedgm
from tests.e2e.commands import TINY, is_alive, result, rows, run_folder

STAGES = (*TINY, "schedule=multistage", "rounds=20")  # stages end after rounds 3, 9 and 20


def reference(tmp_path, *arguments):
    home = tmp_path / "reference"
    fedgm.run([*arguments, f"output_dir={home}"])
    return result(home)


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("every", [1, 3])
def test_kills_at_random_moments(commands, tmp_path, workers, every):
    draw = random.Random(10 * workers + every)
    run = (*STAGES, f"checkpoint.every={every}", f"trainer.workers={workers}")
    own = [draw.randint(0, every + 1) for _ in range(4)]  # rounds that a start may do before it dies
    starts = [(run, after(rounds, draw.uniform(0, 0.25))) for rounds in own]
    die_and_come_back(commands, tmp_path / "out", [*starts, (run, None)])
    assert result(tmp_path / "out") == reference(tmp_path, *run, "trainer.workers=1")


@pytest.mark.slow
@pytest.mark.parametrize(
    "part", ["participation=autonomous", "participation=event", "client=scaffold", "client=mifa"]
)
def test_kills_of_runs_that_keep_past_models_or_client_states(commands, tmp_path, part):
    """Few clients, so that each takes part again after a kill with what it kept before."""
    draw = random.Random(part)
    run = (*STAGES, part, "clients.count=6", "clients.per_round=3", "checkpoint.every=2", "local.unit=steps")
    two = (*run, "trainer.workers=2")
    starts = [(choice, after(draw.randint(1, 3), draw.uniform(0, 0.2))) for choice in (run, two, run)]
    die_and_come_back(commands, tmp_path / "out", [*starts, (two, None)])
    assert result(tmp_path / "out") == reference(tmp_path, *run)


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_kills_while_a_checkpoint_is_written(commands, tmp_path, workers):
    """Four megabytes take long enough to be met half written."""
    run = (*STAGES, "rounds=12", "profile.resnet_width=40", f"trainer.workers={workers}")
    home = tmp_path / "out"
    met = []

    def writing(command):
        for left_over in home.glob("*/*/*/checkpoints/.*.tmp"):  # of the kill before
            left_over.unlink()
        after(1)(command)
        folder = run_folder(home) / "checkpoints"

        def is_writing():
            with suppress(FileNotFoundError):
                return any(name.endswith(".tmp") for name in os.listdir(folder))  # noqa: PTH208 - faster

        command.until(is_writing, step=0)
        os.kill(command.pid, 9)
        time.sleep(0.05)
        met.extend(path.name for path in folder.glob(".*.tmp"))

    die_and_come_back(commands, home, [*[(run, writing)] * 4, (run, None)])
    assert met, "no kill hit a write: make the model larger"
    assert result(home) == reference(tmp_path, *run, "trainer.workers=1")


@pytest.mark.slow
def test_kills_during_validation(commands, tmp_path):
    """Batches of one image: validation takes many times as long as training."""
    run = (
        *STAGES,
        "rounds=7",
        "eval.batch_size=1",
        "local.unit=steps",
        "local.epochs=1",
        "clients.per_round=2",
    )
    home = tmp_path / "out"
    expected = reference(tmp_path, *run)
    evaluation = min(row["time/eval"] for row in rows(tmp_path / "reference"))
    assert evaluation > 5 * max(row["time/round"] for row in rows(tmp_path / "reference"))
    starts = [(run, after(rounds, evaluation / 2)) for rounds in (0, 1, 2)]
    die_and_come_back(commands, home, [*starts, (run, None)])
    assert result(home) == expected


@pytest.mark.slow
def test_no_process_of_wandb_outlives_a_kill_and_goes_on_writing(commands, tmp_path):
    home = tmp_path / "out"
    run = (*STAGES, "track.mode=offline")
    command = commands.start(home, *run, FEDGM_TEST_MARK=str(tmp_path))
    after(2)(command)
    services = marked(str(tmp_path))
    assert services, "W&B works without a process of its own now: this test can go"
    command.kill()
    deadline = time.monotonic() + 15
    while any(map(is_alive, services)) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not any(map(is_alive, services))
    assert commands.run(home, *run).code == 0
    (record,) = run_folder(home).glob("wandb/offline-run-*/run-*.wandb")
    assert record.stat().st_size > 1000
    assert result(home) == reference(tmp_path, *STAGES)


def marked(mark):
    """Processes that were started with FEDGM_TEST_MARK=mark."""
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):
            if f"FEDGM_TEST_MARK={mark}".encode() in path.read_bytes().split(b"\0"):
                found.append(int(path.parent.name))
    return found
