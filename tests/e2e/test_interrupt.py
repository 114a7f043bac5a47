"""Ctrl-C and SIGTERM: the run says how to go on, ends with an error code, and goes on."""

import signal

import pytest

import fedgm
from tests.e2e.commands import TINY, is_alive, newest_checkpoint, read_summary, result

RUN = (*TINY, "rounds=8")


@pytest.fixture(scope="module")
def never_stopped(tmp_path_factory):
    home = tmp_path_factory.mktemp("reference")
    fedgm.run([*RUN, f"output_dir={home}"])
    return result(home)


@pytest.mark.parametrize(
    ("signum", "workers"),
    [
        pytest.param(signal.SIGINT, 2, marks=pytest.mark.slow),
        (signal.SIGTERM, 1),
        pytest.param(signal.SIGINT, 1, marks=pytest.mark.slow),
        pytest.param(signal.SIGTERM, 2, marks=pytest.mark.slow),
    ],
)
def test_a_stopped_run_says_so_and_continues(commands, tmp_path, never_stopped, signum, workers, capsys):
    home = tmp_path / "out"
    command = commands.start(home, *RUN, f"trainer.workers={workers}")
    command.until_row(2)
    forks = command.children() if workers > 1 else []
    command.send(signum)
    assert command.wait() == 130, command.text
    done = newest_checkpoint(home)
    summary = read_summary(home)
    assert summary["status"] == "stopped"
    assert summary["reason"] == "interrupted; the same command continues it"
    assert done <= summary["rounds_done"] < 8
    assert f"stopped after {summary['rounds_done']} of 8 rounds; the same command continues" in command.words
    assert "Traceback" not in command.text
    assert len(forks) == workers - 1
    assert not any(is_alive(pid) for pid in forks)

    fedgm.run([*RUN, f"output_dir={home}"])
    assert f"continuing after round {done}\n" in capsys.readouterr().out
    assert result(home) == never_stopped


def test_a_signal_to_the_whole_group_is_one_stop(commands, tmp_path):
    """What a terminal does on Ctrl-C and a batch system on its time limit: every worker gets the signal."""
    command = commands.start(tmp_path / "out", *RUN, "trainer.workers=2")
    command.until_row(1)
    command.send_group(signal.SIGTERM)
    assert command.wait() == 130, command.text
    assert "Traceback" not in command.text
    assert read_summary(tmp_path / "out")["status"] == "stopped"


@pytest.mark.slow
def test_ctrl_c_ends_the_whole_multirun(commands, tmp_path):
    command = commands.start(tmp_path / "out", "-m", *RUN, "seed=0,1,2")
    command.until(lambda: "round 2/8" in command.text)
    command.send(signal.SIGINT)
    assert command.wait() == 130, command.text
    assert len(list((tmp_path / "out").glob("*/*/seed=*"))) == 1
    assert "Traceback" not in command.text
