"""Files that are whole at every moment, and survive a power cut where asked."""

import errno
import json
import math
import os
import socket
from pathlib import Path
from typing import Any

from fedgm import intake

LARGEST = 2**24  # bytes of a summary.json; ours have a few thousand


def write_atomically(path: Path, content: str | bytes | memoryview, sync: bool = False) -> None:
    """Write beside the target, then replace it: a reader, or a kill, sees the old file or the new one.

    With ``sync`` the new one is on the disk when this returns, content and name.
    """
    temporary = beside(path)
    data = content.encode() if isinstance(content, str) else content
    try:
        with open(temporary, "wb", opener=no_link) as file:
            file.write(data)
            file.flush()
            if sync:
                os.fsync(file.fileno())
        temporary.replace(path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
    if sync:
        sync_folder(path.parent)


def beside(path: Path) -> Path:
    """A name in that folder that only this process has: machines that share a folder repeat their pids."""
    return path.with_name(f".{path.name}.{socket.gethostname()}.{os.getpid()}.tmp")


def no_link(path: str, flags: int) -> int:
    """Opener that follows no symbolic link: a folder from elsewhere could name any file of the user."""
    return os.open(path, flags | os.O_NOFOLLOW, 0o666)


def sync_folder(folder: Path) -> None:
    """Put the names in a folder on the disk."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # some network disks sync no folders
            raise
    finally:
        os.close(handle)


def make_folder(folder: Path, sync: bool = False) -> None:
    """Make a folder and those above it; with ``sync`` each new name is on the disk."""
    if folder.is_dir():
        return
    missing = [place for place in (folder, *folder.parents) if not place.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for place in missing if sync else ():
        sync_folder(place.parent)


def user_cache() -> Path:
    """``fedgm`` in the user's cache: what can be fetched or made again."""
    stated = os.environ.get("XDG_CACHE_HOME")
    return (Path(stated) if stated else Path.home() / ".cache") / "fedgm"


def write_json(path: Path, value: Any, sync: bool = False) -> None:
    """Readable JSON, atomically; what is not a finite number becomes null.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     write_json(Path(folder, "facts.json"), {"gain": math.nan, "rounds": 3})
    ...     read_json(Path(folder, "facts.json"))
    {'gain': None, 'rounds': 3}
    """
    write_atomically(path, as_json(value), sync)


def as_json(value: Any) -> str:
    """The text of :func:`write_json`."""
    return json.dumps(_finite(value), indent=2, allow_nan=False) + "\n"


def _finite(value: Any) -> Any:
    """JSON has neither nan nor inf: a rule without a gain has nan there."""
    if isinstance(value, dict):
        return {k: _finite(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_finite(v) for v in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def read_json(path: Path) -> dict[str, Any] | None:
    """The content, or None where there is no readable file, or where it holds something other than keys."""
    try:
        content = intake.from_json(intake.read_bytes(path, LARGEST))
    except (OSError, ValueError):
        return None
    return content if isinstance(content, dict) else None
