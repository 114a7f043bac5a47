"""Every reader that refuses a part from elsewhere also takes the trust= that its refusal tells to type."""

import sys

import pytest
from click.testing import CliRunner
from omegaconf import OmegaConf

import fedgm
from fedgm import commands as cli
from fedgm import config
from fedgm.commands import sync
from fedgm.dashboard import serve
from fedgm.dashboard.collect import Collector
from fedgm.dashboard.split import splits
from fedgm.errors import ConfigError, RefusedError
from fedgm.running import wandb_run
from fedgm.running.trainer import build_module
from tests.dashboard.dashboard_runs import write_run

TINY = ("profile=tiny", "data=synthetic", "clients.count=6")
OWN = "from fedgm.server import GeneralMomentum\nclass Own(GeneralMomentum): ...\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Of a run whose algorithm comes from a package that only its user knows."""
    (tmp_path / "elsewhere_rule.py").write_text(OWN)
    monkeypatch.syspath_prepend(tmp_path)
    folder = write_run(tmp_path / "out" / "run")
    cfg = config.compose([*TINY, "algorithm._target_=elsewhere_rule.Own"])
    (folder / "config.yaml").write_text(OmegaConf.to_yaml(cfg, resolve=True))
    yield folder
    sys.modules.pop("elsewhere_rule", None)


def test_load_model(folder):
    from safetensors.torch import save_file

    validated = config.validate(config.compose(TINY))
    weights = build_module(validated, {"num_classes": 10}).state_dict()
    save_file({name: each.contiguous() for name, each in weights.items()}, folder / "model.safetensors")
    with pytest.raises(ConfigError, match=r"Try trust=\[elsewhere_rule\]"):
        fedgm.load_model(folder)
    assert not fedgm.load_model(folder, trust=["elsewhere_rule"]).training


def test_splits_of_the_dashboard(folder, tmp_path):
    collected = Collector([folder.parent]).collect()
    assert [len(part) for part in splits(collected)] == [0, 1]
    assert [len(part) for part in splits(collected, ["elsewhere_rule"])] == [1, 0]
    out = tmp_path / "page.html"
    words = ["dashboard", str(folder.parent), "trust=[elsewhere_rule]", "--partition", "--out", str(out)]
    result = CliRunner().invoke(cli.main, words)
    assert result.exit_code == 0, result.output
    assert '"splits":[{' in out.read_text().replace(": ", ":")


def test_splits_of_the_served_page(folder, monkeypatch):
    shown = []

    class Asked(serve.PayloadSource):
        """Built as the command builds it; the server is not waited for."""

        def __init__(self, *given):
            super().__init__(*given)
            shown.append(self.payload())
            raise OSError(0, "nobody needs the server")

    monkeypatch.setattr(serve, "PayloadSource", Asked)
    for trust in ([], ["trust=[elsewhere_rule]"]):
        CliRunner().invoke(cli.main, ["dashboard", str(folder.parent), "--serve", "--partition", *trust])
    assert [len(payload["splits"]) for payload in shown] == [0, 1]


def test_constants_of_a_run(folder):
    (folder / "model.safetensors").write_bytes(b"")
    words = ["theory", "--estimate", str(folder)]
    refused = CliRunner().invoke(cli.main, words)
    assert "Try trust=[elsewhere_rule]" in refused.output
    admitted = CliRunner().invoke(cli.main, [*words, "trust=[elsewhere_rule]"])
    assert "model.safetensors is damaged" in admitted.output  # the configuration was good


def test_sync_sends_it(folder, monkeypatch):
    class Record:
        run = None

        def __init__(self, *given):
            self.log = self.finish = lambda *rows, **more: None

    monkeypatch.setattr(wandb_run, "WandbRecord", Record)
    with pytest.raises(ConfigError, match=r"Try trust=\[elsewhere_rule\]"):
        sync.send(folder)
    assert not sync.send(folder, trust=["elsewhere_rule"])  # this record reaches nobody


def test_one_refused_folder_does_not_stop_the_rest(tmp_path, monkeypatch):
    for name in ("a", "b", "c"):
        write_run(tmp_path / name, eta=ord(name))
    sent = []

    def send(folder, project, trust):
        if folder.name == "b":
            raise RefusedError("not this one")
        sent.append((folder.name, trust))
        return True

    monkeypatch.setattr(sync, "send", send)
    monkeypatch.setattr(wandb_run, "resolve_mode", lambda mode: mode)
    result = CliRunner().invoke(cli.main, ["sync", str(tmp_path), "trust=[mine]"])
    assert result.exit_code == 2
    assert sorted(sent) == [("a", ("mine",)), ("c", ("mine",))]
    assert "b: not this one" in result.output
    assert "1 of 3 runs were not sent" in result.output


def test_without_a_folder_sync_takes_outputs(tmp_path, monkeypatch):
    write_run(tmp_path / "outputs" / "a")
    sent = []
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sync, "send", lambda folder, project, trust: sent.append(folder.name) or True)
    monkeypatch.setattr(wandb_run, "resolve_mode", lambda mode: mode)
    result = CliRunner().invoke(cli.main, ["sync"])
    assert result.exit_code == 0, result.output
    assert sent == ["a"]
