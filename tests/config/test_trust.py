"""A run folder can come from anybody: what it names is not imported, built or written through."""

import sys
import textwrap
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner
from omegaconf import OmegaConf

from fedgm import config
from fedgm.commands import main
from fedgm.config.parts import build
from fedgm.config.trust import require_trusted, trusted_words
from fedgm.errors import ConfigError, FedGMError
from fedgm.files import beside, write_atomically
from fedgm.lock import locked
from fedgm.running import loggers
from fedgm.running.parts import build_parts, load_clients

EVENT = ("profile=tiny", "participation=event", "clients.count=6", "clients.per_round=3")


def run_with(folder: Path, key: str, value: object, *words: str) -> Path:
    """A run folder whose configuration has one value changed."""
    values = OmegaConf.to_container(config.compose([*EVENT, *words]), resolve=True)
    *path, last = key.split(".")
    node = values
    for part in path:
        node = node[part]
    node[last] = value
    (folder / "config.yaml").write_text(OmegaConf.to_yaml(OmegaConf.create(values)))
    (folder / "model.safetensors").write_bytes(b"")
    return folder


def refusal(folder: Path, *trust: str) -> str:
    with pytest.raises(FedGMError) as caught:
        config.stored(folder, trust)
    return str(caught.value)


@pytest.mark.parametrize(
    "target",
    [
        "pandas.read_pickle", "joblib.load", "os.system", "builtins.eval", "subprocess.run", "numpy.load",
        "torch.load", "torch.hub.load", "torch.utils.cpp_extension.load_inline",
        "fedgm.files.os.system", "fedgm.running.one_run.shutil.rmtree", "torch.nn.modules.module.torch.load",
        "torch.optim.optimizer.torch.hub.load", "fedgm", "fedgmx.anything", "torch.nnx.anything",
        "fedgm.__version__", "fedgm.config.__builtins__.eval", "fedgm.results.run.Run.score",
        "torch.nn.Module.apply", "torch.nn.functional",
        "fedgm..files", "", 7, None, ["os.system"], {"_target_": "os.system"},
    ],
)  # fmt: skip
def test_a_target_from_elsewhere_is_refused(tmp_path, target):
    text = refusal(run_with(tmp_path, "data.source._target_", target))
    assert "data.source._target_=" in text


@pytest.mark.parametrize("target", ["fedgm.data.npz.KEYS", "fedgm.data.npz.zipfile.ZipFile"])
def test_what_our_modules_only_mention_is_refused_or_not_built(tmp_path, target):
    key = "local.optimizers.sgd._target_"
    assert f"{key}=" in refusal(run_with(tmp_path, key, target))
    opened = config.stored(run_with(tmp_path, "data.source._target_", target))
    assert opened.data.source["_target_"] == "fedgm.data.synthetic.load"  # what data.name says


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("participation.sampler", {"_target_": "os.system", "command": "true"}),  # nested
        ("local.optimizers.extra", {"list": [{"deep": [{"_target_": "os.system"}]}]}),
        ("callbacks.mine", {"_target_": "os.system"}),
        ("track.loggers.mine", {"_target_": "os.system"}),
        ("data.source._args_", [1]),
        ("data.source._partial_", True),
        ("data.source._recursive_", False),
        ("data.source.url", "http://127.0.0.1:9/who-reads-this.tar.gz"),
    ],
)
def test_nothing_hides_in_the_depth(tmp_path, key, value):
    assert key.split(".")[0] in refusal(run_with(tmp_path, key, value))


def test_nothing_is_imported_before_the_path_has_passed(tmp_path, monkeypatch):
    (tmp_path / "evil_package.py").write_text("raise SystemExit('imported')")
    monkeypatch.syspath_prepend(tmp_path)
    folder = run_with(tmp_path, "algorithm._target_", "evil_package.Rule")
    for trust in ((), ("evil", "evil_pack")):  # a name that only begins alike is another package
        assert "Try trust=[evil_package]" in refusal(folder, *trust)
    assert "evil_package" not in sys.modules


@pytest.mark.parametrize(
    "value", ["${oc.env:HOME}", "${oc.decode:'[1]'}", "${hydra:runtime.cwd}", "a ${seed} b"]
)
def test_a_stored_value_asks_for_nothing(tmp_path, value):
    run_with(tmp_path, "name", "NAME")
    path = tmp_path / "config.yaml"
    path.write_text(path.read_text().replace("NAME", f'"{value}"'))
    assert "stored configurations are resolved" in refusal(tmp_path)


