"""Run folders with any JSON in them: read as damaged, and one bad folder never stops the others."""

import json
import shutil
from io import StringIO

import pytest

import fedgm
from fedgm.lock import is_alive
from fedgm.results import rows, summary
from fedgm.results.find import below, read_folder
from fedgm.running import terminal
from fedgm.screen import Screen

ANY = [
    "[]",
    "{}",
    "null",
    "3",
    '"word"',
    "true",
    "",
    "{",
    "[" * 100_000,
    "NaN",
    "\x00",
    '{"status": ["finished"]}',
]
GOOD = {
    "status": "finished", "name": "run", "algorithm": "fedgm", "schedule": "constant", "seed": 0, "rounds": 2,
    "participation": "ideal", "profile": "tiny", "model": "resnet", "data": "synthetic", "hash": "abc",
    "rounds_done": 2, "stages": [{"rounds": 2, "eta": 1.0}], "final": {"round": 2, "test/acc": 0.5},
    "best": None, "last10": None, "initial": {"train/loss": 2.3}, "versions": {"torch": "2"},
    "commit": None, "seconds": 1.5,
}  # fmt: skip


def write(folder, content=GOOD):
    folder.mkdir(parents=True)
    (folder / "summary.json").write_text(content if isinstance(content, str) else json.dumps(content))
    lines = [json.dumps({"round": t, "test/acc": 0.1 * t, "cohort/steps": 3, "bytes/up": 8}) for t in (1, 2)]
    (folder / "metrics.jsonl").write_text("".join(line + "\n" for line in lines))
    (folder / "config.yaml").write_text("algorithm: {eta: 1.0}\n")
    return folder


def others():
    """The summary with one value of another type, for every key."""
    values = [[], {}, "word", 3, True, -1, 1e400, {"a": []}, [1], ["x"], [{}], {"round": "x"}]
    return [
        {**GOOD, key: value}
        for key in GOOD
        for value in values
        if not isinstance(value, type(GOOD[key])) and GOOD[key] is not None and (key, value) != ("seconds", 3)
        and (key, value) != ("seconds", -1)
    ]  # fmt: skip


@pytest.mark.parametrize("text", ANY)
def test_a_summary_of_any_json_is_damaged(tmp_path, text):
    folder = write(tmp_path / "run", text)
    assert summary.read(folder) == {}
    assert summary.is_damaged(folder)
    assert read_folder(folder) is None


def test_a_summary_with_a_value_of_another_type_is_damaged(tmp_path):
    folder = write(tmp_path / "run")
    assert summary.read(folder) == GOOD
    assert not summary.is_damaged(folder)
    cases = others()
    assert len(cases) > 100
    for content in cases:
        (folder / "summary.json").write_text(json.dumps(content))
        assert summary.read(folder) == {}, content


def test_a_summary_without_a_key_is_damaged_for_its_own_command(tmp_path):
    folder = write(tmp_path / "run")
    for key in ("status", "name", "algorithm", "seed", "rounds", "rounds_done", "seconds", "final", "best"):
        (folder / "summary.json").write_text(json.dumps({k: v for k, v in GOOD.items() if k != key}))
        assert summary.is_damaged(folder), key
        assert summary.complete(folder) == {}


def test_a_reason_is_shown_as_it_is(tmp_path):
    out = StringIO()
    terminal.closing(Screen(file=out, width=200), {**GOOD, "reason": "[/x] [bold]"}, tmp_path)
    assert "finished: [/x] [bold] after 2 of 2 rounds" in out.getvalue()


def test_a_run_that_diverged_ends_at_chance_in_the_table_that_it_prints(tmp_path):
    out, last = StringIO(), {"round": 2, "train/loss": 9.0, "test/acc": 0.42}
    ended = {**GOOD, "status": "diverged", "classes": 4, "final": last, "last10": last, "best": last}
    terminal.closing(Screen(file=out, width=200), ended, tmp_path)
    lines = {line.split("│")[1].strip(): line for line in out.getvalue().splitlines() if line.count("│") > 4}
    assert "25.00 %" in lines["final"]
    assert "42.00" not in lines["final"]
    assert "25.00 %" in lines["mean of last 10"]
    assert "42.00 %" in lines["best"]


@pytest.mark.parametrize("damage", [{"metrics": [3]}, {"metrics": [{"no": 1}]}, {"metrics": []}])
def test_a_damaged_scoreboard_is_a_damaged_summary(tmp_path, damage):
    folder = write(tmp_path / "run", {**GOOD, **damage})
    assert summary.read(folder) == {}


def row(**values):
    return json.dumps({"round": 1, **values})


@pytest.mark.parametrize(
    "line",
    [*ANY, row(x="high"), row(x=[1]), row(x=True), row(x=float("inf")), row(x=float("nan")),
     row(x=10**400), '{"round": true}', '{"round": 2}', '{"round": "1"}', '{"round": 1'],
)  # fmt: skip
def test_a_row_of_any_json_ends_the_rows(tmp_path, line):
    path = tmp_path / "metrics.jsonl"
    path.write_text(line + "\n")
    assert rows.read(path) == []
    path.write_text(row(x=1.5) + "\n" + line + "\n")
    assert [row["round"] for row in rows.read(path)] in ([1], [1, 2])  # '{"round": 2}' is a row there


def test_rows_of_bytes_of_a_folder_or_of_nothing(tmp_path):
    (tmp_path / "bytes").write_bytes(b"\xff\xfe\n")
    (tmp_path / "folder").mkdir()
    for name in ("bytes", "folder", "absent"):
        assert rows.read(tmp_path / name) == []


@pytest.mark.parametrize("text", [*ANY, '{"pid": [], "host": 3}', '{"pid": 1e999}', f'{{"pid": {10**30}}}'])
def test_a_damaged_lock_belongs_to_nobody_or_to_another_machine(tmp_path, text):
    import socket

    (tmp_path / "lock").write_text(text)
    assert is_alive(tmp_path) in (True, False)
    (tmp_path / "lock").write_text(json.dumps({"host": socket.gethostname(), "pid": "x"}))
    assert not is_alive(tmp_path)


BOMB = "a0: &a0 [x, x]\n" + "".join(f"a{n + 1}: &a{n + 1} {{a: *a{n}, b: *a{n}}}\n" for n in range(40))


@pytest.mark.parametrize("text", [BOMB, "[" * 5000, "- list", "a: [", "!!python/name:os.system", ""])
def test_a_damaged_configuration_leaves_a_record_without_one(tmp_path, text):
    folder = write(tmp_path / "run")
    (folder / "config.yaml").write_text(text)
    run = read_folder(folder)
    assert run is not None
    assert run.config == {}
    assert len(run.evaluations) == 2


def test_one_bad_folder_never_stops_the_others(tmp_path):
    write(tmp_path / "a" / "good")
    for number, text in enumerate(ANY):
        write(tmp_path / "b" / str(number), text)
    gone = write(tmp_path / "c" / "gone", {**GOOD, "seed": 1})
    shutil.rmtree(gone / "metrics.jsonl", ignore_errors=True)
    (gone / "metrics.jsonl").unlink()
    with pytest.warns(UserWarning, match=r"left out: .*/b/0, .*: summary\.json is damaged"):
        runs = below(tmp_path)
    assert {run.folder.name: run.status for run in runs} == {"good": "finished", "gone": "damaged"}
    assert not next(run for run in runs if run.status == "damaged").is_done
    with pytest.warns(UserWarning, match=r"summary\.json is damaged"):
        frame = fedgm.load_runs(tmp_path)
    assert frame["round"].tolist() == [1, 2]
