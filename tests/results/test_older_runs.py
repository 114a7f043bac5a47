"""Run folders as older versions have written them: read, shown, loaded, found by their command, continued.

``finished`` and ``paused`` are of commit 6ffc217: no task, upload or callbacks, no checksums, targets that
have moved since. ``unanchored`` is of e91535a, before ``participation.anchor``. Left out are pictures, files
that nobody reads again, and the model of ``unanchored``.
"""

import json
import shutil
from pathlib import Path

import pytest
import torch
import yaml
from click.testing import CliRunner
from omegaconf import OmegaConf
from safetensors.torch import load_file

import fedgm
from fedgm.commands import main
from fedgm.config import compose, reopened, stored
from fedgm.errors import ConfigError
from fedgm.results.find import below
from fedgm.running.parts import build_parts

HERE = Path(__file__).with_name("older_runs")
NAMES = ("finished", "paused", "unanchored")
RUN = [  # tiny as it was
    "profile=tiny", "profile.noise=0.8", "profile.distractor=1.0", "profile.jitter=0.5",
    "profile.tint=0.25", "profile.alpha=0.5", "profile.batch_size=5",
    "data.train_samples=120", "data.test_samples=20", "eval.train_samples=20",
    "clients.count=6", "clients.per_round=2", "local.unit=steps", "local.epochs=2", "rounds=4",
    "algorithm.eta=2", "trainer.workers=1", "track.mode=disabled", "checkpoint.keep=1",
]  # fmt: skip
STALE = ["participation=autonomous", "participation.delay=2", "participation.epochs=[1,2]"]


def restored(name: str, home: Path) -> Path:
    """The folder where its run has put it."""
    place = home / json.loads((HERE / name / "summary.json").read_text())["folder"]
    return Path(shutil.copytree(HERE / name, place))


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def typed(*words: str | Path) -> str:
    done = CliRunner(env={"COLUMNS": "160"}).invoke(main, [str(word) for word in words])
    assert done.exit_code == 0, done.output
    return done.output


def test_they_are_older():
    """Else the tests below would be of nothing."""
    for name in NAMES:
        config = yaml.safe_load((HERE / name / "config.yaml").read_text())
        assert {"task", "upload", "callbacks", "figure"}.isdisjoint(config)
        assert config["schedule"]["_target_"] == "fedgm.server.Constant"
        assert config["trainer"]["devices"] == 1
        assert {"task", "metric", "origin", "digests"}.isdisjoint(
            json.loads((HERE / name / "summary.json").read_text())
        )
        anchor = config["participation"].get("anchor")
        assert anchor == ("start" if name == "paused" else None)


def test_every_reader_reads_them(tmp_path):
    folder, *_ = [restored(name, tmp_path) for name in NAMES]
    frame = fedgm.load_runs(tmp_path)
    assert frame.groupby("status").size().to_dict() == {"finished": 8}
    assert set(frame["algorithm.eta"]) == {2}
    assert frame["test/loss"].notna().all()
    scores = {run.facts["commit"]: run.final("test/acc") for run in below(tmp_path) if run.is_done}
    assert scores == {"6ffc2177df84": 0.1, "e91535a2da6f": 0.15}
    listed = typed("list", tmp_path)
    assert (listed.count("finished"), listed.count("paused")) == (2, 0)  # `unanchored` is `paused`, finished
    assert "1 finished" in typed("compare", folder, "--out", tmp_path / "c.png")
    assert "2 runs" in typed("dashboard", tmp_path, "--out", tmp_path / "d.html", "--partition")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("finished", ["finished after 4 of 4 rounds", "10.00 %", "model.safetensors"]),
        ("paused", ["paused after 2 of 4 rounds"]),
        ("unanchored", ["finished after 4 of 4 rounds", "15.00 %"]),
    ],
)
def test_one_of_them_is_shown_and_its_parts_are_built(tmp_path, name, words):
    folder = restored(name, tmp_path)
    shown = typed("show", folder)
    assert [word for word in words if word not in shown] == []
    config = reopened(folder)
    scheme = build_parts(config).participation
    assert (scheme.anchor, scheme.history) == ("start", 1 if name == "finished" else 2)


@pytest.mark.parametrize(
    ("key", "option", "before"),
    [
        ("schedule", "cosine", "fedgm.server.decay.Cosine"),
        ("participation", "fedbuff", "fedgm.participation.Event"),  # which inherits its target
        ("data.source", "npz", "fedgm.data.arrays.load"),
    ],
)
def test_a_target_of_then_is_found_by_the_name_of_its_part(tmp_path, key, option, before):
    group = key.split(".")[0]
    cfg = compose([f"{group}={option}"])
    present = OmegaConf.select(cfg, f"{key}._target_")
    OmegaConf.update(cfg, f"{key}._target_", before)
    (tmp_path / "config.yaml").write_text(OmegaConf.to_yaml(cfg, resolve=True))
    assert OmegaConf.select(stored(tmp_path), f"{key}._target_") == present


def test_a_target_that_is_gone_is_refused_under_a_name_of_the_users_own(tmp_path):
    words = ["algorithm._target_=fedgm.server.Gone", "algorithm.name=mine"]
    (tmp_path / "config.yaml").write_text(OmegaConf.to_yaml(compose(words), resolve=True))
    with pytest.raises(
        ConfigError, match=r"algorithm\._target_=fedgm\.server\.Gone: expected an importable name"
    ):
        stored(tmp_path)


def test_the_trained_model_comes_back(tmp_path):
    folder = restored("finished", tmp_path)
    module = fedgm.load_model(folder)
    for name, tensor in load_file(folder / "model.safetensors").items():
        assert torch.equal(module.state_dict()[name], tensor)
    with torch.no_grad():
        assert module(torch.zeros(2, 3, 8, 8)).shape == (2, 10)


def test_the_command_of_a_finished_run_finds_it_and_leaves_it_alone(tmp_path, capsys):
    folder = restored("finished", tmp_path)
    before = contents(folder)
    result = fedgm.run([*RUN, f"output_dir={tmp_path}"])
    assert (result.folder, result.status) == (folder, "finished")
    assert "already done" in capsys.readouterr().out
    assert contents(folder) == before


def test_the_command_of_a_paused_run_continues_it_to_the_result_of_today(tmp_path, capsys):
    """The rows may differ in their last digits: another machine has computed the first two."""
    folder = restored("paused", tmp_path / "old")
    begun = (folder / "metrics.jsonl").read_text()
    ended = fedgm.run([*RUN, *STALE, f"output_dir={tmp_path / 'old'}"])
    assert (ended.folder, ended.status) == (folder, "finished")
    assert "continuing after round 2\n" in capsys.readouterr().out
    assert (folder / "metrics.jsonl").read_text().startswith(begun)
    today = fedgm.run([*RUN, *STALE, f"output_dir={tmp_path / 'new'}"])
    models = [load_file(run.folder / "model.safetensors") for run in (ended, today)]
    for name, tensor in models[0].items():
        torch.testing.assert_close(tensor, models[1][name], rtol=0, atol=1e-5)
