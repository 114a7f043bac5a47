"""One process at a time in a run folder; a killed one never blocks the next."""

import signal
import socket

import pytest

import fedgm
from fedgm.errors import RunLockedError
from tests.e2e.commands import TINY, read_summary, result, state
from tests.fuzz.overrides import SMALL

RUN = (*TINY, "rounds=10")
HALT = "+callbacks.halt={_target_:tests.e2e.halting.HaltInValidation}"


def test_the_second_of_two_equal_commands_stops_and_names_the_first(commands, tmp_path):
    home = tmp_path / "out"
    run = (*SMALL, "rounds=3", "eval.batch_size=10", "eval.train_samples=10", HALT)
    first = commands.start(home, *run, FEDGM_TEST_HALT="2")
    first.until(lambda: state(first.pid) == "T")  # it must not end while we look
    second = commands.run(home, *run)
    with pytest.raises(RunLockedError, match=f"process {first.pid} on {socket.gethostname()} since "):
        fedgm.run([*run, f"output_dir={home}"])
    first.send(signal.SIGCONT)
    assert first.wait() == 0, first.text
    assert second.code == 1
    assert f"error: {home}" in second.text
    assert f"is being worked on by process {first.pid} on " in second.text
    assert "Wait for it, or use another output_dir" in second.text
    assert "Traceback" not in second.text

    fedgm.run([*run, f"output_dir={tmp_path / 'alone'}"])
    assert result(home) == result(tmp_path / "alone")


@pytest.mark.slow
def test_after_a_kill_the_lock_does_not_block(commands, tmp_path):
    command = commands.start(tmp_path, *RUN, "trainer.workers=2")
    command.until_row(1)
    command.kill()
    assert list(tmp_path.glob("*/*/seed=0/lock"))  # it is still there, but nobody holds it
    assert fedgm.run([*RUN, f"output_dir={tmp_path}"]).status == "finished"
    assert not list(tmp_path.glob("*/*/seed=0/lock"))
    assert read_summary(tmp_path)["rounds_done"] == 10
