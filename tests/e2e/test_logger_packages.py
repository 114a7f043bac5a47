"""TensorBoard, MLflow and Comet themselves: every round is there once (the first two: also after kill -9)."""

import json
import math
import zipfile

import pytest

from tests.e2e.commands import TINY, Commands, read_summary, rows, run_folder

WORDS = (*TINY, "rounds=6", "data.train_samples=200", "data.test_samples=20", "eval.train_samples=20",
         "clients.count=10", "clients.per_round=2", "local.batch_size=10")  # fmt: skip


def killed_and_continued(commands: Commands, folder, *words: str) -> None:
    """A run that was killed after round 2 or later, and continued to its end."""
    running = commands.start(folder, *WORDS, *words)
    running.until_row(2)
    running.kill()
    assert commands.run(folder, *WORDS, *words).code == 0
    assert read_summary(folder)["status"] == "finished"


def expected(folder, column: str) -> dict[int, float]:
    """By round; what was measured of the untrained model is round 0."""
    before = read_summary(folder)["initial"]
    start = {0: before[column]} if column in before else {}
    return start | {row["round"]: row[column] for row in rows(folder)}


def test_tensorboard_has_every_round_once(commands, tmp_path):
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    killed_and_continued(commands, tmp_path / "out", "track=tensorboard")
    events = EventAccumulator(str(run_folder(tmp_path / "out") / "tensorboard"))
    events.Reload()
    for column in ("update/norm", "test/loss"):
        found = [(event.step, event.value) for event in events.Scalars(column)]
        known = expected(tmp_path / "out", column)
        assert [step for step, _ in found] == list(known)
        assert dict(found) == pytest.approx(known)


@pytest.mark.parametrize("server", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_mlflows_store_has_every_round_once(commands, tmp_path, monkeypatch, server):
    """A store elsewhere stands for a server: what is sent there stays."""
    pytest.importorskip("mlflow")
    words = ["track=mlflow", "checkpoint.every=2"]
    words += [f"track.loggers.mlflow.tracking_uri=file:{tmp_path / 'server'}"] if server else []
    killed_and_continued(commands, tmp_path / "out", *words)
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    from mlflow.tracking import MlflowClient

    place = tmp_path / "server" if server else run_folder(tmp_path / "out") / "mlflow"
    client = MlflowClient(f"file:{place}")
    (experiment,) = [one for one in client.search_experiments() if one.name == "run"]
    (run,) = client.search_runs([experiment.experiment_id])
    assert (run.info.status, run.data.params["rounds"]) == ("FINISHED", "6")
    assert run.info.run_name == "fedgm seed 0"
    for column in ("update/norm", "test/loss"):
        found = [(metric.step, metric.value) for metric in client.get_metric_history(run.info.run_id, column)]
        known = expected(tmp_path / "out", column)
        assert sorted(step for step, _ in found) == list(known)
        assert all(math.isclose(known[step], value) for step, value in found)
    if server:
        assert commands.run(tmp_path / "out", *WORDS, *words, "rerun=true").code == 0
        assert len(client.search_runs([experiment.experiment_id])) == 2


def test_comets_archive_has_every_round_once(commands, tmp_path):
    pytest.importorskip("comet_ml")
    assert commands.run(tmp_path / "out", *WORDS, "track=comet").code == 0
    (archive,) = (run_folder(tmp_path / "out") / "comet").glob("*.zip")
    with zipfile.ZipFile(archive) as file:
        sent = [json.loads(line)["payload"] for line in file.read("messages.json").splitlines()]
    found = [one["metric"] for one in sent if one.get("metric")]
    for column in ("update/norm", "test/loss"):
        steps = {one["step"]: float(one["metricValue"]) for one in found if one["metricName"] == column}
        assert steps == pytest.approx(expected(tmp_path / "out", column))
