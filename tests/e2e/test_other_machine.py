"""`fedgm sweep` on a folder that another machine works in, too."""

import json
import socket
import time

import pytest

from tests.e2e.sweep_process import finish, outcome, start, sweep_file, until


@pytest.mark.slow
def test_a_point_that_another_machine_runs_is_left_to_it_until_it_lets_go(tmp_path):
    path, home = sweep_file(tmp_path, "[1.0, 2.0]", rounds=3), tmp_path / "o"
    finish(start(path, tmp_path / "calm"))
    first, second = sorted(outcome(tmp_path / "calm"))
    (home / first).mkdir(parents=True)
    who = {"pid": 1, "host": f"not-{socket.gethostname()}", "since": time.time()}
    (home / first / "lock").write_text(json.dumps(who))  # as fresh as a heartbeat
    process = start(path, home)
    until(lambda: list(outcome(home)) == [second], process)
    time.sleep(2)  # four looks of the runner
    assert process.poll() is None  # it waits: the point is not done
    assert [path.name for path in (home / first).iterdir()] == ["lock"]
    assert json.loads((home / first / "lock").read_text()) == who
    (home / first / "lock").unlink()  # the other machine gives up
    assert "2 finished" in finish(process)
    assert outcome(home) == outcome(tmp_path / "calm")
