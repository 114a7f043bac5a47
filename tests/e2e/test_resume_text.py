"""kill -9 with residuals of error feedback and kept optimiser states: the run goes on as if never stopped."""

import pytest

import fedgm
from tests.e2e.commands import TINY, newest_checkpoint, result, run_folder

MODES = {
    "SNOO, top-k": ("algorithm=snoo", "upload=topk", "upload.share=0.05"),
    "DiLoCo, Qsparse": ("algorithm=diloco", "upload=qsparse", "upload.share=0.2"),
}
# Few clients, so that they come back and find what they kept; checkpoints in rounds 2, 4, 6 ...
RUN = (
    *TINY,
    "data=text",
    "data.source.block=16",
    "model.layers=1",
    "model.heads=1",
    "model.width=16",
    "clients.count=6",
    "clients.per_round=3",
    "local.unit=steps",
    "local.epochs=4",
    "local.optimizer=adamw",
    "local.lr=0.003",
    "local.state=keep",
    "rounds=9",
    "checkpoint.every=2",
    "eval.every=3",
)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mode", "workers"), [pytest.param("SNOO, top-k", 1, marks=pytest.mark.slow), ("DiLoCo, Qsparse", 2)]
)
def test_a_killed_run_ends_as_one_never_stopped(commands, tmp_path, mode, workers):
    (tmp_path / "own.txt").write_text("".join(f"{i} is followed by {i + 1}. " for i in range(400)))
    run = (*RUN, *MODES[mode], f"data.path={tmp_path / 'own.txt'}")
    fedgm.run([*run, f"output_dir={tmp_path / 'reference'}"])
    home = tmp_path / "killed"
    for rounds in (3, 6):
        command = commands.start(home, *run, f"trainer.workers={workers}")
        command.until_row(rounds)
        command.kill()
        assert newest_checkpoint(home) >= rounds - 2
        assert list((run_folder(home)).rglob("*.safetensors"))
    command = commands.run(home, *run, f"trainer.workers={workers}")
    assert command.code == 0, command.text
    assert "continuing after round" in command.text
    assert result(home) == result(tmp_path / "reference")
