"""The one way in for files that can come from anybody: regular, capped in size, decoded, limited in depth.

Whatever is wrong with one is an ``UnfitFileError``, which says it in a few words: a run folder, an archive
of results and a sweep file may hold anything.
"""

import json
import os
import re
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import yaml

DEEPEST = 40  # levels of lists and keys in each other; ours have 6
MOST = 5_000_000  # values of one file or line: yaml's aliases can stand for any number
LINE = 2**26  # bytes of a line
HALVES = re.compile("[\ud800-\udfff]")  # of surrogate pairs: JSON can name them, nothing can write them
LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # ten times as fast where libyaml is there


class UnfitFileError(ValueError):
    """A file that is not what was written, or not what it should be."""


def opened(path: Path, largest: int) -> BinaryIO:
    """The open file, if it is one; a pipe would never end, and a device has no size."""
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    status = os.fstat(handle)
    if not stat.S_ISREG(status.st_mode) or status.st_size > largest:
        os.close(handle)
        regular = stat.S_ISREG(status.st_mode)
        raise UnfitFileError(f"it has more than {largest:,} bytes" if regular else "it is not a file")
    return os.fdopen(handle, "rb")


def read_bytes(path: Path, largest: int) -> bytes:
    """All of a file; one that grows while it is read, or has no size, is cut off."""
    with opened(path, largest) as file:
        return file.read(os.fstat(file.fileno()).st_size)  # ``largest`` would be taken from memory at once


def read_text(path: Path, largest: int) -> str:
    """The text of a file in UTF-8."""
    return decoded(read_bytes(path, largest))


def decoded(data: bytes) -> str:
    """UTF-8 as text."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UnfitFileError(f"it is not text in UTF-8 (byte {error.start})") from None


def lines(path: Path, largest: int) -> Iterator[bytes]:
    """Line by line, so that a large file needs the memory of a line."""
    with opened(path, largest) as file:
        while line := file.readline(LINE + 1):
            if len(line) > LINE:
                raise UnfitFileError(f"it has a line of more than {LINE:,} bytes")
            yield line


def from_json(data: bytes | str) -> Any:
    """Values of JSON that are safe to walk through."""
    try:
        value = json.loads(data)
    except RecursionError:
        raise UnfitFileError(f"it is nested more than {DEEPEST} levels deep") from None
    except ValueError as error:  # also bytes that are not UTF-8, and numbers of more than 4,300 digits
        raise UnfitFileError(f"it is not JSON ({error})") from None
    return require_plain(value)


def from_yaml(text: str, aliases: bool = True) -> Any:
    """Values of a yaml text that are safe to walk through; nothing is built."""
    require_shallow(text, aliases)
    try:
        return require_plain(yaml.load(text, LOADER))
    except UnfitFileError:
        raise
    except (yaml.YAMLError, ValueError) as error:  # also numbers of more than 4,300 digits, impossible dates
        raise UnfitFileError(f"it is not yaml ({' '.join(str(error).split())})") from None


def require_shallow(text: str, aliases: bool = True) -> None:
    """Refuse a yaml text that is nested too deep to be loaded, which is recursive, in C."""
    depth = 0
    try:
        for event in yaml.parse(text, LOADER):
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > DEEPEST:
                raise UnfitFileError(f"it is nested more than {DEEPEST} levels deep")
            if not aliases and isinstance(event, yaml.AliasEvent):
                raise UnfitFileError("it has aliases, which can stand for any amount of memory")
    except yaml.YAMLError as error:
        raise UnfitFileError(f"it is not yaml ({' '.join(str(error).split())})") from None


def require_plain(value: Any) -> Any:
    """Return texts, numbers, lists and keys as they are; anything else, or too much of it, is damage."""
    level = [value]
    for _ in range(DEEPEST):
        below: list[Any] = []
        for entry in level:
            if isinstance(entry, dict):
                if not all(isinstance(key, str) for key in entry):
                    key = next(key for key in entry if not isinstance(key, str))
                    raise UnfitFileError(f"it has a key that is not text ({str(key)[:40]})")
                below += [*entry, *entry.values()]
            elif isinstance(entry, list):
                below += entry
            elif not _is_plain(entry):
                raise UnfitFileError(_problem(entry))
            if len(below) > MOST:
                raise UnfitFileError(f"it has more than {MOST:,} values")
        if not below:
            return value
        level = below
    raise UnfitFileError(f"it is nested more than {DEEPEST} levels deep")


def _is_plain(entry: Any) -> bool:
    if type(entry) is int:
        return -sys.float_info.max <= entry <= sys.float_info.max
    if isinstance(entry, str):
        return entry.isascii() or not HALVES.search(entry)
    return entry is None or isinstance(entry, float | bool)


def _problem(entry: Any) -> str:
    if isinstance(entry, int | str):
        return "it has a number beyond 1e308" if isinstance(entry, int) else "it has text that is not Unicode"
    return f"it has a value of the kind {type(entry).__name__}, where texts and numbers belong"
