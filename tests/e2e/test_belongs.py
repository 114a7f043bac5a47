"""Saved state belongs to its run: files of another run, or changed ones, are never taken for its own."""

import json
import re
import shutil

import pytest
from click.testing import CliRunner

import fedgm
from fedgm import config
from fedgm.commands import main
from fedgm.errors import FedGMError, RefusedError
from fedgm.results.find import read_folder
from fedgm.running.diagnosis import estimate_run
from tests.e2e.commands import TINY, read_summary, result, run_folder
from tests.e2e.test_damage import flip

# Few clients, so that each takes part again with what it kept before; stale ones need past models.
RUN = (
    *TINY, "rounds=6", "clients.count=6", "clients.per_round=3", "local.unit=steps", "local.epochs=1",
    "client=scaffold", "participation=autonomous", "participation.delay=3", "participation.epochs=[1,1]",
)  # fmt: skip


@pytest.fixture(scope="module")
def paused(tmp_path_factory):
    """Seeds 0 and 1 after round 4, each in an output_dir of its own; to be copied, not used."""
    homes = [tmp_path_factory.mktemp(f"paused{seed}") for seed in (0, 1)]
    for seed, home in enumerate(homes):
        fedgm.run([*RUN, f"seed={seed}", "stop_after=4", f"output_dir={home}"])
    return homes


@pytest.fixture(scope="module")
def finished(tmp_path_factory, paused):
    homes = [shutil.copytree(home, tmp_path_factory.mktemp("done") / "out") for home in paused]
    for seed, home in enumerate(homes):
        fedgm.run([*RUN, f"seed={seed}", f"output_dir={home}"])
    return homes


def copied(home, tmp_path):
    """``cp -r seed=0 seed=1``."""
    copy = shutil.copytree(home, tmp_path / "copy")
    folder = run_folder(copy)
    folder.rename(folder.with_name("seed=1"))
    return copy


@pytest.mark.parametrize("stage", ["paused", "finished"])
def test_a_folder_copied_to_another_seed_is_refused(request, finished, tmp_path, stage):
    home = copied(request.getfixturevalue(stage)[0], tmp_path)
    before = {path: path.read_bytes() for path in run_folder(home).rglob("*") if path.is_file()}
    with pytest.raises(FedGMError, match=r"seed=1 holds seed 0, as a copy .* type rerun=true"):
        fedgm.run([*RUN, "seed=1", f"output_dir={home}"])
    assert {path: path.read_bytes() for path in run_folder(home).rglob("*") if path.is_file()} == before
    fedgm.run([*RUN, "seed=1", "rerun=true", f"output_dir={home}"])
    assert result(home) == result(finished[1])


def test_a_folder_copied_to_another_configuration_is_refused(finished, tmp_path):
    home = shutil.copytree(finished[0], tmp_path / "copy")
    folder = run_folder(home)
    other = fedgm.run([*RUN, "local.lr=0.02", "stop_after=1", f"output_dir={tmp_path / 'other'}"]).folder
    folder.parent.rename(folder.parent.with_name(other.parent.name))
    with pytest.raises(FedGMError, match="holds another configuration"):
        fedgm.run([*RUN, "local.lr=0.02", f"output_dir={home}"])


def test_a_copy_without_its_summary_begins_again(paused, finished, tmp_path, capsys):
    """Nothing says whose folder it is, but each checkpoint does."""
    home = copied(paused[0], tmp_path)
    (run_folder(home) / "summary.json").unlink()
    fedgm.run([*RUN, "seed=1", f"output_dir={home}"])
    assert "belongs to another run" in capsys.readouterr().out
    assert result(home) == result(finished[1])


# part of a folder that comes from seed 0 -> the round that seed 1 may continue after
SWAPPED = {
    "the newest checkpoint": ("checkpoints/round-000004.ckpt", 3),
    "a past model": ("checkpoints/model-000003.safetensors", 3),
    "all past models": ("checkpoints/model-*.safetensors", 0),
    "client states": ("checkpoints/clients/*/*.safetensors", 0),
    "rows": ("metrics.jsonl", 0),
}


@pytest.mark.parametrize("what", SWAPPED)
def test_a_file_of_another_seed_is_not_taken(paused, finished, tmp_path, capsys, what):
    home = shutil.copytree(paused[1], tmp_path / "out")
    pattern, done = SWAPPED[what]
    source, target = run_folder(paused[0]), run_folder(home)
    names = [path.relative_to(source) for path in source.glob(pattern)]
    assert names
    for name in names:
        (target / name).parent.mkdir(exist_ok=True)
        shutil.copy(source / name, target / name)
    fedgm.run([*RUN, "seed=1", f"output_dir={home}"])
    told = f"continuing after round {done}" if done else "starting from round 1"
    assert told in capsys.readouterr().out
    assert result(home) == result(finished[1])


def test_rows_of_another_seed_are_damage_to_readers(paused, finished, tmp_path):
    for homes in (paused, finished):
        home = shutil.copytree(homes[1], tmp_path / homes[1].parent.name)
        shutil.copy(run_folder(homes[0]) / "metrics.jsonl", run_folder(home) / "metrics.jsonl")
        assert read_folder(run_folder(home)).status == "damaged"


