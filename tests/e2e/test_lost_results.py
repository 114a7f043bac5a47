"""Folders that vanish under a run, and results that vanish after it: said, with an exit code."""

import json
import os
import shutil
from pathlib import Path

import pytest
from omegaconf import OmegaConf

import fedgm
from fedgm.config import stored
from fedgm.errors import FedGMError
from fedgm.lightning import pl
from fedgm.results.find import read_folder
from tests.conftest import quick
from tests.e2e.commands import TINY, read_summary, result, rows, run_folder, timeless

RUN = (*TINY, "rounds=3", "clients.count=6", "local.unit=steps", "local.epochs=1")


class Remove(pl.Callback):
    """Removes the output folder at the start of a round, or after the last."""

    def __init__(self, home, t):
        self.home, self.t = home, t

    def on_train_epoch_start(self, trainer, pl_module):
        self.last = trainer.current_epoch + 1
        if trainer.current_epoch + 1 == self.t:
            shutil.rmtree(self.home)

    def on_train_end(self, trainer, pl_module):
        if trainer.current_epoch + 1 == self.t:
            shutil.rmtree(self.home)


@pytest.mark.parametrize("t", [1, 2, 4])
def test_a_folder_removed_during_a_run_is_an_error(tmp_path, t):
    remove = Remove(tmp_path / "out", t)
    with pytest.raises(FedGMError, match=r"metrics\.jsonl was removed or replaced .* starts the run again"):
        fedgm.run([*RUN, f"output_dir={tmp_path / 'out'}"], callbacks=[remove])
    assert remove.last == min(t, 3)  # in the same round, not after the last


class RemoveRows(pl.Callback):
    """Removes metrics.jsonl alone, after the last round."""

    def __init__(self, home):
        self.home = home

    def on_train_end(self, trainer, pl_module):
        (run_folder(self.home) / "metrics.jsonl").unlink()


def test_rows_removed_after_the_last_round_are_the_same_error(tmp_path):
    with pytest.raises(FedGMError, match=r"metrics\.jsonl was removed or replaced .* starts the run again"):
        fedgm.run([*RUN, f"output_dir={tmp_path / 'out'}"], callbacks=[RemoveRows(tmp_path / "out")])
    assert read_summary(tmp_path / "out")["status"] == "failed"


def test_a_folder_removed_under_a_checkpoint_is_the_same_error(tmp_path, monkeypatch):
    replace = os.replace

    def removed_first(source, target):
        if "checkpoints" in str(target):
            shutil.rmtree(tmp_path / "out")
        replace(source, target)

    monkeypatch.setattr(os, "replace", removed_first)
    with pytest.raises(FedGMError, match=r"metrics\.jsonl was removed or replaced .* starts the run again"):
        fedgm.run([*RUN, "checkpoint.every=1", f"output_dir={tmp_path / 'out'}"])


def test_on_the_command_line_it_has_an_exit_code(commands, tmp_path):
    home = tmp_path / "out"
    command = commands.start(home, *RUN, "rounds=400")
    command.until_row(2)
    home.rename(tmp_path / "gone")  # at once: the run writes while files are removed one by one
    assert command.wait() == 1, command.text
    assert "was removed or replaced" in command.words
    assert "Traceback" not in command.text


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    home = tmp_path_factory.mktemp("finished")
    fedgm.run([*RUN, f"output_dir={home}"])
    return home


def emptied(path):
    path.write_bytes(b"")


def flipped(path):
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)


@pytest.mark.parametrize("damage", quick([Path.unlink, emptied, flipped], flipped))
@pytest.mark.parametrize("name", ["metrics.jsonl", "model.safetensors"])
def test_a_finished_run_without_its_results_is_not_done(finished, tmp_path, name, damage):
    home = shutil.copytree(finished, tmp_path / "out")
    damage(run_folder(home) / name)
    with pytest.raises(FedGMError, match=rf"the run is finished, but damaged: {name}.*type rerun=true"):
        fedgm.run([*RUN, f"output_dir={home}"])
    fedgm.run([*RUN, "rerun=true", f"output_dir={home}"])
    assert result(home) == result(finished)


def changed_row(folder):
    path = folder / "metrics.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    row = json.loads(lines[-1])
    path.write_text("".join([*lines[:-1], json.dumps({**row, "test/acc": 0.987}) + "\n"]))


def changed_summary(folder):
    known = json.loads((folder / "summary.json").read_text())
    known["final"]["test/acc"] = 0.987
    (folder / "summary.json").write_text(json.dumps(known))


def cut_row(folder):
    path = folder / "metrics.jsonl"
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:-1]))


READERS = {
    "a number changed": changed_row,
    "no model": lambda folder: (folder / "model.safetensors").unlink(),
    "a row missing": cut_row,
}


@pytest.mark.parametrize("damage", READERS)
def test_no_reader_takes_a_damaged_run_for_a_finished_one(finished, tmp_path, damage):
    home = shutil.copytree(finished, tmp_path / "out")
    assert read_folder(run_folder(home)).status == "finished"
    READERS[damage](run_folder(home))
    assert read_folder(run_folder(home)).status == "damaged"
    assert set(fedgm.load_runs(home)["status"]) == {"damaged"}


