"""The keeper of a deployment's processes: it starts what it is told to, and ends all when its pipe closes.

    python -m fedgm.flower.keeper < orders

An order is a line of JSON: {"start": NAME, "words": [...], "log": FILE, "env": {...}, "cwd": DIR}, or {"ask":
true}. The answer is a line, too: exit codes and pids by name. The pipe closes when the command is done, was
interrupted or was killed. Flower detaches some of its processes; as their subreaper the keeper finds them.
"""

import ctypes
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from fedgm.clock import steady

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
PATIENCE = 5.0  # seconds between asking a process to end and ending it


def main() -> None:
    """Until the pipe closes."""
    for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(signum, signal.SIG_IGN)  # the command says when it is over
    _prctl(PR_SET_CHILD_SUBREAPER, 1)
    started: dict[str, subprocess.Popen[bytes]] = {}
    try:
        for line in sys.stdin:
            order: dict[str, Any] = json.loads(line)
            if "start" in order:
                started[order["start"]] = _start(order)
            codes = {name: process.poll() for name, process in started.items()}
            pids = {name: process.pid for name, process in started.items()}
            print(json.dumps({"codes": codes, "pids": pids}), flush=True)
    except (OSError, ValueError) as error:
        print(json.dumps({"error": str(error)}), flush=True)
    finally:
        end_all(list(started.values()))


def _start(order: dict[str, Any]) -> "subprocess.Popen[bytes]":
    with open(order["log"], "ab") as log:  # noqa: PTH123
        return subprocess.Popen(
            order["words"],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            env={**os.environ, **order["env"]},
            cwd=order["cwd"],
            preexec_fn=_die_with_the_keeper,
        )


def _die_with_the_keeper() -> None:
    """Should the keeper itself be killed, those that it started go with it."""
    _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def end_all(started: "list[subprocess.Popen[bytes]]") -> None:
    """Ask every process below this one to end, then end it; without /proc those that it has started."""
    for signum in (signal.SIGTERM, signal.SIGKILL):
        deadline = steady() + PATIENCE
        while below := descendants() or [each.pid for each in started if each.poll() is None]:
            for pid in below:
                _send(pid, signum)
            _collect()
            if signum == signal.SIGTERM and steady() > deadline:
                break
            time.sleep(0.05)


def descendants(pid: int | None = None) -> list[int]:
    """Processes below one (this one), whatever session they are in; those that have ended do not count."""
    found: list[int] = []
    for task in Path(f"/proc/{pid or os.getpid()}/task").glob("*/children"):
        try:
            children = [int(child) for child in task.read_text().split()]
        except OSError:
            continue
        for child in children:
            found += [child, *descendants(child)] if _lives(child) else []
    return found


def _lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in ("Z", "X")
    except OSError:
        return False


def _send(pid: int, signum: signal.Signals) -> None:
    try:
        os.kill(pid, signum)
    except ProcessLookupError:
        return


def _collect() -> None:
    """Entries of processes that have ended."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return


def _prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, value)


if __name__ == "__main__":
    main()
