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
from typing import IO, Any

from fedgm.clock import age, wall
from fedgm.errors import FedGMError, RunLockedError
from fedgm.files import no_link

BEAT = 5.0  # seconds between heartbeats
STALE = 60.0  # a lock without a heartbeat for so long is abandoned


def is_alive(folder: Path) -> bool:
    """Whether a process works in the folder: the lock has a heartbeat and, on this machine, a process."""
    path = folder / "lock"
    if not _beats(path):
        return False
    who = _content(path)
    pid = who.get("pid")
    return who.get("host") != socket.gethostname() or (isinstance(pid, int) and _exists(pid))


def _beats(path: Path) -> bool:
    try:
        return age(path.stat().st_mtime) < STALE
    except OSError:
        return False


def _exists(pid: int) -> bool:
    """Whether the process runs: one that has ended stays listed until its parent has asked how."""
    try:
        os.kill(pid, 0)
        stat = Path(f"/proc/{pid}/stat")
        return not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] not in ("Z", "X")
    except PermissionError:
        return True
    except (OSError, ValueError, OverflowError):
        return False


@contextmanager
def locked(folder: Path) -> Generator[None]:
    """Hold the folder; raise :class:`RunLockedError` where another process does.

    The kernel drops the lock when its holder dies, so a killed run never blocks the next one. On a shared
    folder whose locks do not reach other machines, a fresh heartbeat from there counts as a lock.
    """
    path = folder / "lock"
    with _acquire(path) as file:
        file.truncate(0)
        file.write(json.dumps({"pid": os.getpid(), "host": socket.gethostname(), "since": wall()}))
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
        if path.is_symlink():
            raise FedGMError(f"{path} is a symbolic link: it would be emptied where it leads. Remove it")
        file = open(path, "a+", opener=no_link)  # noqa: SIM115 - held until the run ends
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.close()
            raise _locked(path) from None
        if path.exists() and os.fstat(file.fileno()).st_ino == path.stat().st_ino:
            if _content(path).get("host", socket.gethostname()) != socket.gethostname() and _beats(path):
                file.close()
                raise _locked(path)
            return file
        file.close()  # its holder ended and removed it in between: there is a new one, or none


def _beat(path: Path, ended: threading.Event) -> None:
    while not ended.wait(BEAT):
        try:
            os.utime(path)
        except OSError:  # the folder was deleted under a running run: its writer will say so
            return


def _locked(path: Path) -> RunLockedError:
    return RunLockedError(
        f"{path.parent} is being worked on by {_holder(path)}. That run goes on, this one ends. "
        "Wait for it, or use another output_dir."
    )


def _content(path: Path) -> dict[str, Any]:
    """Who holds the lock, as far as it has been written."""
    try:
        content = json.loads(path.read_text())
    except (OSError, ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


def _holder(path: Path) -> str:
    try:
        who = _content(path)
        since = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(who["since"]))
        return f"process {who['pid']} on {who['host']} since {since}"
    except (TypeError, KeyError, ValueError, OverflowError, OSError):
        return "another process"
