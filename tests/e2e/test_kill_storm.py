"""kill -9 at a dozen moments of one run, chosen to hurt; minutes, so only in `make test-all`."""

import os
import random
import signal
from contextlib import suppress
from pathlib import Path

import pytest
from test_resume import after, die_and_come_back

import fedgm
from tests.e2e.commands import TINY, is_alive, newest_checkpoint, result, rows, run_folder, state
from tests.waiting import until

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
    "part",
    [
        *("participation=autonomous", "participation=event"),
        *("client=scaffold", "client=mifa", "client=easgd", "client=mimelite"),
    ],
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

    def writing(command):
        """Halted while a checkpoint is half written, so that the kill cannot come too late."""
        for left_over in home.glob("*/*/*/checkpoints/.*.tmp"):  # of the kill before
            left_over.unlink()
        after(1)(command)
        folder = run_folder(home) / "checkpoints"

        def is_writing():
            with suppress(FileNotFoundError):
                return any(name.endswith(".tmp") for name in os.listdir(folder))  # noqa: PTH208 - faster

        def is_halted():
            if not is_writing():
                return False
            command.send(signal.SIGSTOP)
            until(lambda: state(command.pid) == "T", step=0)
            if is_writing():
                return True
            command.send(signal.SIGCONT)
            return False

        command.until(is_halted, step=0)

    die_and_come_back(commands, home, [*[(run, writing)] * 4, (run, None)])
    assert result(home) == reference(tmp_path, *run, "trainer.workers=1")


@pytest.mark.slow
def test_kills_during_validation(commands, tmp_path):
    """The run halts itself in the middle of one, for the kill to come."""
    halt = "+callbacks.halt={_target_:tests.e2e.halting.HaltInValidation}"
    run = (*STAGES, "rounds=7", "eval.batch_size=10", "local.unit=steps", "clients.per_round=2", halt)
    home = tmp_path / "out"
    for round in (2, 3, 5):
        command = commands.start(home, *run, FEDGM_TEST_HALT=str(round))
        command.until(lambda command=command: state(command.pid) == "T")
        command.kill()
        assert len(rows(home)) == newest_checkpoint(home) == round - 1
    assert commands.run(home, *run).code == 0
    assert result(home) == reference(tmp_path, *run)


@pytest.mark.slow
def test_no_process_of_wandb_outlives_a_kill_and_goes_on_writing(commands, tmp_path):
    home = tmp_path / "out"
    run = (*STAGES, "track.mode=offline")
    command = commands.start(home, *run, FEDGM_TEST_MARK=str(tmp_path))
    after(2)(command)
    services = marked(str(tmp_path))
    assert services, "W&B works without a process of its own now: this test can go"
    command.kill()
    until(lambda: not any(map(is_alive, services)))
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
