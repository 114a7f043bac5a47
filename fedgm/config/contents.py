"""Files that a run reads count by their contents: a changed file is another run."""

import hashlib
from functools import lru_cache
from pathlib import Path
from typing import Any

# Keys that name a file or a folder; their contents enter the identity where they are set.
FILES = ("data.path", "data.source.path", "participation.speeds")


def contents(values: dict[str, Any]) -> dict[str, str]:
    """A hash for each file that is there; one that is missing is refused later, by whoever reads it."""
    pattern = str((values["data"].get("source") or {}).get("pattern") or "*")
    found: dict[str, str] = {}
    for key in FILES:
        path = _get(values, key)
        if isinstance(path, str) and (mark := _hash(Path(path).expanduser(), pattern)):
            found[key] = mark
    return found


def _get(values: dict[str, Any], key: str) -> Any:
    """The value at a dotted key, or None where a part is built from something else than keys."""
    node: Any = values
    for part in key.split("."):
        node = node.get(part) if isinstance(node, dict) else None
    return node


def _hash(path: Path, pattern: str) -> str | None:
    """Of a file its content, of a folder the names and contents of the files that are read."""
    try:
        if not path.is_dir():
            return _content(path)
        files = sorted(file for file in path.rglob(pattern) if file.is_file())
        lines = [f"{file.relative_to(path).as_posix()} {_content(file)}\n" for file in files]
    except OSError:
        return None
    return hashlib.sha256("".join(lines).encode(errors="surrogateescape")).hexdigest()


def _content(path: Path) -> str:
    """Read once for all points of a sweep, again when the file has been touched."""
    if not path.is_file():  # a pipe would never end
        raise OSError(f"{path} is no file")
    found = path.stat()
    return _read(path.resolve(), (found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns))


@lru_cache(maxsize=1024)
def _read(path: Path, stamp: tuple[int, ...]) -> str:
    del stamp  # tells two states of a file apart
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
