"""Rows 1..t belong to checkpoint t, and both are on the disk before the next round begins."""

import json
import os
import shutil
from pathlib import Path

import pytest

import fedgm
from fedgm.config import stored
from fedgm.lightning import pl
from tests.conftest import quick
from tests.e2e.commands import TINY, result, rows, run_folder

RUN = (*TINY, "rounds=6", "clients.count=6", "local.unit=steps", "local.epochs=1")


@pytest.fixture(scope="module")
def never_stopped(tmp_path_factory):
    home = tmp_path_factory.mktemp("reference")
    fedgm.run([*RUN, f"output_dir={home}"])
    return result(home)


@pytest.fixture(scope="module")
def paused(tmp_path_factory):
    """After round 4, with the checkpoints of rounds 3 and 4; to be copied, not used."""
    home = tmp_path_factory.mktemp("paused")
    fedgm.run([*RUN, "stop_after=4", f"output_dir={home}"])
    return home


def garble(lines):
    return [*lines[:2], b"\xff\xfe{", *lines[3:]]


def tamper(lines):
    row = json.loads(lines[0])
    return [json.dumps({**row, "local/loss": row["local/loss"] + 1}).encode(), *lines[1:]]


# damage to the lines of rounds 1 to 4 -> the round that the run may continue after
DAMAGE = {
    "emptied": (lambda lines: [], 0),
    "deleted": (None, 0),
    "garbled": (garble, 0),
    "a number changed": (tamper, 0),
    "a line missing": (lambda lines: [lines[0], *lines[2:]], 0),
    "the last line missing": (lambda lines: lines[:3], 3),
    "a line twice": (lambda lines: [*lines[:3], lines[2]], 3),
    "a line twice at the end": (lambda lines: [*lines, lines[3]], 4),
    "a list instead of a row": (lambda lines: [*lines[:3], b"[4]"], 3),
    "a word instead of a number": (lambda lines: [*lines[:3], b'{"round": 4, "test/acc": "high"}'], 3),
}


@pytest.mark.parametrize(
    "damage", quick(DAMAGE, "deleted", "a number changed", "a line missing", "a line twice")
)
def test_no_gaps_and_no_double_rounds(paused, tmp_path, never_stopped, capsys, damage):
    home = shutil.copytree(paused, tmp_path / "out")
    path = run_folder(home) / "metrics.jsonl"
    change, done = DAMAGE[damage]
    if change is None:
        path.unlink()
    else:
        path.write_bytes(b"".join(line + b"\n" for line in change(path.read_bytes().splitlines())))
    fedgm.run([*RUN, f"output_dir={home}"])
    printed = capsys.readouterr().out
    assert ("starting from round 1" if done == 0 else f"continuing after round {done}\n") in printed
    assert ("is damaged (" in printed) == (done < 4)
    assert [row["round"] for row in rows(home)] == [1, 2, 3, 4, 5, 6]
    assert result(home) == never_stopped


class Disk:
    """What would be left after a power cut: content of files and names in folders when they were synced."""

    def __init__(self, monkeypatch):
        self.contents: dict[int, bytes] = {}  # by inode
        self.names: dict[Path, dict[str, int]] = {}  # of folders
        self._fsync = os.fsync
        monkeypatch.setattr(os, "fsync", self.fsync)

    def fsync(self, handle):
        self._fsync(handle)
        place, number = Path(f"/proc/self/fd/{handle}").readlink(), os.fstat(handle).st_ino
        if place.is_dir():
            self.names[place] = {entry.name: entry.inode() for entry in os.scandir(place)}
        else:
            self.contents[number] = place.read_bytes()

    def cut(self, folder):
        """The folder as a restarted machine finds it: what was not synced is gone, or an empty file."""
        kept = {path: self.names.get(path, {}) for path in [folder, *folder.rglob("*")] if path.is_dir()}
        shutil.rmtree(folder)
        self._restore(folder, kept)

    def _restore(self, place, kept):
        place.mkdir()
        for name, number in kept[place].items():
            if place / name in kept:
                self._restore(place / name, kept)
            else:
                (place / name).write_bytes(self.contents.get(number, b""))


class PowerCut(pl.Callback):
    """Ends the process in the middle of a round, before anything is written at its end."""

    def on_train_epoch_start(self, trainer, pl_module):
        if trainer.current_epoch == 3:
            raise RuntimeError("power cut")


PARTS = ["", "client=scaffold", "participation=autonomous participation.delay=3"]


@pytest.mark.parametrize("part", quick(PARTS, PARTS[1]))
def test_a_power_cut_loses_no_finished_round(tmp_path, monkeypatch, capsys, part):
    run = (*RUN, "clients.per_round=3", *part.split())
    disk = Disk(monkeypatch)
    out = tmp_path / "out"
    out.mkdir()
    disk.names[out] = {}
    with pytest.raises(RuntimeError, match="power cut"):
        fedgm.run([*run, f"output_dir={out}"], callbacks=[PowerCut()])
    disk.cut(out)
    capsys.readouterr()
    fedgm.run([*run, f"output_dir={out}"])
    printed = capsys.readouterr().out
    assert "continuing after round 3\n" in printed
    assert "damaged" not in printed
    fedgm.run([*run, f"output_dir={tmp_path / 'reference'}"])
    assert result(out) == result(tmp_path / "reference")


def test_a_power_cut_after_the_end_keeps_the_result(tmp_path, monkeypatch, never_stopped):
    disk = Disk(monkeypatch)
    out = tmp_path / "out"
    out.mkdir()
    disk.names[out] = {}
    fedgm.run([*RUN, f"output_dir={out}"])
    disk.cut(out)
    assert result(out) == never_stopped
    assert stored(run_folder(out)).rounds == 6  # config.yaml is whole, too
    assert fedgm.run([*RUN, f"output_dir={out}"]).status == "finished"


def test_without_sync_nothing_is_synced_and_the_run_is_the_same(tmp_path, monkeypatch, never_stopped):
    calls = []
    monkeypatch.setattr(os, "fsync", calls.append)
    fedgm.run([*RUN, "checkpoint.sync=false", f"output_dir={tmp_path}"])
    assert calls == []
    assert result(tmp_path) == never_stopped