def test_a_summary_whose_numbers_are_not_those_of_the_rows_is_damaged(finished, tmp_path):
    home = shutil.copytree(finished, tmp_path / "out")
    changed_summary(run_folder(home))
    with pytest.raises(FedGMError, match=r"damaged: summary\.json \(changed.*type rerun=true"):
        fedgm.run([*RUN, f"output_dir={home}"])


@pytest.fixture(scope="module")
def paused(tmp_path_factory):
    home = tmp_path_factory.mktemp("paused")
    fedgm.run([*RUN, "stop_after=2", f"output_dir={home}"])
    return home


def renamed_column(folder):
    path = folder / "metrics.jsonl"
    path.write_text(path.read_text().replace("train/acc", "trahn/acc"))


def grown_rows(folder):
    """And no checkpoint to compare them with."""
    with (folder / "metrics.jsonl").open("a") as file:
        file.write("{}\n")
    (folder / "checkpoints" / "round-000002.ckpt").write_bytes(b"")


def changed_first_row(folder):
    """In a number that no summary repeats."""
    path = folder / "metrics.jsonl"
    first, *others = path.read_text().splitlines(keepends=True)
    path.write_text("".join([json.dumps({**json.loads(first), "local/loss": 0.987}) + "\n", *others]))


PAUSED = {
    "a column renamed": renamed_column,
    "more than rows": grown_rows,
    "rows emptied": lambda folder: (folder / "metrics.jsonl").write_bytes(b""),
    "a row changed": changed_row,
    "a row missing": cut_row,
    "the first row changed": changed_first_row,
    "the summary changed": changed_summary,
}


@pytest.mark.parametrize("damage", quick(PAUSED, *list(PAUSED)[:3]))
def test_a_paused_run_without_its_rows_is_not_paused(paused, tmp_path, damage):
    home = shutil.copytree(paused, tmp_path / "out")
    PAUSED[damage](run_folder(home))
    again = fedgm.run([*RUN, "stop_after=2", f"output_dir={home}"])
    assert (again.status, again.summary["rounds_done"]) == ("paused", 2)
    assert timeless(rows(home)) == timeless(rows(paused))
    assert (run_folder(home) / "metrics.jsonl").read_text().count("\n") == 2
    assert again.summary["final"] == read_summary(paused)["final"]


def test_a_finished_run_of_an_older_version_is_done_by_the_number_of_its_rows(finished, tmp_path, capsys):
    home = shutil.copytree(finished, tmp_path / "out")
    known = read_summary(home)
    del known["digests"], known["seal"]
    (run_folder(home) / "summary.json").write_text(json.dumps(known))
    fedgm.run([*RUN, f"output_dir={home}"])
    assert "already done" in capsys.readouterr().out
    path = run_folder(home) / "metrics.jsonl"
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:2]))
    with pytest.raises(FedGMError, match="it has 2 rows"):
        fedgm.run([*RUN, f"output_dir={home}"])


@pytest.mark.slow
def test_a_yaml_in_ones_own_folder_is_the_command_line_and_its_result_is_not(commands, tmp_path):
    (tmp_path / "conf" / "algorithm").mkdir(parents=True)
    own = "name: own\n_target_: own_rule.Own\neta: 1.0\nbeta: 0.9\nnu: 0.9\n"
    (tmp_path / "conf" / "algorithm" / "own.yaml").write_text(own)
    words = ("--config-dir", str(tmp_path / "conf"), "algorithm=own")
    command = commands.run(tmp_path / "out", *words, *RUN)
    assert command.code == 0, command.text
    folder = run_folder(tmp_path / "out")
    with pytest.raises(FedGMError, match=r"algorithm\._target_=own_rule\.Own.* Try trust=\[own_rule\]"):
        stored(folder)
    assert stored(folder, ["own_rule"]).algorithm.name == "own"


@pytest.mark.parametrize("text", ["[]", "{", '{"status": ["finished"]}', '{"status": 3}'])
def test_a_damaged_summary_is_said_and_the_run_is_done_again(finished, tmp_path, capsys, text):
    home = shutil.copytree(finished, tmp_path / "out")
    (run_folder(home) / "summary.json").write_text(text)
    fedgm.run([*RUN, f"output_dir={home}"])
    printed = capsys.readouterr().out
    assert "summary.json is damaged" in printed
    assert "starting from round 1" in printed
    assert result(home) == result(finished)
    assert read_summary(home)["status"] == "finished"


def test_continuing_builds_nothing_of_what_the_folder_names(paused, finished, tmp_path):
    home, trap = shutil.copytree(paused, tmp_path / "out"), tmp_path / "trap"
    path = run_folder(home) / "config.yaml"
    content = OmegaConf.load(path)
    for group in ("algorithm", "schedule", "participation", "client", "upload", "task", "model"):
        content[group] = {"name": group, "_target_": "pathlib.Path.touch", "self": str(trap)}
    content.data.source = {"_target_": "os.mkdir", "path": str(trap)}
    content.callbacks = {"name": "x", "x": {"_target_": "os.mkdir", "path": str(trap)}}
    content.track.loggers = {"x": {"_target_": "os.mkdir", "path": str(trap)}}
    path.write_text(OmegaConf.to_yaml(content))
    fedgm.run([*RUN, f"output_dir={home}"])
    assert not trap.exists()
    assert result(home) == result(finished)
    assert str(trap) not in path.read_text()  # the command's own again
