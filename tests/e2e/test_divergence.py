"""A model that runs away is a result: status, reason and rows are kept, and a grid goes on."""

import re

import pytest
import torch
from safetensors.torch import load_file

import fedgm
from fedgm.running import one_run
from tests.conftest import quick
from tests.e2e.commands import TINY, read_summary, rows, run_folder

# eta=500 is wrong enough to reach losses of 4e5, but a network of group norms and ReLU dies before it
# overflows, and its loss comes back: hence eval.loss_limit. A million overflows in round 3.
RUN = (*TINY, "algorithm=fedsgd", "algorithm.eta=1e6", "eval.loss_limit=null", "rounds=6")


@pytest.mark.parametrize("evaluated", [1, 6])
def test_a_loss_above_the_limit_ends_the_run_whether_it_is_evaluated_or_not(tmp_path, evaluated):
    run = [*TINY, "algorithm=fedsgd", "algorithm.eta=500", "rounds=6", f"eval.every={evaluated}"]
    outcome = fedgm.run([*run, f"output_dir={tmp_path}"])
    assert outcome.status == "diverged"
    where = "(train|test)/loss" if evaluated == 1 else "local/loss"
    assert re.fullmatch(
        rf"{where} is \S+ in round \d, above eval.loss_limit=10000", outcome.summary["reason"]
    )
    assert 1 <= len(rows(tmp_path)) < 6
    assert is_finite(tmp_path)


def test_without_a_limit_the_same_run_goes_on(tmp_path):
    run = [*TINY, "algorithm=fedsgd", "algorithm.eta=500", "rounds=6", "eval.loss_limit=null"]
    assert fedgm.run([*run, f"output_dir={tmp_path}"]).status == "finished"


def is_finite(home):
    model = load_file(run_folder(home) / "model.safetensors")
    return all(torch.isfinite(tensor).all() for tensor in model.values())


def test_a_loss_that_is_no_number_ends_the_run_with_its_round(tmp_path, capsys):
    outcome = fedgm.run([*RUN, f"output_dir={tmp_path}"])
    assert outcome.status == "diverged"
    match = re.fullmatch(r"(train|test)/loss became (nan|inf) in round (\d)", outcome.summary["reason"])
    assert match is not None
    found = rows(tmp_path)
    assert [row["round"] for row in found] == list(range(1, int(match[3]) + 1))
    assert 1 < len(found) < 6
    assert found[-1]["train/loss"] is None
    assert found[0]["test/loss"] > 1e6
    assert is_finite(tmp_path)
    assert (outcome.folder / "curves.png").stat().st_size > 10_000
    assert not (outcome.folder / "checkpoints").exists()
    assert f"diverged: {outcome.summary['reason']} after {len(found)} of 6 rounds" in words(capsys)

    again = fedgm.run([*RUN, f"output_dir={tmp_path}"])
    assert again.summary == outcome.summary
    assert "already done" in words(capsys)


@pytest.mark.parametrize("workers", quick([1, 2], 2))
def test_an_update_that_is_no_number_leaves_the_model_of_the_round_before(commands, tmp_path, workers):
    home = tmp_path / "out"
    command = commands.run(home, *TINY, "rounds=6", "local.lr=1e30", f"trainer.workers={workers}")
    assert command.code == 0, command.text
    summary = read_summary(home)
    assert summary["status"] == "diverged"
    assert re.fullmatch(r"the update of client [\d, ]+ became non-finite in round 1", summary["reason"])
    assert summary["rounds_done"] == len(rows(home)) == 0
    assert summary["initial"]["test/loss"] == pytest.approx(2.3, abs=0.2)
    assert is_finite(home)
    assert "Traceback" not in command.text


@pytest.mark.slow
def test_a_multirun_goes_on_and_counts_it_as_a_result(commands, tmp_path):
    command = commands.run(tmp_path / "out", "-m", *RUN, "algorithm.eta=1e6,1.0")
    assert command.code == 0, command.text
    found = sorted((tmp_path / "out").glob("*/*/seed=0/summary.json"))
    statuses = {re.search(r"eta=([\d.]+)", str(path))[1]: path.read_text() for path in found}
    assert '"status": "diverged"' in statuses["1000000"]
    assert '"status": "finished"' in statuses["1"]
    table = [line for line in command.text.splitlines() if line.startswith("│ algorithm.eta=")]
    assert [line.split("│")[2].strip() for line in table] == ["diverged", "finished"]


def words(capsys):
    return " ".join(capsys.readouterr().out.split())


def test_a_diverged_run_that_was_stopped_before_its_summary_is_still_diverged(tmp_path, monkeypatch):
    """The row and the checkpoint of the last round are there; what it says must be, too."""
    run = [*TINY, "algorithm=fedsgd", "algorithm.eta=500", "rounds=6", f"output_dir={tmp_path}"]

    def interrupted(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(one_run, "store_model", interrupted)
        with pytest.raises(KeyboardInterrupt):
            fedgm.run(run)
    before = rows(tmp_path)
    assert read_summary(tmp_path)["status"] == "stopped"
    outcome = fedgm.run(run)
    assert outcome.status == "diverged"
    assert "above eval.loss_limit" in outcome.summary["reason"]
    assert rows(tmp_path) == before
