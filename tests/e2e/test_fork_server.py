"""The process that forks a sweep's runs dies: the sweep says so, nothing is left running, nothing is lost."""

import os
import signal
import subprocess
import sys

import pytest

from tests.e2e.commands import is_alive
from tests.e2e.sweep_process import (
    begun,
    descendants,
    finish,
    folders,
    has_checkpoint,
    is_continued,
    start,
    sweep_file,
    until_seen,
)
from tests.waiting import PATIENCE, until

DIED = "the process that starts the runs has died; the same command continues"


@pytest.mark.slow
def test_the_sweep_ends_with_its_server_and_the_same_command_continues(tmp_path):
    path, home = sweep_file(tmp_path, "[1.0, 2.0]", rounds=60), tmp_path / "o"
    process = start(path, home)
    until_seen(lambda: sum(map(has_checkpoint, folders(home))) == 2, process)
    server, *runs = descendants(process.pid)
    os.kill(server, signal.SIGKILL)
    text = finish(process, code=1)
    assert f"error: {DIED}" in " ".join(text.split())
    assert "Traceback" not in text
    until(lambda: not any(is_alive(pid) for pid in (server, *runs)))
    assert "2 finished" in finish(start(path, home))
    assert [(begun(folder), is_continued(folder)) for folder in folders(home)] == [(1, True)] * 2


# In a process of its own: a server is forked from a program without threads.
PROGRAM = """
import os, signal, sys, time
from pathlib import Path
from fedgm.errors import FedGMError
from fedgm.study.fork_server import ForkServer

for moment in sys.argv[1:]:
    server = ForkServer()
    os.kill(server.pid, signal.SIGSTOP)
    if moment == "unread":  # the request lies in the socket when the server dies
        server.start(0, [], Path("log"))
    os.kill(server.pid, signal.SIGKILL)
    os.waitid(os.P_PID, server.pid, os.WEXITED | os.WNOWAIT)
    try:
        server.start(1, [], Path("log")) if moment == "before" else server.ended(5.0)
    except FedGMError as error:
        print(f"{moment}: {error}")
    server.close()
"""


def test_its_death_is_one_error_at_whatever_moment(tmp_path):
    """While the sweep waits, with a request that it never read, and before the next request."""
    moments = ["idle", "unread", "before"]
    command = [sys.executable, "-c", PROGRAM, *moments]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [f"{moment}: {DIED}" for moment in moments]
