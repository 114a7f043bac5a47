"""Thousands of runs, and runs of many rows: what is kept for the next command is what it would read."""

import json
import os
import tracemalloc

import pytest
from click.testing import CliRunner

from fedgm import commands, seals
from fedgm.results import find, index
from fedgm.results.columns import Rows
from fedgm.results.find import below, read_folder
from tests.dashboard.dashboard_runs import write_run
from tests.e2e.odd_process import drop_rights, restore_rights

ETAS = (1, 1.0, 0.5, 2.0)  # 1 and 1.0 are different words in a configuration, and the first is shared


@pytest.fixture
def home(tmp_path, monkeypatch):
    """Four runs that are done and one that was killed, and a cache that keeps even so few."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(index, "LEAST", 1)
    for number, eta in enumerate(ETAS):
        write_run(
            tmp_path / "runs" / str(number),
            seed=number,
            eta=eta,
            status="diverged" if eta == 2 else "finished",
        )
    write_run(tmp_path / "runs" / "killed", seed=9, status="running", done=3)
    return tmp_path / "runs"


def listed(home) -> str:
    done = CliRunner(env={"COLUMNS": "200"}).invoke(commands.main, ["list", str(home), "--sort", "seed"])
    assert done.exit_code == 0, done.output
    return done.output


def read_by(monkeypatch) -> list[str]:
    """The names of the folders that are read from now on."""
    names: list[str] = []
    original = find.read_folder

    def noted(folder, *more):
        names.append(folder.name)
        return original(folder, *more)

    monkeypatch.setattr(find, "read_folder", noted)
    return names


def test_a_second_list_is_the_same_and_reads_only_what_is_not_done(home, monkeypatch):
    first, names = listed(home), read_by(monkeypatch)
    assert listed(home) == first
    assert names == ["killed"]


def test_a_run_from_the_index_is_the_run_that_was_read(home):
    read = below(home, index=True)
    for one, other in zip(read, below(home, index=True), strict=True):
        assert repr((one.facts, one.config, one.is_sealed, one.folder)) == repr(
            (other.facts, other.config, other.is_sealed, other.folder)
        )
        assert one.key == other.key
        for column in ("test/acc", "test/loss", "server/eta"):
            assert one.score(column) == other.score(column)
            assert one.final(column) == other.final(column)
    assert len(other.evaluations) <= len(one.evaluations)


@pytest.mark.parametrize("file", ["summary.json", "config.yaml", "metrics.jsonl"])
def test_a_file_that_was_touched_is_read_again(home, monkeypatch, file):
    listed(home)
    path, names = home / "1" / file, read_by(monkeypatch)
    before = path.stat()
    path.write_bytes(path.read_bytes())
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))  # as a program does that hides a change
    listed(home)
    assert sorted(names) == ["1", "killed"]


def test_an_index_that_was_changed_or_is_of_another_program_is_not_used(home, monkeypatch):
    first = listed(home)
    (kept,) = (home.parent / "cache").rglob("*.json")
    text = kept.read_bytes()
    names = read_by(monkeypatch)
    kept.write_bytes(text.replace(b"finished", b"diverged"))
    assert listed(home) == first
    assert len(names) == 5
    kept.write_bytes(b"[]\n" + text)
    assert listed(home) == first
    assert len(names) == 10
    monkeypatch.setattr(index, "_program", lambda: "another")
    listed(home)
    assert len(names) == 15


def test_a_cache_that_cannot_be_written_costs_nothing(home, monkeypatch):
    (home.parent / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(home.parent / "file"))
    assert "5 runs" in listed(home)


def test_a_long_list_is_as_wide_as_the_screen_and_cuts_nothing(home):
    write_run(home / "long", seed=5, name="n" * 60, algorithm="a" * 60)
    narrow = CliRunner(env={"COLUMNS": "100"}).invoke(commands.main, ["list", str(home)]).output
    head = narrow.splitlines()[1]
    assert head.split()[-1] == "size"
    assert max(map(len, narrow.splitlines()[:-1])) == len(head)  # wider than the screen, rather than cut
    assert "a" * 20 in narrow


# What may not be read ------------------------------------------------------------------------------------


@pytest.mark.parametrize("what", ["summary.json", "config.yaml", "metrics.jsonl", "."])
def test_one_run_that_may_not_be_read_does_not_end_the_list(home, what):
    (home / "1" / what).chmod(0)
    rights = drop_rights()
    try:
        if what != "." and os.access(home / "1" / what, os.R_OK, effective_ids=True):
            pytest.skip("this user may read everything")
        with pytest.warns(UserWarning, match=r"left out: .*1: cannot be read \(.*Permission denied"):
            output = listed(home)
    finally:
        restore_rights(rights)
        (home / "1" / what).chmod(0o700)
    assert "4 runs" in output


# Rows ----------------------------------------------------------------------------------------------------


def test_rows_by_column_are_the_rows():
    rows = [
        {"round": 1, "test/acc": 0.5, "bytes/up": 2**62},
        {"round": 2, "test/acc": None, "bytes/up": 3},
        {"round": 3, "test/acc": 1, "bytes/up": None},
        {"round": 4, "clock/time": 0.1},
    ]
    kept = Rows(rows)
    assert repr(list(kept)) == repr(rows)
    assert repr([kept[place] for place in range(4)]) == repr(rows)
    assert (kept[-1], kept[1:3], len(kept)) == (rows[-1], rows[1:3], 4)
    assert kept == rows != Rows(rows[:3])
    assert kept.column("test/acc") == [0.5, None, 1, None]
    with pytest.raises(IndexError):
        kept[4]


@pytest.mark.parametrize("all_rows", [False, True])
def test_rows_are_read_in_less_memory_than_the_file_has(tmp_path, all_rows):
    folder = write_run(tmp_path / "run", rounds=5000, every=1)
    size = (folder / "metrics.jsonl").stat().st_size
    read_folder(folder)  # what is imported and compiled on the way
    tracemalloc.start()
    run = read_folder(folder, all_rows)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert run is not None
    assert len(run.evaluations) == 5000
    assert peak < 1.2 * size


def test_a_garbled_line_ends_the_rows(tmp_path):
    folder = write_run(tmp_path / "run", rounds=9, every=1)
    lines = (folder / "metrics.jsonl").read_text().splitlines(keepends=True)
    (folder / "metrics.jsonl").write_text("".join([*lines[:4], lines[4][:20], *lines[5:]]))
    run = read_folder(folder)
    assert run is not None
    assert run.rounds_done == 4


def test_a_seal_is_still_checked(home):
    """A run that the index knows as finished has another end after its rows were changed."""
    folder = home / "0"
    summary = json.loads((folder / "summary.json").read_text())
    summary["digests"] = seals.checksums(folder, ["config.yaml", "metrics.jsonl"])
    seals.write_json(folder / "summary.json", summary)
    assert "damaged" not in listed(home)
    text = (folder / "metrics.jsonl").read_text()
    (folder / "metrics.jsonl").write_text(text.replace('"round": 1,', '"round": 1 ,'))
    assert "damaged" in listed(home)


def test_a_file_of_another_size_is_damaged_without_being_read(tmp_path, monkeypatch):
    (tmp_path / "model.safetensors").write_bytes(b"model")
    summary = {"digests": seals.checksums(tmp_path, ["model.safetensors"])}
    assert seals.changed(tmp_path, summary, ["model.safetensors"]) == []
    with (tmp_path / "model.safetensors").open("r+b") as file:
        file.truncate(40 * 2**30)  # sparse
    monkeypatch.setattr(seals.hashlib, "file_digest", lambda *_: pytest.fail("it was read"))
    assert seals.changed(tmp_path, summary, ["model.safetensors"]) == ["model.safetensors"]


def test_checksums_of_older_summaries_have_no_sizes(tmp_path):
    (tmp_path / "config.yaml").write_bytes(b"seed: 0")
    (now,) = seals.checksums(tmp_path, ["config.yaml"]).values()
    size, older = now.split(" ")
    assert size == "7"
    assert seals.changed(tmp_path, {"digests": {"config.yaml": older}}, ["config.yaml"]) == []
    (tmp_path / "config.yaml").write_bytes(b"seed: 1")
    assert seals.changed(tmp_path, {"digests": {"config.yaml": older}}, ["config.yaml"]) == ["config.yaml"]
