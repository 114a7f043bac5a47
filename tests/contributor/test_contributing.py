"""CONTRIBUTING.md is run as it stands: inside the repository, and as a package and a folder outside it."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner

import fedgm
import fedgm.server
from fedgm.commands import main
from fedgm.errors import ConfigError
from tests.waiting import PATIENCE

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "CONTRIBUTING.md").read_text()
SMALL = [
    "profile=tiny", "data.train_samples=200", "data.test_samples=20", "eval.train_samples=20",
    "clients.count=10", "clients.per_round=2", "local.unit=steps", "local.epochs=1", "local.batch_size=10",
    "trainer.workers=1", "track=none", "rounds=2",
]  # fmt: skip


def blocks() -> dict[str, str]:
    """The text of each block by the path in its first line."""
    blocks = re.findall(r"```(?:yaml|python)\n(# ([\w/]+\.(?:yaml|py)).*?)```", TEXT, re.S)
    return {path: text for text, path in blocks}


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """The blocks at their places; what they add to fedgm.server is found there, until the test ends."""
    for path, text in blocks().items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    monkeypatch.setattr(fedgm.server, "__path__", [*fedgm.server.__path__, str(tmp_path / "fedgm/server")])
    yield tmp_path
    sys.modules.pop("fedgm.server.signsgd", None)
    vars(fedgm.server).pop("signsgd", None)


def run(folder, *words, callbacks=()):
    searchpath = f"hydra.searchpath=[{folder / 'conf'}]"
    return fedgm.run([*SMALL, searchpath, f"output_dir={folder / 'outputs'}", *words], callbacks)


def rows(run_folder):
    return [json.loads(line) for line in (run_folder / "metrics.jsonl").read_text().splitlines()]


def test_the_blocks_are_found_and_the_files_that_it_names_are_there():
    assert list(blocks()) == [
        "conf/algorithm/halfway.yaml", "fedgm/server/signsgd.py", "conf/algorithm/signsgd.yaml",
    ]  # fmt: skip
    named = set(re.findall(r"`((?:fedgm|tests|docs)/[\w./]+)`", TEXT))
    assert len(named) > 10
    assert [name for name in sorted(named) if not (ROOT / name).exists()] == []


def test_a_special_case_is_a_yaml_alone(checkout):
    result = run(checkout, "algorithm=halfway")
    assert [row["server/nu"] for row in rows(result.folder)] == [0.5, 0.5]
    assert result.summary["algorithm"] == "halfway"


def test_a_server_rule_is_a_file_and_a_yaml(checkout):
    points = []

    class Watch(fedgm.FederatedCallback):
        def on_server_update(self, trainer, pl_module, update):
            points.append(update.x.clone())

    result = run(checkout, "algorithm=signsgd", "algorithm.eta=0.25", callbacks=[Watch()])
    assert result.status == "finished"
    moved = (points[1] - points[0]).abs()
    torch.testing.assert_close(moved[moved > 0], torch.full_like(moved[moved > 0], 0.25))
    assert (moved > 0).sum() > 0.9 * moved.numel()
    with pytest.raises(ConfigError, match=r"algorithm\.beta=high: expected a number\. Try algorithm\.beta="):
        run(checkout, "algorithm=signsgd", "algorithm.beta=high")


@pytest.mark.slow
def test_outside_the_repository_it_is_a_package_and_a_folder_of_ones_own(tmp_path, monkeypatch):
    """The command line and the reader that CONTRIBUTING shows, with its rule under another name."""
    assert "python run.py --config-dir my_conf algorithm=mine participation=event" in TEXT
    assert "trust=[my_package]" in TEXT
    (tmp_path / "my_conf" / "algorithm").mkdir(parents=True)
    yaml = blocks()["conf/algorithm/signsgd.yaml"].replace("fedgm.server.signsgd", "my_package_of_rules")
    (tmp_path / "my_conf" / "algorithm" / "mine.yaml").write_text(yaml.replace("name: signsgd", "name: mine"))
    (tmp_path / "my_package_of_rules.py").write_text(blocks()["fedgm/server/signsgd.py"])
    command = [
        sys.executable,
        str(ROOT / "run.py"),
        "--config-dir",
        "my_conf",
        "algorithm=mine",
        "participation=event",
    ]
    paths = os.pathsep.join([str(tmp_path), str(ROOT)])
    ended = subprocess.run(
        [*command, *SMALL], cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE,
        env={**os.environ, "PYTHONPATH": paths},
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    (folder,) = (tmp_path / "outputs" / "run").glob("mine,*/seed=0")
    assert len(rows(folder)) == 2
    monkeypatch.syspath_prepend(tmp_path)
    refused = CliRunner().invoke(main, ["timeline", str(folder)])
    assert refused.exit_code == 2
    assert "trust=[my_package_of_rules]" in refused.output
    drawn = CliRunner().invoke(
        main, ["timeline", str(folder), "trust=[my_package_of_rules]", "--rounds", "2"]
    )
    assert drawn.exit_code == 0, drawn.output
