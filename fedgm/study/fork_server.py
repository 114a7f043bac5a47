"""The warm fork server: one process that has everything imported, and forks every run of a sweep.

Each run is a separate process, so a crash, a leak or an out-of-memory kill stays in it. The server has no
threads, so forking is safe whatever the sweep's display does. Runs die with the server, the server with the
sweep: `kill -9` leaves nothing behind.
"""

import ctypes
import json
import os
import select
import signal
import socket
import sys
import time
import traceback
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from fedgm.clock import Stopwatch
from fedgm.errors import FedGMError

PR_SET_PDEATHSIG = 1
BUSY = 75  # exit code of a run that another process holds (EX_TEMPFAIL)
REFUSED = 2
GRACE = 20.0  # seconds in which a stopped run may write its last checkpoint
DIED = "the process that starts the runs has died; the same command continues"


class Ended(NamedTuple):
    """How a run's process ended: its exit code, or minus the signal."""

    number: int
    code: int


class ForkServer:
    """The sweep's side of it."""

    def __init__(self) -> None:
        self._ours, server_end = socket.socketpair()
        self._buffer = b""
        sys.stdout.flush()
        sys.stderr.flush()
        parent = os.getpid()
        self.pid = os.fork()
        if self.pid == 0:
            self._ours.close()
            code = 1
            try:
                _serve(server_end, parent)
                code = 0
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(code)
        server_end.close()

    def start(self, number: int, overrides: Sequence[str], log: Path) -> None:
        """Fork a run; its output goes to ``log``."""
        request = {"number": number, "overrides": list(overrides), "log": str(log)}
        try:
            self._ours.sendall(json.dumps(request).encode() + b"\n")
        except (BrokenPipeError, ConnectionResetError):
            raise FedGMError(DIED) from None

    def ended(self, timeout: float) -> list[Ended]:
        """Runs that have ended; waits for at most ``timeout`` seconds. The server's death is an error."""
        if select.select([self._ours], [], [], timeout)[0]:
            data = b""
            with suppress(ConnectionResetError):  # it had not read its last request
                data = self._ours.recv(65536)
            if not data:
                raise FedGMError(DIED)
            self._buffer += data
        *lines, self._buffer = self._buffer.split(b"\n")
        return [Ended(**json.loads(line)) for line in lines]

    def close(self) -> None:
        """Stop the runs as Ctrl-C would, wait for them, end the server."""
        self._ours.close()
        os.waitpid(self.pid, 0)


def _serve(channel: socket.socket, parent: int) -> None:
    """Fork on request, report ends, until the other side closes."""
    _die_with(parent)
    for signum in (signal.SIGINT, signal.SIGTERM):  # sent to the group: the sweep decides
        signal.signal(signum, signal.SIG_IGN)
    running: dict[int, int] = {}  # pid -> number
    buffer = b""
    while True:
        if select.select([channel], [], [], 0.05)[0]:
            data = channel.recv(65536)
            if not data:
                return _stop(running)
            *lines, buffer = (buffer + data).split(b"\n")
            for line in lines:
                request = json.loads(line)
                running[_fork(channel, request["overrides"], request["log"])] = request["number"]
        for number, code in _reap(running):
            channel.sendall(json.dumps({"number": number, "code": code}).encode() + b"\n")


def _reap(running: dict[int, int]) -> list[tuple[int, int]]:
    """Numbers and codes of the runs that have ended since the last look."""
    ended: list[tuple[int, int]] = []
    while running:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == 0:
            break
        if pid in running:
            ended.append((running.pop(pid), os.waitstatus_to_exitcode(status)))
    return ended


def _stop(running: dict[int, int]) -> None:
    """SIGTERM, which a run takes as Ctrl-C; SIGKILL for one that does not react."""
    for pid in running:
        os.kill(pid, signal.SIGTERM)
    watch = Stopwatch()
    while running and watch.seconds() < GRACE:
        _reap(running)
        time.sleep(0.05)
    for pid in running:
        os.kill(pid, signal.SIGKILL)


def _fork(channel: socket.socket, overrides: list[str], log: str) -> int:
    """A run's process: its session, its log, the first to be killed when memory is short."""
    server = os.getpid()
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        channel.close()
        _die_with(server)
        os.setsid()
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        with suppress(OSError):
            Path("/proc/self/oom_score_adj").write_text("500")
        Path(log).parent.mkdir(parents=True, exist_ok=True)
        out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW)
        nothing = os.open(os.devnull, os.O_RDONLY)
        for source, target in ((nothing, 0), (out, 1), (out, 2)):
            os.dup2(source, target)
        code = _run(overrides)
    except BaseException:
        traceback.print_exc()
    finally:
        with suppress(OSError):  # on a full disk even this fails, and the exit code must still arrive
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def _run(overrides: list[str]) -> int:
    """The run itself, as one job of a multirun; returns its exit code."""
    from fedgm.config import compose
    from fedgm.errors import ConfigError, RunLockedError
    from fedgm.running.start import execute
    from fedgm.screen import Screen

    try:
        execute(compose(overrides), overrides, Screen(), alone=False)
        return 0
    except RunLockedError as error:
        print(error)
        return BUSY
    except FedGMError as error:
        print(f"error: {error}")
        return REFUSED if isinstance(error, ConfigError) else 1
    except KeyboardInterrupt:
        return 130


def _die_with(parent: int) -> None:
    """Ask the kernel for SIGKILL when the parent dies; end now if it already has."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)
