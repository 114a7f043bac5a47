"""Seals: which run a stored file belongs to, and whether it is still what was written.

A run is named by the hash of its configuration and its seed. Files that only the run itself reads again
(checkpoints, past models, client states) carry that name in their first line. What others read keeps its
format: summary.json and the decisions of a sweep have a ``seal`` key, and a summary, which names the run,
holds the checksums of config.yaml, metrics.jsonl and model.safetensors. Older files have none of this; they
are read all the same.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from fedgm.errors import RefusedError
from fedgm.files import as_json, read_json, write_atomically

FIRST = b"fedgm seal "  # then `3`, the run's name, the size, the checksum, a line break, and the content
UNSIGNED, UNSIZED, PRESENT = b"1", b"2", b"3"  # older seals do not name the run, or have no size
LONGEST = 300  # bytes of a seal
UNNAMED = "unnamed"  # a run without a configuration, in tests and notebooks
KEY = "seal"
SUMMARY, CONFIG = "summary.json", "config.yaml"


class DamagedError(ValueError):
    """A file that is not what was written, or that belongs to another run."""


def digest(*parts: bytes | memoryview) -> str:
    """BLAKE2b of the parts, in hexadecimal digits.

    >>> digest(b"one", b"two")[:8], digest(b"onetwo")[:8]
    ('03521c17', '03521c17')
    """
    checksum = hashlib.blake2b(digest_size=32)
    for part in parts:
        checksum.update(part)
    return checksum.hexdigest()


def name_of(hash: str, seed: int) -> str:
    """The name of a run in its seals.

    >>> name_of("0123456789abcdef0123456789abcdef", seed=3)
    '0123456789abcdef-3'
    """
    return f"{hash[:16]}-{seed}"


def sealed(content: bytes | memoryview, file: str, run: str) -> bytes:
    """The content behind the run's name and a checksum of it all, the file's name included.

    The checksum comes first: without it a damaged seal would leave a file that reads as an old, unsealed one.
    """
    checksum = digest(f"{run}\n{file}\n".encode(), content)
    size = memoryview(content).nbytes
    return b"".join((FIRST, PRESENT, f" {run} {size} {checksum}\n".encode(), content))


def read_sealed(path: Path, file: str, run: str) -> bytes:
    """The content, verified; older files are returned as they are."""
    if path.exists() and not path.is_file():
        raise DamagedError(f"{file} is not a file")
    with path.open("rb") as stream:
        first = stream.readline(LONGEST)
        number, *words = first.removeprefix(FIRST).rstrip(b"\n").split(b" ")
        is_sized = first.startswith(FIRST) and number == PRESENT and len(words) == 3
        if is_sized and words[1] != str(path.stat().st_size - len(first)).encode():
            raise DamagedError(f"the size of {file} is wrong")  # and it may be more than fits into memory
        content = _rest(stream, file)
    if not first.startswith(FIRST):
        return first + content
    if number == UNSIGNED and words == [digest(file.encode(), content).encode()]:
        return content
    if not is_sized and (number != UNSIZED or len(words) != 2):
        raise DamagedError(f"the seal of {file} is not readable")
    owner, checksum = words[0].decode(errors="replace"), words[-1]
    if digest(f"{owner}\n{file}\n".encode(), content).encode() != checksum:
        raise DamagedError(f"the checksum of {file} is wrong")
    if owner != run:
        raise DamagedError(f"{file} belongs to another run, {owner}")
    return content


def _rest(stream: BinaryIO, file: str) -> bytes:
    try:
        return stream.read()
    except MemoryError:
        raise DamagedError(f"{file} is larger than the memory") from None


def is_named(path: Path) -> bool:
    """Whether a file carries the name of its run; those of older versions do not."""
    with path.open("rb") as file:
        return file.read(len(FIRST + PRESENT)) in (FIRST + UNSIZED, FIRST + PRESENT)


def write_json(path: Path, value: Mapping[str, Any], sync: bool = False) -> dict[str, Any]:
    """Readable JSON with a seal, atomically; returns what a reader will see."""
    content = with_seal(value, path.name)
    write_atomically(path, as_json(content), sync)
    return content


def with_seal(value: Mapping[str, Any], file: str) -> dict[str, Any]:
    """What a JSON file of that name holds: the value as JSON has it, and its seal.

    >>> is_as_written(with_seal({"survivors": [1, 2]}, "rung.json"), "rung.json")
    True
    >>> is_as_written(with_seal({"survivors": [1, 2]}, "rung.json") | {"survivors": [1, 3]}, "rung.json")
    False
    """
    content: dict[str, Any] = json.loads(as_json(dict(value)))
    return {**content, KEY: _checksum(content, file)}


def is_as_written(content: Mapping[str, Any], file: str) -> bool:
    """Whether what was read from a JSON file has the seal that it was written with, or none at all."""
    try:
        return KEY not in content or content[KEY] == _checksum(content, file)
    except RecursionError:  # nested too deep to be ours
        return False


def _checksum(content: Mapping[str, Any], file: str) -> str:
    rest = {key: value for key, value in content.items() if key != KEY}
    return digest(f"{file}\n{json.dumps(rest, sort_keys=True)}".encode())


def checksums(folder: Path, files: Iterable[str]) -> dict[str, str]:
    """Size and checksum of the files of a folder, as far as they are there."""
    return {file: _of_file(folder / file) for file in files if (folder / file).is_file()}


def _of_file(path: Path, written: str = "") -> str:
    """``1234 0f3a...``; without the checksum where the size alone says that it is not ``written``."""
    size = str(path.stat().st_size)
    before, sign, _ = written.partition(" ")
    if sign and before != size:
        return size  # a sparse file of 40 GB takes minutes to read
    with path.open("rb") as file:
        checksum = hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=32)).hexdigest()
    return checksum if written and not sign else f"{size} {checksum}"  # older summaries have no sizes


def changed(folder: Path, summary: Mapping[str, Any], files: Iterable[str]) -> list[str]:
    """Those of the files that are not as their run's summary says; older ones say nothing."""
    digests = summary.get("digests")
    written: dict[str, Any] = digests if isinstance(digests, dict) else {}
    sealed = [file for file in files if file in written]
    return [file for file in sealed if not _is_as(folder / file, str(written[file]))]


def _is_as(path: Path, written: str) -> bool:
    return path.is_file() and _of_file(path, written) == written


def require_as_written(folder: Path, file: str, hint: str) -> None:
    """Refuse a file of a run folder that is not as its summary says, or whose summary was changed."""
    summary = read_json(folder / SUMMARY) or {}
    try:
        wrong = [SUMMARY] if not is_as_written(summary, SUMMARY) else changed(folder, summary, [file])
    except OSError as error:
        raise RefusedError(f"{folder / file}: {error.strerror}. Give read permission") from None
    for name in wrong:
        raise RefusedError(f"{folder / name} is damaged: it is not as the run wrote it. Try {hint}")
