"""stop_after: a run paused at any rounds and continued is a run that was never paused."""

import json

import pytest

import fedgm
from fedgm.results import rows
from tests.e2e.commands import result, run_folder

SMALL = [
    "profile=tiny", "data.train_samples=300", "data.test_samples=20", "eval.train_samples=20",
    "clients.count=12", "clients.per_round=3", "local.epochs=1", "rounds=9", "eval.every=4",
    "checkpoint.every=4", "trainer.workers=1",
    "track.mode=disabled",
]  # fmt: skip
MODES = {
    "ideal": ["schedule=multistage"],
    "autonomous": ["participation=autonomous", "participation.delay=3"],
    "current": ["participation=autonomous_current"],
    "event": ["participation=event", "participation.concurrency=5"],
    "client states": ["client=scaffold", "participation=autonomous"],
    "client states, event": ["client=scaffold", "participation=event", "participation.concurrency=5"],
    "last updates": ["client=mifa", "participation=autonomous", "participation.delay=3"],
    "last updates, event": ["client=mifa", "participation=event", "participation.concurrency=5"],
}


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_paused_at_three_rounds_and_continued_equals_never_paused(mode, tmp_path):
    words = [*SMALL, *MODES[mode]]
    for last in (1, 4, 6):
        paused = fedgm.run([*words, f"output_dir={tmp_path / 'paused'}", f"stop_after={last}"])
        assert (paused.status, paused.summary["rounds_done"]) == ("paused", last)
        assert not (paused.folder / "model.safetensors").exists()
    measured = [
        row["round"] for row in rows.read(paused.folder / "metrics.jsonl") if row["test/acc"] is not None
    ]
    assert measured == [4]  # a pause adds no evaluation
    ended = fedgm.run([*words, f"output_dir={tmp_path / 'paused'}"])
    assert (ended.status, ended.folder) == ("finished", paused.folder)
    fedgm.run([*words, f"output_dir={tmp_path / 'whole'}"])
    assert result(tmp_path / "paused") == result(tmp_path / "whole")


def test_a_pause_that_lies_behind_or_beyond_changes_nothing(tmp_path):
    words = [*SMALL, f"output_dir={tmp_path}"]
    fedgm.run([*words, "stop_after=5"])
    before = (run_folder(tmp_path) / "metrics.jsonl").read_bytes()
    again = fedgm.run([*words, "stop_after=3"])
    assert (again.status, again.summary["rounds_done"]) == ("paused", 5)
    assert (run_folder(tmp_path) / "metrics.jsonl").read_bytes() == before
    assert fedgm.run([*words, "stop_after=700"]).status == "finished"
    summary = json.loads((run_folder(tmp_path) / "summary.json").read_text())
    assert (summary["rounds"], summary["rounds_done"], summary["status"]) == (9, 9, "finished")


def test_a_pause_before_the_first_round_is_refused(tmp_path):
    with pytest.raises(fedgm.errors.ConfigError, match="stop_after=0"):
        fedgm.run([*SMALL, f"output_dir={tmp_path}", "stop_after=0"])


@pytest.mark.slow
def test_a_pause_is_a_good_end_of_the_command(commands, tmp_path):
    paused = commands.run(tmp_path / "out", *SMALL, "rounds=3", "stop_after=2")
    assert paused.code == 0, paused.text
    assert "paused after 2 of 3 rounds" in paused.words
    assert "a larger stop_after continues it" in paused.words
    ended = commands.run(tmp_path / "out", *SMALL, "rounds=3", "stop_after=3")
    assert ended.code == 0, ended.text
    assert "continuing after round 2" in ended.words
    assert "finished after 3 of 3 rounds" in ended.words
