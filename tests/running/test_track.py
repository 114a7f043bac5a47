"""The run folder: which runs share one, what it is called, and files that are whole at every moment."""

import json
import os
import re
import threading
import time
from functools import cache

import pytest

from fedgm import config, files, lock
from fedgm.errors import FedGMError, RunLockedError
from fedgm.running import folder
from tests.waiting import until


def composed(*overrides: str):
    return config.compose(overrides)


@cache
def mark(*overrides: str) -> str:
    return folder.identity(composed(*overrides))


# Identity -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (["algorithm.eta=1"], ["algorithm.eta=1.0"]),
        (
            ["schedule=multistage", "schedule.etas=[2,1,0.5]"],
            ["schedule=multistage", "schedule.etas=[2.0,1.0,.5]"],
        ),
        (["algorithm.eta=1e-1"], ["algorithm.eta=0.1"]),
        (["seed=0"], ["seed=7"]),  # seeds have folders of their own below
        (["seed=0", "data.seed=3"], ["seed=1", "data.seed=3"]),
        (["output_dir=a"], ["output_dir=b"]),
        (["rerun=true"], []),
        (["track.mode=disabled", "track.project=x", "track.tags=[a]"], []),
        (["trainer.workers=1"], ["trainer.workers=2"]),
        (["checkpoint.every=7", "stop_after=3", "data.root=elsewhere"], []),  # no bit of a result follows
        (["paper_momentum.eta=3", "algorithm.eta=2"], ["algorithm.eta=2"]),  # only fills other keys
        (["algorithm=fedgm", "rounds=125"], ["rounds=125"]),
        (["local.lr=0.1", "clients.count=20"], ["clients.count=20", "local.lr=0.1"]),  # order
    ],
)
def test_the_same_run(one, other):
    assert mark(*one) == mark(*other)


@pytest.mark.parametrize(
    "override",
    [
        "algorithm.eta=1.5", "algorithm.beta=0.8", "algorithm.nu=0.8", "algorithm=fedavgm",
        "schedule=multistage", "clients.count=99", "clients.per_round=4", "clients.weights=samples",
        "local.epochs=2", "local.lr=0.02", "local.unit=steps", "local.batch_size=7",
        "local.optimizer=adamw", "local.momentum=0.5", "local.clip=1", "local.weight_decay=0.1",
        "data.alpha=0.3", "data.seed=0", "data.min_samples=9", "data.augment=flip", "data=synthetic",
        "model=resnet20", "profile=tiny", "rounds=70", "eval.every=7", "eval.train_samples=99",
        "trainer.threads=2", "trainer.precision=bf16-mixed", "name=mine",
        "model.channels_last=false", "data.partition=virtual",
    ],
)  # fmt: skip
def test_everything_else_tells_runs_apart(override):
    assert mark(override) != mark()


def test_a_split_that_follows_the_seed_is_no_fixed_split():
    assert mark("seed=3") != mark("seed=3", "data.seed=3")


def test_optimisers_that_were_not_chosen_say_nothing():
    assert mark("local.optimizers.adamw.lr=9") == mark()
    assert mark("local.optimizers.sgd.lr=9") != mark()


def test_a_run_keeps_the_folder_it_has(tmp_path):
    first = folder.locate(composed(f"output_dir={tmp_path}", "algorithm.eta=1"), ["algorithm.eta=1"])
    first.mkdir(parents=True)
    cfg = composed(f"output_dir={tmp_path}", "algorithm.eta=1.0", "local.lr=0.01", "seed=4")
    again = folder.locate(cfg, ["algorithm.eta=1.0", "local.lr=0.01", "seed=4"])
    assert again == first.with_name("seed=4")
    assert re.fullmatch(r"fedgm,eta=1-[0-9a-f]{8}", first.parent.name)
    assert first.parent.parent == tmp_path / "run"


# Label ----------------------------------------------------------------------------------------------------


def label(*overrides: str) -> str:
    return folder.label(composed(*overrides), overrides)


def test_what_was_set_is_in_the_label_and_the_rest_is_not():
    words = [
        "algorithm.eta=2.0",
        "seed=3",
        "output_dir=/x/y",
        "track.mode=disabled",
        "trainer.workers=2",
        "rerun=true",
    ]
    assert label(*words) == "fedgm,eta=2"
    assert label("profile=tiny", "algorithm=fedavg", "local.lr=0.02") == "fedavg,lr=0.02,profile=tiny"
    assert (
        label("schedule=multistage", "schedule.etas=[2.0,1,0.5]")
        == "fedgm,etas=[2,1,0.5],schedule=multistage"
    )


