"""Odd surroundings: a run ends as elsewhere, or a sentence says what is in its way, before training."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import fedgm
from fedgm.errors import RefusedError
from tests.conftest import quick
from tests.e2e.commands import TINY, result, run_folder

ROOT = Path(__file__).parents[2]
ONE = (*TINY, "rounds=1")


@pytest.fixture(scope="module")
def calm(commands, tmp_path_factory):
    """Model and rows of an undisturbed run."""
    run = commands.run(tmp_path_factory.mktemp("calm") / "o", *ONE)
    assert run.code == 0, run.text
    return result(run.output_dir)


def test_a_deleted_working_directory_is_named_before_anything_begins(commands, tmp_path):
    run = commands.run(tmp_path / "o", *ONE, odd={"cwd": "deleted"})
    assert run.code == 2, run.text
    assert "error: the working directory is gone" in run.text
    assert "Traceback" not in run.text
    assert not list(run.output_dir.iterdir())


@pytest.mark.usefixtures("real_composition")
def test_so_it_is_where_python_composes(tmp_path, monkeypatch):
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    with pytest.raises(RefusedError, match="the working directory is gone"):
        fedgm.run(ONE)


def test_a_shell_of_salloc_is_no_reason_to_start_two_processes(commands, tmp_path, calm):
    shell = {
        "SLURM_JOB_ID": "7",
        "SLURM_NTASKS": "2",
        "SLURM_JOB_NAME": "allocation",
        "SLURM_NTASKS_PER_NODE": "2",
    }
    for workers in (1, 2):  # Lightning asks its launcher where there are several
        run = commands.run(tmp_path / str(workers), *ONE, f"trainer.workers={workers}", **shell)
        assert run.code == 0, run.text
        assert result(run.output_dir) == calm


@pytest.mark.parametrize(
    "shell",
    [
        {"SLURM_STEP_NUM_TASKS": "x"},
        {"TORCHELASTIC_RUN_ID": "7"},
        {"TORCHELASTIC_RUN_ID": "7", "WORLD_SIZE": "2", "RANK": ""},
    ],
)
def test_what_a_launcher_left_behind_is_refused_by_a_sentence(commands, tmp_path, shell):
    run = commands.run(tmp_path / "o", *ONE, **shell)
    assert run.code == 2
    assert re.search(r"error: variables of torchrun or srun cannot be read \((Key|Value)Error: ", run.text)
    assert "Traceback" not in run.text


def python(*words: str, **env: str) -> "subprocess.CompletedProcess[str]":
    """A process that has imported nothing yet."""
    return subprocess.run(
        [sys.executable, *words], env=os.environ | {"PYTHONPATH": str(ROOT)} | env, cwd=ROOT, text=True,
        capture_output=True, check=False,
    )  # fmt: skip


def test_a_backend_that_matplotlib_does_not_have_is_refused_before_a_notebook_trains(tmp_path):
    code = f"import fedgm; fedgm.run(['profile=tiny', 'output_dir={tmp_path}'])"
    ended = python("-c", code, MPLBACKEND="nonsense")
    assert ended.returncode == 1
    assert "ConfigError: MPLBACKEND=nonsense" in ended.stderr
    assert "Try unset MPLBACKEND" in ended.stderr
    assert not list(tmp_path.iterdir())


def test_commands_draw_files_whatever_the_backend_of_the_shell_is(tmp_path):
    begin = (
        "from fedgm.starting import quietly; quietly(); import matplotlib; print(matplotlib.get_backend())"
    )
    for name in ("nonsense", "TkAgg", ""):
        ended = python("-c", begin, MPLBACKEND=name)
        assert (ended.returncode, ended.stdout.strip()) == (0, "agg"), ended.stderr


def test_an_ascii_terminal_shows_question_marks_and_the_same_rows(commands, tmp_path, calm):
    run = commands.run(tmp_path / "\u00dcbung", *ONE, odd={"encoding": "ascii"})
    assert run.code == 0, run.text
    assert run.text.isascii()
    assert "?bung" in run.text
    assert result(run.output_dir) == calm


NAMES = ["Gr\u00f6\u00dfe (2)", "a,b=c", "it's [1] {x} $HOME", "~"]


@pytest.mark.parametrize("name", quick(NAMES, *NAMES[1:3]))
def test_any_folder_can_be_an_output_dir_as_it_is_typed(commands, tmp_path, calm, name):
    run = commands.run(tmp_path / name, *ONE)
    assert run.code == 0, run.text
    assert result(tmp_path / name) == calm


def test_bytes_that_are_not_text_are_refused_before_a_run_writes_them(commands, tmp_path):
    (tmp_path / "log").touch()
    request = {"arguments": [*ONE, f"output_dir={tmp_path}/\udcff"], "out": str(tmp_path / "log"), "env": {}}
    assert commands.ask(wait=commands.ask(**request)["pid"], timeout=300)["code"] == 2
    assert "it has bytes that are not text in this locale" in (tmp_path / "log").read_text()


@pytest.mark.slow
def test_a_tilde_is_the_home_folder(commands, tmp_path, calm):
    (tmp_path / "home").mkdir()
    request = {"arguments": [*ONE, "output_dir=~/out"], "out": str(tmp_path / "log")}
    pid = commands.ask(**request, env={"HOME": str(tmp_path / "home")})["pid"]
    assert commands.ask(wait=pid, timeout=300)["code"] == 0, (tmp_path / "log").read_text()
    assert result(tmp_path / "home" / "out") == calm


@pytest.mark.slow
def test_a_full_disk_behind_the_output_is_named_and_not_the_run_folder(commands, tmp_path, calm):
    for _ in ("new", "done"):  # a run that is done prints from another place
        run = commands.run(tmp_path / "o", *ONE, odd={"out": "/dev/full"})
        assert run.code == 1, run.text
        assert "standard output cannot be written (No space left on device)" in run.text
        assert "Traceback" not in run.text
        assert str(run.output_dir) not in run.text
        again = commands.run(tmp_path / "o", *ONE)
        assert again.code == 0, again.text
        assert result(again.output_dir) == calm


@pytest.mark.parametrize("file", quick(["model.safetensors", "metrics.jsonl", "config.yaml"], "config.yaml"))
def test_a_file_of_a_done_run_that_may_not_be_read_is_named(commands, tmp_path, file):
    done = commands.run(tmp_path / "o", *ONE)
    path = run_folder(done.output_dir) / file
    if file == "config.yaml":  # written again where it may not be read, but not over a folder
        path.unlink()
        path.mkdir()
    path.chmod(0)
    run = commands.run(tmp_path / "o", *ONE, odd={"powerless": True})
    assert run.code == 1, run.text
    assert "Traceback" not in run.text
    reason = "Is a directory" if file == "config.yaml" else "Permission denied"
    assert f"{path}: {reason}. Give read and write permission, or move what is in the way" in run.text
    path.chmod(0o644) if path.is_file() else path.rmdir()
    assert "already done" in commands.run(tmp_path / "o", *ONE).text


@pytest.mark.parametrize(
    "words",
    [["-m", "fedgm", "--help"], ["run.py", "--help"], ["-m", "fedgm", "list", "tests/results/older_runs"]],
)
def test_other_commands_say_the_same(words):
    shell = f"{sys.executable} {' '.join(words)} > /dev/full"
    ended = subprocess.run(shell, shell=True, cwd=ROOT, text=True, capture_output=True, check=False)
    assert ended.returncode == 1
    assert "Traceback" not in ended.stderr
    assert "error: standard output cannot be written (No space left on device)" in ended.stderr
