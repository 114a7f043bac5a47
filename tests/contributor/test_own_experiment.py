"""An experiment in a folder of one's own: run, drawn and continued by `fedgm reproduce`, like a figure."""

import json

import pytest
from click.testing import CliRunner

from fedgm.commands import main
from fedgm.results.find import below

YAML = """\
# @package _global_
# FedAvg against FedAvgM on a few synthetic images.
name: mine
figure:
  title: Mine
  lines:
    - {key: fedavg, name: FedAvg, overrides: algorithm=fedavg}
    - {key: fedavgm, name: FedAvgM, overrides: algorithm=fedavgm}
"""
SMALL = [
    "data.train_samples=200", "data.test_samples=20", "eval.train_samples=20", "clients.count=10",
    "clients.per_round=2", "local.unit=steps", "local.epochs=1", "local.batch_size=10", "track=none",
    "rounds=2",
]  # fmt: skip


def reproduce(tmp_path, *words):
    folder = tmp_path / "my conf"  # a blank in it must survive Hydra's grammar
    (folder / "experiment").mkdir(parents=True, exist_ok=True)
    (folder / "experiment" / "mine.yaml").write_text(YAML)
    options = ["--config-dir", str(folder), "--profile", "tiny", "--output-dir", str(tmp_path / "outputs")]
    return CliRunner().invoke(main, ["reproduce", *words, *options, "--workers", "1", *SMALL])


@pytest.mark.slow
def test_its_lines_are_run_and_drawn_and_no_claim_is_judged(tmp_path):
    page = tmp_path / "page.md"
    result = reproduce(tmp_path, "mine", "--seeds", "0,", "--report", str(page))
    assert result.exit_code == 0, result.output
    runs = below(tmp_path / "outputs" / "mine")
    assert sorted((run.facts["algorithm"], run.status) for run in runs) == [
        ("fedavg", "finished"), ("fedavgm", "finished"),
    ]  # fmt: skip
    [path] = (tmp_path / "outputs" / "figures").glob("*/mine/verdict.json")
    assert (path.parent / "mine.png").read_bytes().startswith(b"\x89PNG")
    assert "searchpath" not in str(path)
    verdict = json.loads(path.read_text())
    assert (verdict["figure"], verdict["name"], verdict["claims"]) == ("mine", "mine", [])
    states = {line["seeds"]["0"] for line in verdict["lines"]}  # two rounds teach hardly anything
    assert states <= {"finished", "near chance"}
    text = page.read_text()
    assert "## Mine\n" in text
    assert "| FedAvg | " in text
    again = reproduce(tmp_path, "mine", "--seeds", "0,")
    assert again.exit_code == 0
    assert "runs to do" not in again.output


def test_a_name_that_is_nowhere_is_refused_with_those_that_are(tmp_path):
    result = reproduce(tmp_path, "mime")
    assert result.exit_code == 2
    assert "+experiment=mime: expected one of" in result.output
    assert "mine" in result.output
