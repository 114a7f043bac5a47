"""Whatever is in the place of a lock neither hangs a run nor fills memory; no clock refuses it for a day."""

import errno
import json
import os
import socket
import time

import pytest

from fedgm import lock
from fedgm.errors import FedGMError, RunLockedError

DAY = 24 * 3600.0
ELSEWHERE = {"pid": 1, "host": f"not-{socket.gethostname()}", "since": 0}


def held_elsewhere(folder, beat: float = 0.0) -> None:
    """A lock of another machine, with its heartbeat so many seconds from now."""
    (folder / "lock").write_text(json.dumps(ELSEWHERE))
    now = (folder / "lock").stat().st_mtime
    os.utime(folder / "lock", (now + beat,) * 2)


def taken(folder) -> bool:
    """Whether a run may begin in the folder, and leaves nothing behind."""
    with lock.locked(folder):
        assert lock.is_alive(folder)
        assert json.loads((folder / "lock").read_text())["pid"] == os.getpid()
    return not list(folder.iterdir())


def test_a_pipe_is_not_a_lock(tmp_path):
    os.mkfifo(tmp_path / "lock")
    assert not lock.is_alive(tmp_path)
    assert taken(tmp_path)


def test_a_socket_is_not_a_lock(tmp_path):
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "lock"))
        assert not lock.is_alive(tmp_path)
        assert taken(tmp_path)


def test_a_huge_file_is_not_a_lock_and_is_not_read(tmp_path):
    (tmp_path / "lock").touch()
    os.truncate(tmp_path / "lock", 40 * 2**30)  # more than memory, on no more disk than its name
    assert not lock.is_alive(tmp_path)
    assert taken(tmp_path)


def test_a_folder_or_a_file_that_may_not_be_opened_is_named(tmp_path):
    (tmp_path / "lock").mkdir()
    assert not lock.is_alive(tmp_path)
    with (
        pytest.raises(FedGMError, match=r"lock cannot be opened \(Is a directory\)\. Remove it"),
        lock.locked(tmp_path),
    ):
        pass


@pytest.mark.parametrize("beat", [DAY, lock.STALE + 1, -lock.STALE - 1, -DAY])
def test_a_heartbeat_far_from_now_is_none(tmp_path, beat):
    held_elsewhere(tmp_path, beat)
    assert not lock.is_alive(tmp_path)
    assert taken(tmp_path)


@pytest.fixture(params=["without a name", "by a probe"])
def way(request, monkeypatch):
    """Both ways to the time of a file system."""
    if request.param == "by a probe":

        def refused(path, flags, mode=0o777, **more):
            if flags & lock.UNNAMED_FILE == lock.UNNAMED_FILE:
                raise OSError(errno.EOPNOTSUPP, "no files without a name")
            return original(path, flags, mode, **more)

        original = os.open
        monkeypatch.setattr(lock.os, "open", refused)


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("wrong", [DAY, -DAY])
def test_the_clock_of_this_machine_does_not_matter(tmp_path, monkeypatch, wrong):
    """A lock's age is that of the file system, which all machines that share it have in common."""
    now = time.time
    monkeypatch.setattr(time, "time", lambda: now() + wrong)
    held_elsewhere(tmp_path)
    assert lock.is_alive(tmp_path)
    with pytest.raises(RunLockedError, match="process 1 on not-"), lock.locked(tmp_path):
        pass
    held_elsewhere(tmp_path, beat=wrong)  # fresh by the wrong clock
    assert not lock.is_alive(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["lock"]
    assert taken(tmp_path)