def changed_eta(folder):
    path = folder / "config.yaml"
    text = path.read_text()
    assert "  eta: 1.0\n" in text
    path.write_text(text.replace("  eta: 1.0\n", "  eta: 9.0\n"))


def test_a_changed_configuration_is_not_listed_as_the_runs(finished, tmp_path):
    home = shutil.copytree(finished[0], tmp_path / "out")
    assert read_folder(run_folder(home)).config["algorithm.eta"] == 1.0
    changed_eta(run_folder(home))
    run = read_folder(run_folder(home))
    assert run.status == "damaged"
    assert "algorithm.eta" not in run.config
    listed = CliRunner().invoke(main, ["list", str(home)]).output
    assert "damaged" in listed
    assert not re.search(r"\b9\b", listed)
    with pytest.raises(RefusedError, match=r"config\.yaml is damaged: .*the command of the run again"):
        config.stored(run_folder(home))
    with pytest.raises(RefusedError, match=r"config\.yaml is damaged"):
        fedgm.load_model(run_folder(home))


@pytest.mark.parametrize("damage", [changed_eta, lambda folder: (folder / "config.yaml").unlink()])
@pytest.mark.parametrize("stage", ["paused", "finished"])
def test_the_command_of_a_run_writes_its_configuration_again(request, tmp_path, capsys, stage, damage):
    home = shutil.copytree(request.getfixturevalue(stage)[0], tmp_path / "out")
    before = result(home) if stage == "finished" else None
    damage(run_folder(home))
    stop = ["stop_after=4"] if stage == "paused" else []
    again = fedgm.run([*RUN, *stop, f"output_dir={home}"])
    assert again.status == stage
    assert "config.yaml was changed or is gone: it is written again" in capsys.readouterr().out
    run = read_folder(run_folder(home))
    assert (run.status, run.config["algorithm.eta"], run.is_sealed) == (stage, 1.0, True)
    if stage == "finished":
        assert result(home) == before
        fedgm.load_model(run_folder(home))
    fedgm.run([*RUN, *stop, f"output_dir={home}"])
    assert "written again" not in capsys.readouterr().out


def test_a_flipped_bit_in_the_model_is_not_loaded(finished, tmp_path):
    home = shutil.copytree(finished[0], tmp_path / "out")
    fedgm.load_model(run_folder(home))
    flip(run_folder(home) / "model.safetensors", 0.9)
    with pytest.raises(RefusedError, match=r"model\.safetensors is damaged: .*rerun=true"):
        fedgm.load_model(run_folder(home))
    with pytest.raises(RefusedError, match=r"model\.safetensors is damaged: "):
        estimate_run(config.reopened(run_folder(home)), run_folder(home), clients=2)


def test_the_model_of_another_seed_is_not_loaded(finished, tmp_path):
    home = shutil.copytree(finished[1], tmp_path / "out")
    shutil.copy(run_folder(finished[0]) / "model.safetensors", run_folder(home) / "model.safetensors")
    with pytest.raises(RefusedError, match=r"model\.safetensors is damaged"):
        fedgm.load_model(run_folder(home))


def rewritten(folder, **values):
    path = folder / "summary.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))


@pytest.mark.parametrize("values", [{"initial": {"test/acc": 0.9}}, {"seconds": 1.0}, {"seed": 1}])
def test_a_changed_summary_is_damage(finished, tmp_path, values):
    home = shutil.copytree(finished[0], tmp_path / "out")
    rewritten(run_folder(home), **values)
    assert read_folder(run_folder(home)).status == "damaged"
    with pytest.raises(FedGMError, match=r"damaged: summary\.json \(changed\).*type rerun=true"):
        fedgm.run([*RUN, f"output_dir={home}"])
    with pytest.raises(RefusedError, match=r"summary\.json is damaged"):
        fedgm.load_model(run_folder(home))


def test_the_summary_of_another_seed_fits_no_other_file(finished, tmp_path):
    home = shutil.copytree(finished[1], tmp_path / "out")
    shutil.copy(run_folder(finished[0]) / "summary.json", run_folder(home) / "summary.json")
    assert read_folder(run_folder(home)).status == "damaged"


def test_a_folder_from_before_the_seals_is_read_and_marked(finished, tmp_path, capsys):
    home = shutil.copytree(finished[0], tmp_path / "out")
    stored = read_summary(home)
    del stored["seal"], stored["digests"]
    (run_folder(home) / "summary.json").write_text(json.dumps(stored))
    run = read_folder(run_folder(home))
    assert (run.status, run.is_sealed) == ("finished", False)
    fedgm.load_model(run_folder(home))
    fedgm.run([*RUN, f"output_dir={home}"])
    assert "already done" in capsys.readouterr().out
    for words in (["list", str(home)], ["show", str(run_folder(home))]):
        output = " ".join(CliRunner().invoke(main, words).output.split())
        assert "* of an older version: changes to its files do not show" in output
    listed = CliRunner().invoke(main, ["list", str(finished[0])]).output
    assert "older version" not in listed
