"""One process at a time in a run folder, and a heartbeat that tells a running run from a killed one."""

import fcntl
import json
import os
import socket
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from fedgm.errors import RunLockedError

BEAT = 5.0  # seconds between heartbeats
STALE = 60.0  # a lock without heartbeat for so long belongs to nobody


def is_alive(folder: Path) -> bool:
    """Whether some process has touched the folder's lock lately."""
    try:
        return time.time() - (folder / "lock").stat().st_mtime < STALE
    except OSError:
        return False


@contextmanager
def locked(folder: Path) -> Generator[None]:
    """Hold the folder; raise :class:`RunLockedError` where another process does.

    The kernel drops the lock when its holder dies, so a killed run never blocks the next one.
    """
    path = folder / "lock"
    with _acquire(path) as file:
        file.truncate(0)
        file.write(json.dumps({"pid": os.getpid(), "host": socket.gethostname(), "since": time.time()}))
        file.flush()
        ended = threading.Event()
        beat = threading.Thread(target=_beat, args=(path, ended), daemon=True)
        beat.start()
        try:
            yield
        finally:
            ended.set()
            beat.join()
            path.unlink(missing_ok=True)


def _acquire(path: Path) -> IO[str]:
    """An open, locked lock file that is still the one in the folder."""
    while True:
        file = path.open("a+")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.close()
            raise RunLockedError(
                f"{path.parent} is being worked on by {_holder(path)}. That run goes on, this one ends. "
                "Wait for it, or use another output_dir."
            ) from None
        if path.exists() and os.fstat(file.fileno()).st_ino == path.stat().st_ino:
            return file
        file.close()  # its holder ended and removed it in between: there is a new one, or none


def _beat(path: Path, ended: threading.Event) -> None:
    while not ended.wait(BEAT):
        try:
            os.utime(path)
        except OSError:  # the folder was deleted under a running run: its writer will say so
            return


def _holder(path: Path) -> str:
    try:
        who = json.loads(path.read_text())
        since = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(who["since"]))
        return f"process {who['pid']} on {who['host']} since {since}"
    except (OSError, ValueError, KeyError):
        return "another process"