BOMB = "a0: &a0 [x, x]\n" + "".join(f"a{n + 1}: &a{n + 1} [*a{n}, *a{n}]\n" for n in range(40))


@pytest.mark.parametrize(
    "text",
    [
        BOMB,
        "name: !!python/object/apply:os.system [true]",
        "name: " + "[" * 5000,
        "x" * (2**20 + 1),
        "- a list",
        "just words",
        "",
        "name: [unclosed",
        "rounds: many",
        "unknown_key: 1",
        "data: 3",
    ],
    ids=range(11),
)
def test_a_damaged_configuration_is_called_damaged(tmp_path, text):
    (tmp_path / "config.yaml").write_text(text)
    assert "is damaged" in refusal(tmp_path)


def test_a_configuration_of_bytes_is_called_damaged(tmp_path):
    (tmp_path / "config.yaml").write_bytes(b"\xff\xfe\x00")
    assert "is damaged" in refusal(tmp_path)


@pytest.mark.parametrize("command", [["timeline", "RUN"], ["theory", "--estimate", "RUN"]])
def test_no_command_runs_what_a_folder_names(tmp_path, command):
    flag = tmp_path / "ran"
    (tmp_path / "evil.py").write_text(f"from pathlib import Path\nPath({str(flag)!r}).touch()")
    folder = run_with(tmp_path, "data.source", {"_target_": "runpy.run_path", "path_name": "evil.py"})
    result = CliRunner().invoke(main, [word.replace("RUN", str(folder)) for word in command])
    assert result.exit_code == 2
    assert "data.source._target_=runpy.run_path: expected" in result.output
    assert not flag.exists()


def test_a_function_of_ours_that_makes_no_part_is_not_called(tmp_path):
    precious = tmp_path / "precious"
    precious.mkdir()
    source = {"_target_": "fedgm.running.checkpoint.discard", "folder": str(precious)}
    run = config.validate(config.compose(["profile=tiny"]))
    run.data.source = source
    with pytest.raises(ConfigError, match="it does not make a Source: NoneType has no federate"):
        load_clients(run)
    assert "a folder builds nothing else" in refusal(run_with(tmp_path, "data.source", source))
    assert precious.exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["algorithm._target_=fedgm.schedule.Constant", "~algorithm.eta", "~algorithm.beta", "~algorithm.nu",
          "~algorithm.nu_is_beta"],
         "it does not make a ServerRule: Constant has no follow, gain, hyper, init, step"),
        (["schedule._target_=collections.Counter"], "it does not make a Schedule: Counter has no plan"),
        (["client._target_=builtins.object"], "not make a ClientRule: object has no begin, end, server"),
        (["upload._target_=collections.OrderedDict"], "says which parameters it takes"),
        (["upload._target_=sys.path"], "says which parameters it takes"),
        (["upload._target_=collections.UserList"], "not make a UploadRule: UserList has no keeps, send"),
    ],
)  # fmt: skip
def test_what_a_target_makes_is_the_part_that_is_asked_for(words, said):
    run = config.validate(config.compose(["profile=tiny", *words]))
    with pytest.raises(ConfigError) as caught:
        build_parts(run)
    assert said in str(caught.value)


def no_words(rate=1.0):
    return "a string"


def test_what_a_target_without_hints_returns_is_checked_too():
    with pytest.raises(ConfigError, match="it does not make a Module: str is not a subclass of it"):
        build({"_target_": f"{__name__}.no_words"}, "model", kind=torch.nn.Module)


def test_a_damaged_model_is_called_damaged(tmp_path):
    folder = run_with(tmp_path, "data.source.noise", 0.5, "data=synthetic")
    from safetensors.torch import save_file

    from fedgm.running.diagnosis import estimate_run

    run = config.validate(config.stored(folder))
    for damage in (b"", b"x" * 100):
        (folder / "model.safetensors").write_bytes(damage)
        with pytest.raises(FedGMError, match=r"model\.safetensors is damaged"):
            estimate_run(run, folder, 2)
    save_file({"other": torch.zeros(1)}, folder / "model.safetensors")
    with pytest.raises(FedGMError, match=r"model\.safetensors is damaged"):
        estimate_run(run, folder, 2)


