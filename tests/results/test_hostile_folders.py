"""More ways in that a run folder, an archive or a data file from somebody else could try; none works."""

import io
import json
import os
import pickle
import tomllib
import zipfile
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
import torch
from omegaconf import OmegaConf

import fedgm
from fedgm import config
from fedgm.config.parts import lacks, promised
from fedgm.errors import ConfigError, FedGMError
from fedgm.files import read_json
from fedgm.participation.devices import read_speeds
from fedgm.results import archive
from fedgm.results.find import below, configuration
from fedgm.running.checkpoint import read_checkpoint
from fedgm.running.folder import create
from fedgm.running.parts import build_parts
from fedgm.seals import sealed
from fedgm.study import sweep_file

EVENT = ("profile=tiny", "participation=event", "clients.count=6", "clients.per_round=3")
RUN = {"_target_": "fedgm.api.run", "overrides": ["data.source._target_=pandas.read_pickle"]}


class Evil:
    """Touches a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


def stored(folder: Path, key: str, value: object, *words: str) -> config.RunConfig:
    """The configuration of a folder in which one value was changed."""
    cfg = config.compose([*EVENT, *words])
    OmegaConf.set_struct(cfg, False)
    OmegaConf.update(cfg, key, OmegaConf.create({"x": value})["x"], force_add=True, merge=False)
    (folder / "config.yaml").write_text(OmegaConf.to_yaml(cfg, resolve=True))
    return config.validate(config.stored(folder))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("data.source", RUN),  # a command line of its own, which may build anything
        ("participation.sampler", RUN),
        ("model", {**RUN, "name": "x", "channels_last": False}),
        ("data.source", {"_target_": "fedgm.config.parts.build", "node": {}, "key": "x"}),
        ("data.source", {"_target_": "fedgm.config.compose", "overrides": []}),
        ("data.source", {"_target_": "hydra.utils.instantiate", "config": {}}),
        ("data.source", {"_target_": "hydra.utils.get_method", "path": "os.system"}),
        ("data.source", {"_target_": "fedgm.config.parts.get_object", "path": "os.system"}),
        ("data.source.noise", [{"_target_": "fedgm.schedule.Constant"}]),  # Hydra would build it on the way
        ("data.source.noise", {"inner": {"_target_": "fedgm.schedule.Constant"}}),
        (
            "data.source.noise",
            {"_target_": "fedgm.figures.partition.draw"},
        ),  # nested: no protocol
        ("callbacks.a.b", {"_target_": "pytorch_lightning.callbacks.Timer"}),
    ],
)
def test_a_part_is_built_only_where_parts_are(tmp_path, key, value):
    with pytest.raises(ConfigError, match="a folder builds nothing else"):
        stored(tmp_path, key, value, "data=synthetic")


def test_a_function_whose_promise_cannot_be_read_promises_nothing():
    from fedgm import api
    from fedgm.data.clients import Source

    assert promised(api.run) is object  # its hint exists for type checkers alone
    assert "has no federate" in lacks(promised(api.run), Source)


def test_a_nested_part_is_asked_for_its_protocol(tmp_path):
    """ClientStore is defined in a trusted package, but it is no sampler."""
    sampler = {"_target_": "fedgm.client.store.ClientStore", "folder": str(tmp_path)}
    run = stored(tmp_path, "participation.sampler", sampler, "participation=autonomous")
    with pytest.raises(ConfigError, match=r"participation\.sampler\._target_.*does not make a Sampler"):
        build_parts(run)


@pytest.mark.parametrize("linked", [".", "..", "checkpoints"])
def test_a_linked_run_folder_is_not_emptied(tmp_path, linked):
    words = ("profile=tiny", "track.mode=disabled", "rounds=1", f"output_dir={tmp_path / 'out'}")
    from fedgm.running.folder import locate

    folder = locate(config.compose(words), words)
    precious = tmp_path / "precious" / "seed=0"
    precious.mkdir(parents=True)
    (precious / "thesis.txt").write_text("mine")
    place = (folder / linked) if linked == "checkpoints" else folder if linked == "." else folder.parent
    place.parent.mkdir(parents=True)
    place.symlink_to(precious if linked != ".." else precious.parent)
    with pytest.raises(FedGMError, match="symbolic link"):
        fedgm.run([*words, "rerun=true"])
    assert (precious / "thesis.txt").read_text() == "mine"
    assert [path.name for path in precious.iterdir()] == ["thesis.txt"]


def test_an_output_folder_of_ones_own_may_be_a_link(tmp_path):
    (tmp_path / "disk").mkdir()
    (tmp_path / "outputs").symlink_to(tmp_path / "disk")
    create(tmp_path / "outputs" / "run" / "label" / "seed=0")
    assert (tmp_path / "disk" / "run" / "label" / "seed=0").is_dir()


def test_arrays_of_objects_are_not_unpickled(tmp_path):
    flag, objects = tmp_path / "ran", np.array([None], dtype=object)
    objects[0] = Evil(flag)
    assert pickle.loads(pickle.dumps(Evil(tmp_path / "works"))) is None
    assert (tmp_path / "works").exists()  # the trap itself is a good one
    np.savez(tmp_path / "a.npz", x_train=objects, y_train=objects, x_test=objects, y_test=objects)
    np.save(tmp_path / "a.npy", objects, allow_pickle=True)
    from fedgm.data.npz import load

    with pytest.raises(ConfigError, match=r"data\.path"):
        load(str(tmp_path / "a.npz"))
    with pytest.raises(ConfigError, match=r"participation\.speeds"):
        read_speeds(str(tmp_path / "a.npy"))
    assert not flag.exists()


def test_a_checkpoint_that_runs_code_is_not_unpickled(tmp_path):
    content = io.BytesIO()
    torch.save({"epoch": Evil(tmp_path / "touched")}, content)
    path = tmp_path / "round-000003.ckpt"
    path.write_bytes(
        sealed(content.getbuffer(), path.name, "run-0")
    )  # its checksum is right: anybody can compute it
    with pytest.raises(pickle.UnpicklingError):
        read_checkpoint(path, "run-0")
    assert not (tmp_path / "touched").exists()


@pytest.mark.parametrize("reader", [configuration, config.stored])
def test_a_configuration_that_calls_functions_calls_none(tmp_path, reader):
    touched = tmp_path / "touched"
    text = f"name: !!python/object/apply:os.mkdir [{touched}]\n"
    (tmp_path / "config.yaml").write_text(text)
    with suppress(FedGMError):  # a reader of many folders leaves it out instead
        assert reader(tmp_path) == {}
    assert not touched.exists()


def test_a_sweep_file_that_calls_functions_calls_none(tmp_path):
    touched = tmp_path / "touched"
    path = tmp_path / "sweep.yaml"
    path.write_text(f"method: !!python/object/apply:os.mkdir [{touched}]\n")
    with pytest.raises(FedGMError):
        sweep_file.read(path)
    assert not touched.exists()


def test_an_array_that_says_it_is_huge_is_refused(tmp_path):
    header = "{'descr': '|u1', 'fortran_order': False, 'shape': (10000000000000,), }"
    head = b"\x93NUMPY\x01\x00" + (118).to_bytes(2, "little") + header.ljust(117).encode() + b"\n"
    with zipfile.ZipFile(tmp_path / "bomb.npz", "w") as file:
        for name in ("x_train", "y_train", "x_test", "y_test"):
            file.writestr(f"{name}.npy", head)
    from fedgm.data.npz import load

    with pytest.raises(ConfigError, match="cannot be read"):
        load(str(tmp_path / "bomb.npz"))


@pytest.mark.parametrize("name", ["summary.json", "config.yaml", "metrics.jsonl"])
def test_a_pipe_in_a_folder_keeps_nobody_waiting(tmp_path, name):
    run = tmp_path / "run"
    run.mkdir()
    (run / "summary.json").write_text('{"hash": "a", "seed": 0, "status": "finished"}')
    (run / name).unlink(missing_ok=True)
    os.mkfifo(run / name)
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert len(below(tmp_path)) == (name != "summary.json")
        fedgm.load_runs(tmp_path)
    with pytest.raises(FedGMError):
        config.stored(run)


def test_a_summary_of_a_gigabyte_is_not_read(tmp_path):
    with (tmp_path / "summary.json").open("wb") as file:
        file.truncate(2**30)  # sparse: no disk
    assert read_json(tmp_path / "summary.json") is None


@pytest.mark.parametrize(
    "line",
    [
        3, [], None, {}, {"config": 3, "without": [], "evaluations": {}},
        {"hash": ["../../x"], "seed": "..", "config": {}, "without": [], "evaluations": {}},
        {"hash": "../../x", "seed": 0, "status": [], "config": {}, "without": [], "evaluations": {}},
        {"hash": "a", "seed": 0, "status": "finished", "config": {}, "without": [], "evaluations": {"a": 3}},
    ],
)  # fmt: skip
def test_hostile_lines_of_an_archive_are_damage(tmp_path, line):
    path = tmp_path / "runs.jsonl"
    path.write_text(json.dumps({"format": archive.FORMAT, "config": {}}) + "\n" + json.dumps(line) + "\n")
    with pytest.raises(FedGMError, match="damaged"):
        archive.read(path)


def test_a_model_file_of_lies_is_called_damaged(tmp_path):
    stored(tmp_path, "data.source.noise", 0.5, "data=synthetic")
    for lie in (b"", b"\xff" * 8 + b"{}", (2**40).to_bytes(8, "little") + b"{}", b"x" * 100):
        (tmp_path / "model.safetensors").write_bytes(lie)
        with pytest.raises(FedGMError, match="damaged"):
            fedgm.load_model(tmp_path)


def test_hydra_itself_refuses_what_runs_commands():
    """From 1.3.6 on: older versions are not installed beside this package."""
    from hydra.errors import InstantiationException
    from hydra.utils import instantiate
    from packaging.requirements import Requirement

    with pytest.raises(InstantiationException, match=r"os\.system"):
        instantiate({"_target_": "os.system", "command": "true"})
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    (hydra,) = [each for each in map(Requirement, project["dependencies"]) if each.name == "hydra-core"]
    assert not hydra.specifier.contains("1.3.5")
    assert hydra.specifier.contains("1.3.6")
