"""The longer examples: they resume to the same bits, stop early, keep checkpoints and log where told."""

import runpy
from pathlib import Path

import pytest
import torch

EXAMPLES = Path(__file__).parents[2] / "examples"
NAMES = ("torchvision_model", "huggingface_style")
pytestmark = pytest.mark.filterwarnings(
    "ignore:The '(train|val)_dataloader' does not have many workers",
    "ignore:The number of training batches",
    "ignore:Checkpoint directory .* exists and is not empty",
)


@pytest.fixture(params=NAMES)
def example(request):
    return runpy.run_path(str(EXAMPLES / f"{request.param}.py"))


def test_it_trains_is_continued_and_stops_early(example, tmp_path, capsys):
    example["main"](tmp_path)
    measured, value, *_, done, _, most, _ = capsys.readouterr().out.splitlines()[-1].split()
    assert float(value.rstrip(",")) > 0.9 if measured == "val_acc" else float(value.rstrip(",")) < 0.2
    assert 2 < int(done) < int(most)
    best = [path.stem for path in tmp_path.glob("best-*.ckpt")]
    assert f"best-epoch={int(done) - 1}" in best  # the round that ended it was the best
    first, second = sorted(tmp_path.rglob("metrics.csv"))
    for path, rounds in ((first, [0, 1, 2]), (second, list(range(3, int(done) + 1)))):
        header, *lines = [line.split(",") for line in path.read_text().splitlines()]
        assert [int(line[header.index("round")]) for line in lines if line[header.index("round")]] == rounds


def test_continued_it_ends_at_the_same_bits(example, tmp_path):
    example["fit"](tmp_path / "whole", 4)
    example["fit"](tmp_path / "half", 2)
    example["fit"](tmp_path / "half", 4, tmp_path / "half" / "end.ckpt")
    whole, half = (torch.load(tmp_path / name / "end.ckpt", weights_only=False) for name in ("whole", "half"))
    assert whole["epoch"] == half["epoch"] == 4
    assert whole["state_dict"].keys() == half["state_dict"].keys()
    for name, tensor in whole["state_dict"].items():
        assert torch.equal(tensor, half["state_dict"][name]), name


def test_it_logs_to_mlflow(example, tmp_path):
    pytest.importorskip("mlflow")
    example["fit"](tmp_path, 2, logger="mlflow")
    (file,) = tmp_path.rglob("update/norm")  # a line for each value: time, value, step
    assert [line.split()[2] for line in file.read_text().splitlines()] == ["1", "2"]


def test_it_logs_to_tensorboard(example, tmp_path):
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    trainer = example["fit"](tmp_path, 2, logger="tensorboard")
    events = EventAccumulator(trainer.logger.log_dir)
    events.Reload()
    assert [event.step for event in events.Scalars("update/norm")] == [1, 2]