def test_trust_on_the_command_line_admits_more(tmp_path, monkeypatch):
    (tmp_path / "my_package.py").write_text(
        textwrap.dedent("""
        from fedgm.data.synthetic import load as made
        def load(**values):
            return made(**values)
        """)
    )
    monkeypatch.syspath_prepend(tmp_path)
    folder = run_with(tmp_path, "data.source._target_", "my_package.load", "data=synthetic")
    refused = CliRunner().invoke(main, ["timeline", str(folder)])
    assert refused.exit_code == 2
    assert "trust=[my_package]" in refused.output
    drawn = CliRunner().invoke(main, ["timeline", str(folder), "trust=[my_package]", "--rounds", "2"])
    assert drawn.exit_code == 0, drawn.output
    assert "trust=[other]" not in drawn.output
    assert CliRunner().invoke(main, ["timeline", str(folder), "trust=[other]"]).exit_code == 2
    # of the stored configuration itself it is no word
    assert "trust" in refusal(run_with(tmp_path, "trust", ["my_package"]))


def test_words_of_trust():
    assert trusted_words(["rounds=3", "trust=[a,b.c]", "trust=d"]) == ("a", "b.c", "d")
    for word in ("trust=[]", "trust=", "trust=[../x]", "trust=[a b]", "trust=[.]"):
        with pytest.raises(ConfigError, match="trust"):
            trusted_words([word])


def test_all_that_our_own_files_name_is_admitted():
    found = 0
    for path in config.conf_dir().rglob("*.yaml"):
        for line in path.read_text().splitlines():
            if "_target_: " in line and not line.lstrip().startswith("#"):
                name = line.split("_target_: ")[1].split(",")[0].split()[0].strip("\"'}")
                require_trusted({"_target_": name}, "model")
                found += 1
    assert found > 50


@pytest.mark.parametrize(
    "name", ["../../escape", "/elsewhere/escape", "a/../../b", "..", ".", "", "a//b", "a\nb"]
)
def test_a_name_stays_inside_the_output_folder(name):
    cfg = config.compose(["profile=tiny"])
    cfg.name = name
    with pytest.raises(ConfigError, match="a folder below output_dir"):
        config.validate(cfg)


@pytest.mark.parametrize("name", ["../other", "checkpoints", "wandb", "/elsewhere/x", "..", "a b", ""])
def test_a_loggers_folder_is_its_own(tmp_path, name):
    (tmp_path / "run" / "checkpoints").mkdir(parents=True)
    (tmp_path / "other").mkdir()
    csv = {"_target_": "pytorch_lightning.loggers.CSVLogger"}
    track = config.TrackConfig(name="mine", loggers={name: csv})
    with pytest.raises(ConfigError, match=r"track\.loggers="):
        loggers.check_loggers(track)
    assert (tmp_path / "other").exists()
    assert (tmp_path / "run" / "checkpoints").exists()


def test_a_link_in_a_run_folder_is_not_written_through(tmp_path):
    precious, folder = tmp_path / "precious", tmp_path / "run"
    precious.write_text("mine")
    folder.mkdir()
    (folder / "lock").symlink_to(precious)
    with pytest.raises(FedGMError, match="symbolic link"), locked(folder):
        pass
    (folder / "summary.json").symlink_to(precious)
    write_atomically(folder / "summary.json", "{}")  # replaces the link
    beside(folder / "config.yaml").symlink_to(precious)
    with pytest.raises(OSError, match="symbolic links"):
        write_atomically(folder / "config.yaml", "evil")
    assert precious.read_text() == "mine"


def test_a_key_of_older_versions_is_left_out_of_a_stored_configuration(tmp_path):
    cfg = OmegaConf.to_container(config.compose(["profile=tiny"]), resolve=True)
    cfg["trainer"]["devices"] = 1
    (tmp_path / "config.yaml").write_text(OmegaConf.to_yaml(cfg))
    assert config.validate(config.stored(tmp_path)).trainer.workers == "auto"
    with pytest.raises(ConfigError, match=r"trainer\.devices=2: expected a key of trainer"):
        config.compose(["trainer.devices=2"])
