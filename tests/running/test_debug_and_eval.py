"""Short runs that look for mistakes, the best model by a column, and a stored model on new data."""

import logging

import numpy as np
import pytest
import torch
from click.testing import CliRunner

import fedgm
from fedgm import commands as cli
from fedgm import config
from fedgm.config.identity import identity
from fedgm.errors import ConfigError, RefusedError

SMALL = [
    "profile=tiny", "data.train_samples=200", "data.test_samples=20", "eval.train_samples=20",
    "clients.count=10", "clients.per_round=2", "local.unit=steps", "local.epochs=1", "local.batch_size=10",
    "trainer.workers=1", "track=none",
]  # fmt: skip


def test_a_model_that_can_learn_overfits_twenty_images(tmp_path):
    words = ["debug=overfit", "profile.batch_size=5", "rounds=8", "local.lr=0.05", "trainer.workers=1"]
    result = fedgm.run(["profile=tiny", *words, f"output_dir={tmp_path}"])
    assert result.summary["final"]["train/acc"] > 0.9
    assert result.folder.parents[1].name == "debug"


def test_fast_dev_run_is_one_round_and_leaves_the_users_word_alone(tmp_path):
    result = fedgm.run(["profile=tiny", "debug=fdr", "trainer.workers=1", f"output_dir={tmp_path}"])
    assert (result.summary["rounds_done"], result.summary["local_steps"]) == (1, 1)
    assert config.compose(["debug=fdr", "rounds=7"]).rounds == 7


def test_a_profiler_writes_its_table_and_is_the_same_run(tmp_path):
    plain = [*SMALL, "rounds=1", f"output_dir={tmp_path}"]
    result = fedgm.run([*plain, "debug=profiler"])
    assert "on_train_epoch_end" in (result.folder / "fit-profile.txt").read_text()
    assert "debug" not in result.folder.parent.name
    assert identity(config.compose(plain)) == identity(config.compose([*plain, "debug=profiler"]))
    with pytest.raises(ConfigError, match=r"trainer\.profiler=fast"):
        fedgm.run([*plain, "trainer.profiler=fast"])


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    words = ["callbacks=model_checkpoint", "algorithm.eta=3", "rounds=4"]
    return fedgm.run([*SMALL, *words, f"output_dir={tmp_path_factory.mktemp('o')}"])


def test_the_best_model_is_a_file_that_torch_reads(run):
    best = run.folder / "model_checkpoint" / "best.ckpt"
    weights = torch.load(best, weights_only=True)["state_dict"]
    assert weights.keys() == fedgm.load_model(run.folder).state_dict().keys()
    measured = fedgm.evaluate(run.folder, weights=best)
    assert measured["test/acc"] == pytest.approx(run.summary["best"]["test/acc"], abs=1e-12)


def test_a_stored_model_measures_as_its_run_did(run):
    measured, final = fedgm.evaluate(run.folder), run.summary["final"]
    assert measured == {key: pytest.approx(final[key], abs=1e-12) for key in ("test/loss", "test/acc")}


def test_lightning_adds_no_tips_and_warnings_of_its_own(run, monkeypatch, recwarn):
    logger = logging.getLogger("pytorch_lightning")
    monkeypatch.setattr(logger, "level", logging.INFO)  # as in a process that has run nothing
    fedgm.evaluate(run.folder)
    assert logger.level == logging.WARNING
    assert [str(warning.message) for warning in recwarn if "treespec" in str(warning.message)] == []


def test_on_new_data_it_is_measured_on_those(run, tmp_path):
    rng = np.random.default_rng(0)
    images = {
        f"x_{split}": rng.integers(256, size=(40, 8, 8, 3), dtype=np.uint8) for split in ("train", "test")
    }
    labels = {f"y_{split}": np.arange(40) % 10 for split in ("train", "test")}
    np.savez(tmp_path / "new.npz", **images, **labels)
    words = ["data=npz", f"data.path={tmp_path / 'new.npz'}", "data.test_samples=null"]
    result = CliRunner().invoke(cli.main, ["eval", str(run.folder), *words])
    assert result.exit_code == 0, result.output
    measured = fedgm.evaluate(run.folder, words)
    assert f"test/acc: {100 * measured['test/acc']:.2f} %" in result.output
    assert (40 * measured["test/acc"]) % 1 == pytest.approx(0, abs=1e-9)  # of 40 images
    assert measured["test/loss"] != pytest.approx(run.summary["final"]["test/loss"])


def test_what_cannot_be_measured_is_refused(run, tmp_path):
    with pytest.raises(RefusedError, match="algorithm=fedavg: a stored model is fixed"):
        fedgm.evaluate(run.folder, ["algorithm=fedavg"])
    with pytest.raises(RefusedError, match="not the weights of this run"):
        fedgm.evaluate(run.folder, weights=run.folder / "summary.json")
    many = {f"y_{split}": np.arange(24) % 12 for split in ("train", "test")}
    grey = {f"x_{split}": np.zeros((24, 8, 8), np.uint8) for split in ("train", "test")}
    np.savez(tmp_path / "many.npz", **grey, **many)
    with pytest.raises(ConfigError, match="its num_classes is 12, the model has 10"):
        fedgm.evaluate(run.folder, ["data=npz", f"data.path={tmp_path / 'many.npz'}"])
