"""Rows reach every logger that is asked for, once, also after a stop; and callbacks of a configured run."""

import csv
import json
from pathlib import Path

import pytest

import fedgm
from fedgm.errors import ConfigError
from fedgm.lightning import Logger

SMALL = [
    "profile=tiny", "data.train_samples=200", "data.test_samples=20", "eval.train_samples=20",
    "clients.count=10", "clients.per_round=2", "local.unit=steps", "local.epochs=1", "local.batch_size=10",
    "trainer.workers=1",
]  # fmt: skip
SEEN: list = []


class Mine(Logger):
    """A logger of the user's own, by its _target_."""

    def __init__(self, word: str) -> None:
        super().__init__()
        self.word = word

    name, version = "mine", 0

    def log_hyperparams(self, params, *args, **kwargs):
        SEEN.append((self.word, params["rounds"]))

    def log_metrics(self, metrics, step=None):
        SEEN.append((step, metrics["round"], metrics.get("update/norm")))

    def finalize(self, status):
        SEEN.append(status)


def stored(folder):
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def test_csv_holds_every_row_once_also_after_a_stop(tmp_path):
    words = [*SMALL, "rounds=4", "track=csv", f"output_dir={tmp_path}"]
    fedgm.run([*words, "stop_after=2"])
    folder, summary = (result := fedgm.run(words)).folder, result.summary
    with (folder / "csv" / "metrics.csv").open() as file:
        found = [row for row in csv.DictReader(file) if row["round"]]
    assert [float(row["round"]) for row in found] == [0, 1, 2, 3, 4]  # x_0 once, although it was begun twice
    measured = [summary["initial"]["test/acc"], *(row["test/acc"] for row in stored(folder))]
    assert [float(row["test/acc"]) for row in found] == measured


class WritesAtOnce(Logger):
    """As MLflow's file store does: its folder is made when it is built, and must be there later."""

    name, version = "eager", 0

    def __init__(self, save_dir: str) -> None:
        super().__init__()
        self.home = Path(save_dir)
        self.home.mkdir(parents=True)

    def log_hyperparams(self, params, *args, **kwargs): ...

    def log_metrics(self, metrics, step=None):
        (self.home / f"{step}").write_text("row")


def test_a_logger_that_writes_when_it_is_built_keeps_its_folder(tmp_path):
    words = [*SMALL, "rounds=2", "track=none", f"output_dir={tmp_path}"]
    words.append(f"+track.loggers.eager={{_target_: {__name__}.WritesAtOnce}}")
    fedgm.run([*words, "stop_after=1"])
    folder = fedgm.run(words).folder
    assert {path.name for path in (folder / "eager").iterdir()} == {"0", "1", "2"}
    (folder / "eager" / "1").write_text("as it was")
    fedgm.run(words)  # done already: nothing is opened or emptied
    assert (folder / "eager" / "1").read_text() == "as it was"


def test_several_loggers_at_once_and_one_of_the_users(tmp_path):
    SEEN.clear()
    own = f"+track.loggers.mine={{_target_: {__name__}.Mine, word: hello}}"
    result = fedgm.run([*SMALL, "rounds=2", "track=[none,csv]", own, f"output_dir={tmp_path}"])
    assert SEEN[0] == ("hello", 2)
    rounds = [(row["round"], row["round"], row["update/norm"]) for row in stored(result.folder)]
    assert [entry for entry in SEEN if isinstance(entry[0], int)] == [(0, 0, None), *rounds]
    assert SEEN[-1] == "success"
    assert (result.folder / "csv" / "metrics.csv").exists()


@pytest.mark.parametrize("kind", ["tensorboard", "mlflow", "comet"])
def test_a_logger_that_is_not_installed_says_what_to_type(kind, tmp_path):
    module = {"tensorboard": "torch.utils.tensorboard", "comet": "comet_ml"}.get(kind, kind)
    try:
        __import__(module)
    except ImportError:
        pass
    else:
        pytest.skip(f"{kind} is installed here")
    with pytest.raises(ConfigError, match=rf"track={kind}.*pip install 'fedgm\[{kind}\]'"):
        fedgm.run([*SMALL, "rounds=1", f"track={kind}", f"output_dir={tmp_path}"])


def test_a_callback_of_the_configuration_stops_a_run_as_finished(tmp_path):
    words = ["callbacks=early_stopping", "callbacks.early_stopping.patience=1"]
    mode = "callbacks.early_stopping.monitor=cohort/clients"  # never improves
    result = fedgm.run([*SMALL, "rounds=9", "track=none", *words, mode, f"output_dir={tmp_path}"])
    assert (result.status, result.summary["rounds_done"]) == ("finished", 2)
    assert result.summary["reason"] == "a callback stopped it"


def test_a_stage_drop_is_announced_and_callbacks_from_python_hear_of_it(tmp_path, capsys):
    heard = []

    class Listens(fedgm.FederatedCallback):
        def on_stage_end(self, trainer, pl_module, end):
            heard.append((end.stage, end.round))

    words = ["schedule=multistage", "schedule.etas=[2,1]", "rounds=3", "track=none"]
    fedgm.run([*SMALL, *words, f"output_dir={tmp_path}"], callbacks=[Listens()])
    assert heard == [(1, 1)]
    assert "stage 1 ends after round 1: eta 2 to 1, beta 0.9 to 0.947" in " ".join(
        capsys.readouterr().out.split()
    )
