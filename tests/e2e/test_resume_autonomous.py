"""kill -9 with past models, a virtual clock and clients' states: the run goes on as if never stopped."""

import pytest

import fedgm
from tests.e2e.commands import TINY, newest_checkpoint, result, run_folder

MODES = {
    "replay, SCAFFOLD": (
        "participation=autonomous",
        "participation.delay=4",
        "participation.epochs=[1,2]",
        "client=scaffold",
    ),
    "event, MIFA": ("participation=event", "participation.concurrency=8", "client=mifa"),
}
# Few clients, so that they come back and find their states; checkpoints in rounds 2, 4, 6 ...
RUN = (
    *TINY,
    "clients.count=12",
    "data.train_samples=360",
    "local.epochs=1",
    "rounds=9",
    "checkpoint.every=2",
    "eval.every=3",
)


@pytest.mark.parametrize(
    ("mode", "workers"),
    [
        pytest.param("replay, SCAFFOLD", 1, marks=pytest.mark.slow),
        pytest.param("event, MIFA", 2, marks=pytest.mark.slow),
        pytest.param("replay, SCAFFOLD", 2, marks=pytest.mark.slow),
        pytest.param("event, MIFA", 1, marks=pytest.mark.slow),
    ],
)
def test_a_killed_run_ends_as_one_never_stopped(commands, tmp_path, mode, workers):
    run = (*RUN, *MODES[mode], f"trainer.workers={workers}")
    fedgm.run([*RUN, *MODES[mode], f"output_dir={tmp_path / 'reference'}"])
    home = tmp_path / "killed"
    for rounds in (3, 6):
        command = commands.start(home, *run)
        command.until_row(rounds)
        command.kill()
        assert newest_checkpoint(home) >= rounds - 2
    command = commands.run(home, *run)
    assert command.code == 0, command.text
    assert "continuing after round" in command.text
    assert result(home) == result(tmp_path / "reference")
    assert not (run_folder(home) / "checkpoints").exists()


@pytest.mark.slow
def test_a_damaged_past_model_falls_back_to_the_checkpoint_before(commands, tmp_path):
    run = (*TINY, "participation=autonomous", "participation.delay=3", "rounds=8", "checkpoint.every=3")
    fedgm.run([*run, f"output_dir={tmp_path / 'reference'}"])
    home = tmp_path / "killed"
    command = commands.start(home, *run)
    command.until_row(7)
    command.kill()
    folder = run_folder(home) / "checkpoints"
    newest = newest_checkpoint(home)
    assert newest == 6
    (folder / f"model-{newest - 1:06d}.safetensors").write_bytes(b"cut off")
    command = commands.run(home, *run)
    assert command.code == 0, command.text
    assert "continuing after round 3" in command.text
    assert result(home) == result(tmp_path / "reference")