def test_twelve_overrides_and_slashes_make_a_short_and_safe_label():
    overrides = [
        "data=npz", "data.path='/home/me/../a b*?\"|<>:$(x).npz'", "clients.count=90", "clients.per_round=4",
        "local.epochs=2", "local.lr=0.02", "local.momentum=0.5", "local.weight_decay=0.001", "data.alpha=0.3",
        "eval.every=7", "eval.batch_size=50", "algorithm.eta=1.25",
    ]  # fmt: skip
    text = label(*overrides)
    assert len(text) <= len("fedgm") + 60
    assert re.fullmatch(r"[\w.,=+\-\[\]]+", text)
    assert text.startswith("fedgm,")


# Files ----------------------------------------------------------------------------------------------------


def test_atomic_writes_replace_and_leave_no_temporary_file(tmp_path):
    target = tmp_path / "a.txt"
    files.write_atomically(target, "one")
    files.write_atomically(target, b"two")
    assert target.read_bytes() == b"two"
    assert [p.name for p in tmp_path.iterdir()] == ["a.txt"]


def test_a_write_that_fails_keeps_the_old_file_and_leaves_no_temporary_file(tmp_path, monkeypatch):
    target = tmp_path / "a.txt"
    files.write_atomically(target, "good")

    def full(self, target):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pathlib.Path.replace", full)
    with pytest.raises(OSError, match="No space left"):
        files.write_atomically(target, "bad")
    assert target.read_text() == "good"
    assert [p.name for p in tmp_path.iterdir()] == ["a.txt"]


def test_json_has_null_for_what_is_no_number(tmp_path):
    files.write_json(
        tmp_path / "s.json", {"gain": float("nan"), "stages": [{"eta": float("inf")}], "ok": 1.5}
    )
    assert json.loads((tmp_path / "s.json").read_text()) == {
        "gain": None,
        "stages": [{"eta": None}],
        "ok": 1.5,
    }


def test_unreadable_json_is_nothing(tmp_path):
    (tmp_path / "cut.json").write_text('{"a": 1')
    assert files.read_json(tmp_path / "cut.json") is None
    assert files.read_json(tmp_path / "absent.json") is None


def test_a_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(FedGMError, match=r"output_dir: .*file/run cannot be written .*Try output_dir=DIR"):
        folder.create(tmp_path / "file" / "run")
    folder.create(tmp_path / "new" / "run")
    assert list((tmp_path / "new" / "run").iterdir()) == []


# Lock -----------------------------------------------------------------------------------------------------


def test_two_at_once_are_told_apart_and_the_holder_is_named(tmp_path):
    with lock.locked(tmp_path):
        assert lock.is_alive(tmp_path)
        with pytest.raises(
            RunLockedError, match=rf"{tmp_path} is being worked on by process {os.getpid()} on "
        ):
            lock.locked(tmp_path).__enter__()
        assert lock.is_alive(tmp_path)  # the refused one has not removed it
    assert not (tmp_path / "lock").exists()
    with lock.locked(tmp_path):
        pass


def test_the_lock_goes_when_the_run_fails(tmp_path):
    with pytest.raises(ZeroDivisionError), lock.locked(tmp_path):
        raise ZeroDivisionError
    assert not lock.is_alive(tmp_path)
    assert not any(t.name.endswith("(_beat)") for t in threading.enumerate())


def test_the_heartbeat_keeps_a_long_run_alive(tmp_path, monkeypatch):
    monkeypatch.setattr(lock, "BEAT", 0.02)
    with lock.locked(tmp_path):
        long_ago = time.time() - 2 * lock.STALE
        os.utime(tmp_path / "lock", (long_ago, long_ago))
        until(lambda: lock.is_alive(tmp_path))


def test_a_lock_file_without_heartbeat_belongs_to_nobody(tmp_path):
    path = tmp_path / "lock"
    path.write_text('{"pid": 1, "host": "elsewhere", "since": 0}')
    os.utime(path, (time.time() - lock.STALE - 1,) * 2)
    assert not lock.is_alive(tmp_path)
    with lock.locked(tmp_path):  # a killed run does not block the next one
        assert json.loads(path.read_text())["pid"] == os.getpid()
