"""`fedgm sweep` on a folder that another machine works in, too."""

import json
import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.e2e.sweep_process import finish, outcome, start, sweep_file, until_seen


@contextmanager
def beating(path: Path) -> Iterator[None]:
    """The heartbeat of the other machine."""
    ended = threading.Event()

    def beat():
        while not ended.wait(1):
            os.utime(path)

    thread = threading.Thread(target=beat)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def wakes(pid: int) -> int:
    """How often its main thread has gone to sleep by itself."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("voluntary_ctxt_switches:"))


@pytest.mark.slow
def test_a_point_that_another_machine_runs_is_left_to_it_until_it_lets_go(tmp_path):
    path, home = sweep_file(tmp_path, "[1.0, 2.0]", rounds=3), tmp_path / "o"
    finish(start(path, tmp_path / "calm"))
    first, second = sorted(outcome(tmp_path / "calm"))
    (home / first).mkdir(parents=True)
    who = {"pid": 1, "host": f"not-{socket.gethostname()}", "since": time.time()}
    lock = home / first / "lock"
    lock.write_text(json.dumps(who))
    process = start(path, home)
    with beating(lock):
        until_seen(lambda: list(outcome(home)) == [second], process)
        woken = wakes(process.pid)
        until_seen(lambda: wakes(process.pid) >= woken + 8, process)  # it looks again and again
        assert process.poll() is None  # it waits: the point is not done
        assert [path.name for path in (home / first).iterdir()] == ["lock"]
        assert json.loads(lock.read_text()) == who
    lock.unlink()  # the other machine gives up
    assert "2 finished" in finish(process)
    assert outcome(home) == outcome(tmp_path / "calm")
