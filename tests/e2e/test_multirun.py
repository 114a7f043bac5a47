"""Multiruns side by side: a job that another process holds is busy; only the data refuse one."""

import pytest

import fedgm
from fedgm.lock import locked
from tests.e2e.commands import TINY, run_folder

RUN = (*TINY, "rounds=1", "clients.per_round=1", "local.unit=steps", "local.epochs=1")


def line_of(text: str, job: str) -> str:
    (line,) = [line for line in text.splitlines() if line.startswith(f"│ {job} ")]
    return line


@pytest.mark.slow
def test_a_job_that_another_process_holds_is_busy_and_has_not_failed(commands, tmp_path):
    home = tmp_path / "out"
    fedgm.run([*RUN, f"output_dir={home}"])  # so that there is a folder to hold
    folder = run_folder(home)
    with locked(folder):
        wrong = "data.min_samples=1,40"  # the split shows it, once the data are there
        command = commands.run(home, "-m", *RUN, "seed=0,1", wrong, COLUMNS="160")
    assert command.code == 1, command.text
    assert "Traceback" not in command.text
    ends = {
        "seed=0 data.min_samples=1": "busy", "seed=1 data.min_samples=1": "finished",
        "seed=0 data.min_samples=40": "refused", "seed=1 data.min_samples=40": "refused",
    }  # fmt: skip
    for job, status in ends.items():
        assert f" {status} " in line_of(command.text, job)
    assert "busy seed=0 data.min_samples=1: " in command.text
    assert "is being worked on by process" in command.text
    assert "refused seed=0 data.min_samples=40: data.min_samples=40" in command.text
    assert "failed" not in command.text


@pytest.mark.slow
def test_each_multirun_has_a_picture_of_its_own(commands, tmp_path):
    home = tmp_path / "out"
    drawn = []
    for seeds in ("0,1", "1,2", "0,1"):
        command = commands.run(home, "-m", *RUN, f"seed={seeds}")
        assert command.code == 0, command.text
        (picture,) = [word for word in command.words.split() if word.endswith("compare.png")]
        drawn.append(picture)
    assert drawn[0] == drawn[2] != drawn[1]
    assert sorted(map(str, home.glob("run/multirun-*/compare.png"))) == sorted(set(drawn))
