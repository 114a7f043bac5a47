"""CIFAR-10: fetched once, verified by SHA-256 whatever the source, stored as one uint8 array."""

import hashlib
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np

from fedgm.data import cifar10_sources as sources
from fedgm.data.cifar10_sources import Arrays, Bytes
from fedgm.data.dataset import Dataset
from fedgm.data.fetching import Progress, Unavailable, alone, cache_folder, scratch_folder, silent
from fedgm.errors import DataError, require

CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
MEAN = (0.49139968, 0.48215841, 0.44653091)
STD = (0.24703223, 0.24348513, 0.26158784)
SHA256 = {
    "train_images": "47af8b02cfcfb6cdf3dbbd1969ad7f1b70f4413f6f80f437b020ee4e5bc8304a",
    "test_images": "f9b1e2130bab680db56eb06d886f7f1ad0f1183907ceff4659d1735c890f5b04",
    "train_labels": "2b7cd2f24487317614016b72ffd53071c3062f592f0eb300c18a770d41ae1253",
    "test_labels": "cec8a24a1e92aa2ecaa0bbd3dbfa86bf6cd8759fbd209a832824c8cf0afca9d5",
}
FILE = "cifar10.npy"
SOURCES: dict[str, Callable[[Path, Path, Progress, str], Arrays]] = {
    "local": sources.local,
    "official": sources.official,
    "mirror": sources.mirror,
}
_SHAPES = {
    "train_images": (50_000, 32, 32, 3),
    "test_images": (10_000, 32, 32, 3),
    "train_labels": (50_000,),
    "test_labels": (10_000,),
}


def load(
    root: str | None = None,
    source: str = "auto",
    progress: Progress | None = None,
    url: str = sources.OFFICIAL_URL,
) -> Dataset:
    """The stored array, else the first source that has it; ``auto`` asks local, official, mirror in turn."""
    require(source in ("auto", *SOURCES), "source", source, f"auto, {', '.join(SOURCES)}", "--source auto")
    folder = cache_folder(root)
    arrays, reason = _stored(folder)
    if arrays is None:
        with alone(folder, "cifar10"):
            arrays, reason = _stored(folder)  # another process may have fetched it while we waited
            if arrays is None:
                names = list(SOURCES) if source == "auto" else [source]
                arrays = _fetch(folder, names, [reason], progress or silent, url)
    return Dataset(
        train_images=arrays.train_images,
        train_labels=arrays.train_labels.astype(np.int64),
        test_images=arrays.test_images,
        test_labels=arrays.test_labels.astype(np.int64),
        classes=CLASSES,
        mean=MEAN,
        std=STD,
    )


def mismatches(arrays: Arrays) -> list[str]:
    """The arrays that are not CIFAR-10's, by shape or by SHA-256; 0.1 s for all four."""
    return [
        name
        for name, array in arrays._asdict().items()
        if array.shape != _SHAPES[name]
        or hashlib.sha256(np.ascontiguousarray(array).data).hexdigest() != SHA256[name]
    ]


def _stored(folder: Path) -> tuple[Arrays | None, str]:
    """The verified array of an earlier fetch, mapped and not read, or the reason why there is none."""
    path = folder / FILE
    try:
        # "c": pages are shared between processes, and torch gets memory that it may call writable.
        flat: Bytes = np.load(path, mmap_mode="c", allow_pickle=False)
    except FileNotFoundError:
        return None, f"no {path}"
    except (OSError, ValueError, EOFError) as error:
        return None, f"{path} cannot be read: {error}"
    ends = np.cumsum([int(np.prod(shape)) for shape in _SHAPES.values()])
    if flat.dtype != np.uint8 or flat.shape != (ends[-1],):
        return None, f"{path} holds something else: {flat.dtype} {flat.shape}"
    parts = np.split(flat.view(np.ndarray), ends[:-1])
    arrays = Arrays(*(part.reshape(shape) for part, shape in zip(parts, _SHAPES.values(), strict=True)))
    if wrong := mismatches(arrays):
        return None, f"{path} is damaged: SHA-256 of {', '.join(wrong)} differs"
    return arrays, ""


def _fetch(folder: Path, names: list[str], tried: list[str], progress: Progress, url: str) -> Arrays:
    with scratch_folder(folder, "cifar10") as scratch:
        for name in names:
            try:
                arrays = SOURCES[name](folder, scratch, progress, url)
            except Unavailable as error:
                tried.append(f"{name}: {error}")
                continue
            if wrong := mismatches(arrays):
                tried.append(f"{name}: SHA-256 of {', '.join(wrong)} differs from CIFAR-10's")
                continue
            progress("store", 0, 1)
            _store(arrays, scratch / FILE, folder / FILE)
            progress("store", 1, 1)
            stored, reason = _stored(folder)
            if stored is None:
                raise DataError(f"what was just written does not read back: {reason}")
            return stored
    raise DataError(
        "CIFAR-10 cannot be fetched. Tried:\n"
        + "\n".join(f"  - {reason}" for reason in ["stored array: " + tried[0], *tried[1:]])
        + "\nRun without it: data=synthetic"
        + f"\nOr get {sources.ARCHIVE} (170 MB, {sources.OFFICIAL_URL})"
        + f"\nand put it here: {folder / sources.ARCHIVE}"
    )


def _store(arrays: Arrays, temporary: Path, final: Path) -> None:
    """One flat array: images, then labels; it appears under its name complete or not at all."""
    with temporary.open("wb") as file:
        np.save(file, np.concatenate([array.reshape(-1) for array in arrays]), allow_pickle=False)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(final)
