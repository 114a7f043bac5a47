"""Pipes, arrays and archives that claim anything, sizes in a stored configuration: nobody waits for them."""

import json
import os
import signal

import pytest
from click.testing import CliRunner
from omegaconf import OmegaConf

import fedgm
from fedgm import commands as cli
from fedgm import config
from fedgm.config import identity, require_sound
from fedgm.dashboard.collect import Collector
from fedgm.dashboard.split import splits
from fedgm.errors import ConfigError, RefusedError
from fedgm.participation.devices import read_speeds
from fedgm.results import archive
from fedgm.results.find import below
from fedgm.running.parts import build_parts
from tests.dashboard.dashboard_runs import write_run

EVENT = ("profile=tiny", "data=synthetic", "participation=event", "clients.count=6", "clients.per_round=3")
HUGE = b"\x93NUMPY\x01\x00v\x00{'descr': '<f8', 'fortran_order': False, 'shape': (10000000000000,), }"


@pytest.fixture(autouse=True)
def _ends():
    """Whoever opens a pipe is interrupted."""

    def late(signum, frame):
        raise AssertionError("it waits")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(60)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture
def pipe(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    return tmp_path / "pipe"


def test_speeds_from_a_pipe_are_refused(pipe):
    with pytest.raises(ConfigError, match=r"participation\.speeds=.*there is no such file"):
        build_parts(require_sound(config.compose([*EVENT, f"participation.speeds={pipe}"])))


def test_an_array_that_claims_more_than_memory_is_refused(tmp_path):
    (tmp_path / "speeds.npy").write_bytes(HUGE.ljust(127) + b"\n" + b"\0" * 64)
    with pytest.raises(ConfigError, match=r"participation\.speeds="):
        read_speeds(str(tmp_path / "speeds.npy"))


def test_a_file_of_speeds_has_a_largest_size(tmp_path):
    with (tmp_path / "speeds.txt").open("wb") as file:
        file.truncate(2**40)  # sparse: no disk
    with pytest.raises(ConfigError, match="it has more than 268,435,456 bytes"):
        read_speeds(str(tmp_path / "speeds.txt"))


@pytest.mark.parametrize("words", [("data=npz",), ("data=text",)])
def test_the_identity_reads_no_pipe(pipe, words):
    identity.identity(config.compose([*words, f"data.path={pipe}"]))  # whoever loads it refuses it


def test_the_page_is_stopped_by_no_file(tmp_path):
    write_run(tmp_path / "run")
    os.mkfifo(tmp_path / "x.jsonl")
    (tmp_path / "deep.jsonl").write_text("[" * 100_000)
    (tmp_path / "damaged.jsonl").write_text(json.dumps({"format": archive.FORMAT, "config": {}}) + "\n3\n")
    collected = Collector([tmp_path]).collect()
    assert len(collected.runs) == 1
    (names,) = collected.left_out.values()
    assert [name.rpartition("/")[2] for name in names] == ["damaged.jsonl"]


def test_load_runs_leaves_out_a_damaged_archive(tmp_path):
    write_run(tmp_path / "run")
    os.mkfifo(tmp_path / "x.jsonl")
    (tmp_path / "deep.jsonl").write_text("[" * 100_000)
    (tmp_path / "damaged.jsonl").write_text(json.dumps({"format": archive.FORMAT, "config": {}}) + "\n3\n")
    with pytest.warns(UserWarning, match=r"left out: .*damaged\.jsonl"):
        assert len(fedgm.load_runs(tmp_path)) > 0


def test_a_file_that_opens_but_cannot_be_read_is_no_archive(tmp_path):
    (tmp_path / "x.jsonl").symlink_to("/proc/self/mem")  # reading its beginning is an error
    assert below(tmp_path) == []


def test_a_pipe_is_no_archive(pipe):
    with pytest.raises(RefusedError, match="not a file"):
        archive.read(pipe)


def hostile(folder, seed=0, **values):
    """A run folder whose stored configuration asks for what no command line may ask for."""
    write_run(folder, seed=seed)
    cfg = config.compose(EVENT)
    for key, value in values.items():
        OmegaConf.update(cfg, key.replace("__", "."), value)
    (folder / "config.yaml").write_text(OmegaConf.to_yaml(cfg, resolve=True))
    (folder / "model.safetensors").touch()
    return folder


COMMANDS = (["timeline"], ["theory", "--estimate"])


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_a_stored_configuration_has_the_limits_of_a_command_line(tmp_path, words):
    folder = hostile(tmp_path / "run", data__resolution=1_000_000)
    result = CliRunner().invoke(cli.main, [*words, str(folder)])
    assert result.exit_code == 2, result.output
    assert "data.resolution=1000000: expected what fits into" in result.output


def test_a_stored_model_has_them_too(tmp_path):
    with pytest.raises(ConfigError, match=r"data\.resolution=1000000: expected what fits into"):
        fedgm.load_model(hostile(tmp_path / "run", data__resolution=1_000_000))


@pytest.mark.parametrize(("word", "value"), [("resolution", 10**9), ("train", 3 * 10**11)])
def test_a_size_that_only_the_source_gets_has_them_too(word, value):
    cfg = config.compose(["profile=tiny", f"data.source.{word}={value}"])
    with pytest.raises(ConfigError, match=rf"data\.source\.{word}={value}: expected what fits into"):
        config.require_sound(cfg)


def test_one_split_that_cannot_be_drawn_is_a_note_whatever_it_raises(tmp_path, monkeypatch):
    hostile(tmp_path / "a", data__resolution=1_000_000)
    hostile(tmp_path / "b", seed=1, data__alpha=0.3)

    def fails(run):
        raise MemoryError("too much")

    tables, notes = splits(Collector([tmp_path]).collect())
    assert (len(tables), len(notes)) == (1, 1)
    assert "data.resolution=1000000: expected what fits into" in notes[0]  # before any image was made
    monkeypatch.setattr("fedgm.running.parts.load_clients", fails)
    tables, notes = splits(Collector([tmp_path]).collect())
    assert (len(tables), len(notes)) == (0, 2)


def test_a_stored_group_that_is_no_group_is_refused(tmp_path):
    folder = hostile(tmp_path / "run")
    text = OmegaConf.load(folder / "config.yaml")
    text.participation = [1, 2]
    OmegaConf.save(text, folder / "config.yaml")
    result = CliRunner().invoke(cli.main, ["timeline", str(folder)])
    assert result.exit_code == 2, result.output
    assert "participation=[1, 2]: expected an option of this group" in result.output


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ("callbacks", "callbacks=3: expected entries with a _target_"),
        ("data.source", "data.source=3: expected keys with a _target_"),
        ("best", "best=3: expected winners by experiment and algorithm"),
    ],
)
def test_a_stored_number_where_keys_belong_is_refused(tmp_path, key, said):
    folder = hostile(tmp_path / "run")
    content = OmegaConf.load(folder / "config.yaml")
    OmegaConf.update(content, key, 3, merge=False)
    OmegaConf.save(content, folder / "config.yaml")
    with pytest.raises(ConfigError, match=said):
        config.reopened(folder)


def test_claims_of_another_package_do_not_close_a_run_folder(tmp_path):
    # What a figure claims is judged by `reproduce`: readers of the folder build nothing of it.
    folder = hostile(tmp_path / "run")
    content = OmegaConf.load(folder / "config.yaml")
    content.figure = {"title": "mine", "claims": [{"_target_": "my_package.claims.Mine"}]}
    OmegaConf.save(content, folder / "config.yaml")
    assert config.reopened(folder).figure is None
