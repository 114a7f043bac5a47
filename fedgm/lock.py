"""One process at a time in a run folder, and a heartbeat that tells a running run from a killed one."""

import fcntl
import json
import os
import socket
import stat
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, NamedTuple

from fedgm.clock import wall
from fedgm.errors import FedGMError, RunLockedError
from fedgm.files import beside

BEAT = 5.0  # seconds between heartbeats
STALE = 60.0  # a lock without a heartbeat for so long is abandoned
LARGEST = 2**12  # bytes; a lock of ours has about a hundred
UNNAMED_FILE: int = getattr(os, "O_TMPFILE", os.O_DIRECTORY)  # Linux alone has it; the other opens no folder


class Lock(NamedTuple):
    """A lock file as it was read."""

    beat: float  # of the last heartbeat, by the clock of the file system
    holder: dict[str, Any]  # as far as it has been written

    @property
    def is_foreign(self) -> bool:
        """Whether another machine has written it."""
        return self.holder.get("host", socket.gethostname()) != socket.gethostname()

    def is_fresh(self, folder: Path) -> bool:
        """Whether it beats; a time far in the future is not a heartbeat."""
        return abs(_now(folder) - self.beat) < STALE


def is_alive(folder: Path) -> bool:
    """Whether a process works in the folder: the lock has a heartbeat and, on this machine, a process."""
    lock = _read(folder / "lock")
    if lock is None:
        return False
    pid = lock.holder.get("pid")
    may_run = lock.holder.get("host") != socket.gethostname() or (isinstance(pid, int) and _exists(pid))
    return may_run and lock.is_fresh(folder)


def _read(path: Path) -> Lock | None:
    """The lock, or None: a pipe, a device, a link or a large file is not one."""
    try:
        status = path.lstat()
        if not stat.S_ISREG(status.st_mode) or status.st_size > LARGEST:
            return None
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
            text = file.read(LARGEST)
    except OSError:
        return None
    try:
        holder = json.loads(text)
    except (ValueError, RecursionError):
        holder = {}
    return Lock(status.st_mtime, holder if isinstance(holder, dict) else {})


def _now(folder: Path) -> float:
    """The time of the file system, which stamps heartbeats; machines that share it have other clocks."""
    try:
        handle = os.open(folder, UNNAMED_FILE | os.O_WRONLY, 0o600)
    except OSError:
        return _now_by_probe(folder)
    try:
        return os.fstat(handle).st_mtime
    finally:
        os.close(handle)


def _now_by_probe(folder: Path) -> float:
    """The same where the file system has no files without a name."""
    probe = beside(folder / "clock")
    try:
        probe.touch()
        now = probe.stat().st_mtime
        probe.unlink(missing_ok=True)
    except OSError:  # a folder in which we may not write
        return wall()
    return now


def _exists(pid: int) -> bool:
    """Whether the process runs: one that has ended stays listed until its parent has asked how."""
    try:
        os.kill(pid, 0)
        entry = Path(f"/proc/{pid}/stat")
        return not entry.exists() or entry.read_text().rpartition(")")[2].split()[0] not in ("Z", "X")
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
        file = _open(path)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.close()
            raise _locked(path) from None
        if path.exists() and os.fstat(file.fileno()).st_ino == path.stat().st_ino:
            lock = _read(path)
            if lock is not None and lock.is_foreign and lock.is_fresh(path.parent):
                file.close()
                raise _locked(path)
            return file
        file.close()  # its holder ended and removed it in between: there is a new one, or none


def _open(path: Path) -> IO[str]:
    """The lock file, made where there is none; a pipe or a device in its place is removed."""
    try:
        if path.is_symlink():
            raise FedGMError(f"{path} is a symbolic link: it would be emptied where it leads. Remove it")
        with suppress(FileNotFoundError):
            mode = path.lstat().st_mode
            if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
                path.unlink()
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK
        return os.fdopen(os.open(path, flags, 0o666), "a+")
    except OSError as error:
        raise FedGMError(
            f"{path} cannot be opened ({error.strerror}). Remove it, or try another output_dir"
        ) from None


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


def _holder(path: Path) -> str:
    lock = _read(path)
    try:
        who = lock.holder if lock is not None else {}
        since = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(who["since"]))
        return f"process {who['pid']} on {who['host']} since {since}"
    except (TypeError, KeyError, ValueError, OverflowError, OSError):
        return "another process"
