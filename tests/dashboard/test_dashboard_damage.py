"""Folders that are empty, damaged, foreign or half-written: the page is made and says what it left out."""

import json

import pytest
from click.testing import CliRunner

from fedgm import commands as cli
from fedgm.dashboard import payload, render
from fedgm.dashboard.collect import Collection, Collector
from tests.dashboard.dashboard_runs import write_run


def page_of(path):
    values = payload.build(Collector([path]).collect(), "runs", lambda run: None)
    assert render.render(values).endswith("</html>\n")
    return values


def break_summary(folder):
    (folder / "summary.json").write_text('{"status": "fini')


def foreign_summary(folder):
    (folder / "summary.json").write_text('{"accuracy": 0.5}')


def list_summary(folder):
    (folder / "summary.json").write_text("[1, 2]")


def no_summary(folder):
    (folder / "summary.json").unlink()


def bare_rows(folder):
    (folder / "metrics.jsonl").write_text("5\n6\n")


def binary_rows(folder):
    (folder / "metrics.jsonl").write_bytes(b"\xff\xfe\x00\x01" * 50)


def unknown_status(folder):
    facts = json.loads((folder / "summary.json").read_text())
    (folder / "summary.json").write_text(json.dumps({**facts, "status": "<b>odd</b>"}))


def rows_are_a_folder(folder):
    (folder / "metrics.jsonl").unlink()
    (folder / "metrics.jsonl").mkdir()


@pytest.mark.parametrize(
    "damage",
    [
        break_summary, foreign_summary, list_summary, no_summary, bare_rows, binary_rows, unknown_status,
        rows_are_a_folder,
    ],
)  # fmt: skip
def test_a_damaged_run_is_named_and_the_others_stay(tmp_path, damage):
    write_run(tmp_path / "good")
    damage(write_run(tmp_path / "bad", eta=2.0))
    values = page_of(tmp_path)
    assert len(values["runs"]) == 1
    (note,) = values["notes"]
    assert note.endswith(f": {tmp_path.name}/bad")


def test_an_empty_folder_is_an_empty_page(tmp_path):
    values = page_of(tmp_path)
    assert (values["runs"], values["notes"]) == ([], [])


def test_runs_without_an_evaluation_are_in_the_table(tmp_path):
    write_run(tmp_path / "a", done=2)
    values = page_of(tmp_path)
    assert values["runs"][0]["points"] == 0
    assert values["notes"] == ["1 runs have no evaluation yet: they are in the table, not in the curves"]


def test_one_round_and_a_line_cut_off(tmp_path):
    folder = write_run(tmp_path / "a", rounds=1, every=1)
    assert page_of(tmp_path)["runs"][0]["points"] == 2  # the start and the round
    with (folder / "metrics.jsonl").open("a") as stream:
        stream.write('{"round": 2, "test/a')
    values = page_of(tmp_path)
    assert (values["runs"][0]["points"], values["runs"][0]["rounds_done"], values["notes"]) == (2, 1, [])


def test_values_that_are_no_numbers_are_gaps(tmp_path):
    folder = write_run(tmp_path / "a", rounds=4, every=1)
    text = '{"round": 5, "test/acc": null, "test/loss": 2.0, "train/acc": null}\n'
    with (folder / "metrics.jsonl").open("a") as stream:
        stream.write(text)
    assert page_of(tmp_path)["runs"][0]["points"] == 6


def test_a_config_that_cannot_be_read_leaves_the_curves(tmp_path):
    folder = write_run(tmp_path / "a")
    (folder / "config.yaml").write_text("a: [1, 2\n")
    values = page_of(tmp_path)
    assert values["runs"][0]["points"] == 21
    assert values["config"] == {}


def test_a_damaged_archive_is_named(tmp_path):
    head = json.dumps({"format": "fedgm results, version 1", "config": {}})
    (tmp_path / "cut.jsonl").write_text(head + '\n{"hash": "a')
    (tmp_path / "foreign.jsonl").write_text('{"a": 1}\n')
    (tmp_path / "odd.jsonl").write_text(head + "\n{}\n")
    notes = page_of(tmp_path)["notes"]
    assert [note.rpartition(": ")[2] for note in notes] == [
        f"{tmp_path.name}/cut.jsonl",
        f"{tmp_path.name}/odd.jsonl",
    ]


def test_a_note_is_said_once_with_a_count(tmp_path):
    for i in range(60):
        (tmp_path / f"{i:02}").mkdir()
        (tmp_path / f"{i:02}" / "summary.json").write_text("{}")
    place = tmp_path.name
    names = f"{place}/00, {place}/01, {place}/02 and 57 more"
    assert page_of(tmp_path)["notes"] == [f"summary.json is damaged (60): {names}"]


def test_many_notes_are_cut(tmp_path):
    values = payload.build(
        Collection([], {f"reason {i}": ["a"] for i in range(60)}), "runs", lambda run: None
    )
    assert (len(values["notes"]), values["notes"][-1]) == (41, "and 20 more")


def test_a_folder_that_is_not_there_is_refused():
    result = CliRunner().invoke(cli.main, ["dashboard", "nowhere"])
    assert result.exit_code == 2
    assert "nowhere: no such folder or file" in result.output
