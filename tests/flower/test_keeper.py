"""The keeper ends all that it has started, also what has detached itself, also when its command is killed."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.e2e.commands import PATIENCE, is_alive

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="detached processes are found in /proc")

# A process that ignores SIGTERM and starts another one in a session of its own, which writes both pids down.
STUBBORN = """
import os, signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
code = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"
child = subprocess.Popen([sys.executable, "-c", code], start_new_session=True)
open(sys.argv[1] + ".part", "w").write(f"{os.getpid()} {child.pid}")
os.replace(sys.argv[1] + ".part", sys.argv[1])
if len(sys.argv) > 2:
    sys.exit(3)  # and leaves the child behind
time.sleep(600)
"""
COMMAND = """
import json, subprocess, sys, time
keeper = subprocess.Popen([sys.executable, "-m", "fedgm.flower.keeper"], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, text=True, start_new_session=True)
keeper.stdin.write(sys.argv[1] + "\\n")
keeper.stdin.flush()
print(keeper.pid, flush=True)
time.sleep(600)
"""


def until(condition):
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)


def order(tmp_path, *more):
    words = [sys.executable, "-c", STUBBORN, str(tmp_path / "pids"), *more]
    return {"start": "it", "words": words, "log": str(tmp_path / "log"), "env": {}, "cwd": str(tmp_path)}


def pids(tmp_path):
    until((tmp_path / "pids").exists)
    return [int(pid) for pid in (tmp_path / "pids").read_text().split()]


@pytest.mark.parametrize(
    "leaves",
    [
        pytest.param((), id="stays", marks=pytest.mark.slow),
        pytest.param(("and leaves",), id="leaves a child"),
    ],
)
def test_it_ends_them_when_its_pipe_closes(leaves, tmp_path):
    keeper = subprocess.Popen(
        [sys.executable, "-m", "fedgm.flower.keeper"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    keeper.stdin.write(json.dumps(order(tmp_path, *leaves)) + "\n")
    keeper.stdin.flush()
    answer = json.loads(keeper.stdout.readline())
    started = pids(tmp_path)
    assert answer["pids"] == {"it": started[0]}
    assert is_alive(started[1])
    keeper.stdin.close()
    keeper.wait(PATIENCE)
    keeper.stdout.close()
    assert [pid for pid in started if is_alive(pid)] == []


@pytest.mark.parametrize("victim", ["command", "keeper"])
def test_it_ends_them_when_its_command_or_it_itself_is_killed(victim, tmp_path):
    command = subprocess.Popen(
        [sys.executable, "-c", COMMAND, json.dumps(order(tmp_path))], stdout=subprocess.PIPE, text=True
    )
    keeper, started = int(command.stdout.readline()), pids(tmp_path)
    os.kill(command.pid if victim == "command" else keeper, signal.SIGKILL)
    direct = started if victim == "command" else started[:1]  # Flower's others watch their parents themselves
    until(lambda: not any(map(is_alive, direct)))
    until(lambda: not is_alive(keeper))
    for pid in (command.pid, started[1]):  # nothing is left of this test
        if is_alive(pid):
            os.kill(pid, signal.SIGKILL)
    command.wait(PATIENCE)
    command.stdout.close()


def test_a_program_that_is_not_there_is_an_answer(tmp_path):
    words = {**order(tmp_path), "words": [str(tmp_path / "nothing")]}
    said = subprocess.run(
        [sys.executable, "-m", "fedgm.flower.keeper"],
        input=json.dumps(words) + "\n",
        capture_output=True,
        text=True,
    )
    assert "No such file" in json.loads(said.stdout)["error"]
    assert Path(tmp_path / "log").exists()
