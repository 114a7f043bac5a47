"""`fedgm list`, `show`, `compare`, `load_model`, on stored runs."""

import json
import os
import re
import shutil
from dataclasses import replace

import pytest
import torch
from click.testing import CliRunner

import fedgm
from fedgm import commands as cli
from fedgm.errors import FedGMError
from fedgm.results import choose, labels
from fedgm.results.find import below, find
from fedgm.study import compare
from tests.e2e.odd_process import drop_rights, restore_rights

TINY = [
    "profile=tiny", "rounds=2", "track.mode=disabled", "trainer.workers=1", "data.train_samples=200",
    "data.test_samples=20", "eval.train_samples=20", "clients.count=10", "clients.per_round=2",
    "local.unit=steps", "local.epochs=1", "data.source.classes=7",
]  # fmt: skip


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    home = tmp_path_factory.mktemp("outputs")
    return fedgm.run([*TINY, "algorithm.eta=2", f"output_dir={home}"])


def copy(trained, home, seed=0, mark="a", status="finished", values=None, **config):
    """The trained run's folder again, as another run with another configuration and made-up accuracies."""
    folder = home / "run" / f"{mark}-00000000" / f"seed={seed}"
    shutil.copytree(trained.folder, folder)
    facts = json.loads((folder / "summary.json").read_text())
    facts |= {"hash": mark * 8, "seed": seed, "status": status}
    facts["algorithm"] = config.get("algorithm.name", "fedgm")
    del facts["digests"], facts["seal"]  # of what is replaced below
    text = (folder / "config.yaml").read_text().replace("seed: 0\n", f"seed: {seed}\n")
    for key, value in config.items():
        group, last = key.split(".")
        head, block = text.split(f"\n{group}:\n", 1)
        before, after = block.split(f"  {last}: ", 1)
        text = f"{head}\n{group}:\n{before}  {last}: {value}\n" + after.split("\n", 1)[1]
    (folder / "config.yaml").write_text(text)
    (folder / "summary.json").write_text(json.dumps(facts))
    if values:
        rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
        rows = [{**rows[0], "round": i + 1, "test/acc": v} for i, v in enumerate(values)]
        (folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


@pytest.fixture
def home(trained, tmp_path):
    for seed in (0, 1):
        copy(trained, tmp_path, seed, "a", values=[0.2, 0.4 + 0.02 * seed])
        copy(
            trained,
            tmp_path,
            seed,
            "b",
            values=[0.1, 0.3],
            **{"algorithm.name": "fedavg", "algorithm.eta": 1.0},
        )
    copy(trained, tmp_path, 0, "c", "failed", values=[0.1], **{"algorithm.eta": 5.0})
    return tmp_path


def call(*words, **more):
    return CliRunner(env={"COLUMNS": "160"}).invoke(cli.main, [str(word) for word in words], **more)


def test_labels_say_what_differs_in_words(home):
    named = labels.lines(below(home))
    assert list(named) == ["FedGM, eta 2", "FedAvg, eta 1", "FedGM, eta 5"]
    assert [run.facts["seed"] for run in named["FedGM, eta 2"]] == [0, 1]


def test_equal_labels_are_told_apart_by_the_hash(trained, tmp_path):
    for mark, layout in (("a", "true"), ("b", "false")):  # a key that no label shows
        copy(trained, tmp_path, 0, mark, **{"model.channels_last": layout})
    first, second = (run.key[0][:6] for run in below(tmp_path))
    assert first != second
    assert list(labels.lines(below(tmp_path))) == [f"FedGM [{first}]", f"FedGM [{second}]"]


def test_of_two_places_the_copy_that_is_done_is_found_in_either_order(trained, tmp_path):
    places = [tmp_path / "paused", tmp_path / "done"]
    for place, status in zip(places, ("paused", "finished"), strict=True):
        copy(trained, place, status=status)
    for order in (places, places[::-1]):
        assert [run.status for run in find(order)] == ["finished"]


def test_list_filters_and_sorts(home):
    result = call("list", home, "--sort", "-test/acc")
    assert result.exit_code == 0, result.output
    lines_ = [line for line in result.output.splitlines() if "Fed" in line]
    assert len(lines_) == 5
    assert "FedGM, eta 2" in lines_[0]
    assert "31.00 %" in lines_[0]
    assert "5 runs" in result.output
    assert len(choose.matching(below(home), ["algorithm=fedgm", "eta>1", "status=finished"])) == 2
    assert [r.facts["seed"] for r in choose.order(below(home), "-seed")][:2] == [1, 1]
    refused = call("list", home, "--filter", "algoritm=fedgm")
    assert refused.exit_code == 2
    assert "Try algorithm" in refused.output


def test_prune_asks_first_and_keeps_finished_runs(home):
    assert "nothing deleted" in call("list", home, "--prune", input="n\n").output
    assert len(below(home)) == 5
    result = call("list", home, "--prune", input="y\n")
    assert "1 runs deleted" in result.output
    assert [run.status for run in below(home)] == ["finished"] * 4


def test_compare_has_mean_deviation_and_rounds_to_a_value(home):
    rows = compare.rows(labels.lines(below(home)), target=0.35)
    by_line = {row["line"]: row for row in rows}
    assert by_line["FedGM, eta 2"]["test/acc, %"] == "30.50 ± 0.71"  # means 30 and 31
    assert by_line["FedGM, eta 2"]["rounds to 0.35"] == "2"
    assert by_line["FedAvg, eta 1"]["rounds to 0.35"] == "never"
    assert by_line["FedGM, eta 5"]["ended"] == "1 not done"


def test_the_data_write_their_number_of_classes_down(trained, home):
    assert trained.summary["classes"] == 7
    assert {run.classes for run in below(home)} == {7}


def test_a_diverged_run_is_compared_with_what_its_user_is_left_with(home, trained):
    copy(trained, home, 0, "d", "diverged", values=[0.5, 0.5], **{"algorithm.eta": 9.0})
    by_line = {row["line"]: row for row in compare.rows(labels.lines(below(home)))}
    assert by_line["FedGM, eta 9"]["test/acc, %"] == "14.29"  # chance of seven classes, not 50
    assert by_line["FedGM, eta 9"]["ended"] == "1 diverged"


@pytest.mark.parametrize(("kind", "start"), [("png", b"\x89PNG"), ("pdf", b"%PDF"), ("svg", b"<?xml")])
def test_compare_draws_in_three_formats(home, tmp_path, kind, start):
    out = tmp_path / f"c.{kind}"
    result = call("compare", home, "--out", out, "--latex")
    assert result.exit_code == 0, result.output
    assert out.read_bytes().startswith(start)
    assert r"FedGM, eta 2 & 0, 1 &" in result.output
    assert r"$\pm$" in result.output
    once = out.read_bytes()
    call("compare", home, "--out", out)
    assert out.read_bytes() == once


def test_a_picture_of_another_kind_is_refused(home):
    result = call("compare", home, "--out", "c.doc")
    assert result.exit_code == 2
    assert "a name that ends with .png, .pdf or .svg" in result.output
    assert "contains no run" in call("compare", home / "nowhere").output


def test_a_task_without_accuracy_is_compared_by_its_loss(home):
    loss = {"metric": "test/loss", "metrics": [{"name": "loss", "label": "loss"}]}
    runs = []
    for run in below(home):
        kept = [{k: v for k, v in row.items() if not k.endswith("/acc")} for row in run.evaluations]
        measured = [{**row, "test/loss": 3.0 / (row["round"] or 1)} for row in kept]
        runs.append(replace(run, facts={**run.facts, **loss}, evaluations=measured))
    assert choose.main_metric(runs) == "test/loss"
    grouped = labels.lines(runs)
    rows = compare.rows(grouped, target=1.6)
    assert (rows[0]["test/loss"], rows[0]["rounds to 1.6"]) == ("2.2500 ± 0.0000", "2")
    figure = compare.picture(grouped)
    assert [axes.get_ylabel() for axes in figure.axes] == ["training loss", "test loss"]


def test_show_has_numbers_configuration_and_files(home):
    folder = home / "run" / "a-00000000" / "seed=0"
    result = call("show", folder)
    assert result.exit_code == 0, result.output
    for words in (
        "FedGM, eta 2",
        "finished after 2 of 2 rounds",
        "test/acc",
        "40.00 %",
        "algorithm.eta",
        "model.safetensors",
    ):
        assert words in result.output
    refused = call("show", home)
    assert refused.exit_code == 2
    assert "is not the folder of one run (5 below it)" in refused.output


def test_the_trained_module_comes_back(trained, tmp_path):
    module = fedgm.load_model(trained.folder)
    assert not module.training
    with torch.no_grad():
        assert module(torch.zeros(2, 3, 8, 8)).shape == (2, 7)  # 7 classes, which only the weights say
    from safetensors.torch import load_file

    for name, tensor in load_file(trained.folder / "model.safetensors").items():
        assert torch.equal(module.state_dict()[name], tensor)
    with pytest.raises(FedGMError, match=r"there is no config\.yaml"):
        fedgm.load_model(tmp_path)
    (tmp_path / "config.yaml").write_text((trained.folder / "config.yaml").read_text())
    with pytest.raises(FedGMError, match=r"no model\.safetensors"):
        fedgm.load_model(tmp_path)


def test_a_model_whose_files_may_not_be_read_is_refused(trained, tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(trained.folder, folder)
    (folder / "config.yaml").chmod(0)
    rights = drop_rights()
    try:
        if os.access(folder / "config.yaml", os.R_OK, effective_ids=True):
            pytest.skip("this user may read everything")
        with pytest.raises(FedGMError, match=r"config\.yaml: Permission denied\. Give read permission"):
            fedgm.load_model(folder)
    finally:
        restore_rights(rights)


def test_load_runs_has_the_configuration_as_columns(home):
    frame = fedgm.load_runs(home)
    assert sorted(frame["algorithm.eta"].unique()) == [1.0, 2.0, 5.0]
    assert set(frame["data.partition"]) == {"dirichlet"}
    assert "algorithm.eta" not in fedgm.load_runs(home, config=False)
    assert len(frame) == 9


def test_sync_needs_a_key_and_a_run(home, tmp_path, monkeypatch):
    for name in ("WANDB_API_KEY", "WANDB_MODE", "WANDB_SWEEP_ID"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    result = call("sync", home)
    assert result.exit_code == 2
    assert "no W&B key here. Try `wandb login`" in result.output
    assert "no finished run" in call("sync", home, "--filter", "status=failed").output


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        ("list", "docs/results/small"), ("compare", "docs/results/small"), ("show", "{run}"),
        ("sweep", "fedgm_grid", "--stored", "docs/results", "--status"),
        ("reproduce", "fig1", "--stored", "--dry-run"), ("convert", "--list"), ("theory", "profile=tiny"),
    ],
    ids=lambda words: words[0],
)  # fmt: skip
def test_tables_fit_80_columns_and_nothing_is_cut(trained, tmp_path, monkeypatch, words):
    monkeypatch.chdir(tmp_path)  # where there is no docs/results they are those of the package
    typed = [word.format(run=trained.folder) for word in words]
    done = CliRunner().invoke(cli.main, typed, env={"COLUMNS": "80"})
    assert done.exit_code == 0, done.output
    rows = [line for line in done.output.splitlines() if re.search("[│┃━─]|  ", line.strip())]
    assert rows
    assert [row for row in rows if len(row) > 80] == []
    assert "…" not in done.output


def test_runs_are_listed_by_what_tells_them_apart(trained, tmp_path):
    """Not by keys that one of them is too old to have, nor by those that follow another."""
    copy(trained, tmp_path, 0, "a", **{"data.alpha": 0.3, "data.min_samples": 2})
    folder = copy(trained, tmp_path, 0, "b", **{"data.alpha": 0.7, "data.min_samples": 3})
    text = (folder / "config.yaml").read_text()
    assert "  point: sent\n" in text
    (folder / "config.yaml").write_text(text.replace("  point: sent\n", ""))
    runs = below(tmp_path)
    assert labels.telling(runs) == ["data.alpha"]
    assert labels.differing(runs) == ["data.alpha", "data.min_samples"]
