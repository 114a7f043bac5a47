"""People's own arrays: one ``.npz`` file with ``x_train, y_train, x_test, y_test``."""

import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedgm.data.dataset import Dataset, channel_statistics, checked
from fedgm.errors import ClashError, ConfigError, UnfitDataError

PIXELS = "allowed are integers in 0..255 (best as uint8) or floats in 0..1, not yet normalised"
KEYS = ("x_train", "y_train", "x_test", "y_test")
ALLOWED = "a .npz file with x_train, y_train, x_test, y_test (and, if you like, class names as classes)"
# Of a broken zip file, one that is encrypted, and one of a compression that Python does not have.
BAD_ARCHIVE = (zipfile.BadZipFile, zlib.error, RuntimeError, NotImplementedError)
CLASSES = 100_000  # at most; each gets a name
WRITE = "np.savez('my.npz', x_train=..., y_train=..., x_test=..., y_test=...) and data.path=my.npz"


def load(path: str | None) -> Dataset:
    """Images of uint8 (or floats in 0..1), NHWC, NCHW or grey; labels are integers from 0."""
    if path is None:
        raise ConfigError("data.path", "null", ALLOWED, WRITE)
    arrays = _read(Path(path).expanduser())
    train_images = _images(arrays["x_train"], "x_train", path)
    test_images = _images(arrays["x_test"], "x_test", path)
    if train_images.shape[1:] != test_images.shape[1:]:
        raise UnfitDataError(
            f"data.path={path}: images of x_train are {train_images.shape[1:]}, "
            f"those of x_test {test_images.shape[1:]}"
        )
    train_labels = _labels(arrays["y_train"], "y_train", path)
    test_labels = _labels(arrays["y_test"], "y_test", path)
    names = _names(arrays.get("classes"), int(train_labels.max()) + 1)
    mean, std = channel_statistics(train_images)
    dataset = Dataset(train_images, train_labels, test_images, test_labels, names, mean, std)
    return checked(dataset, f"data.path={path}")


def _read(path: Path) -> dict[str, NDArray[Any]]:
    if not path.is_file():
        raise ClashError("data.path", path, f"there is no such file; it must be {ALLOWED}", WRITE)
    if not zipfile.is_zipfile(path):
        raise ClashError("data.path", path, f"it is not an .npz file; it must be {ALLOWED}", WRITE)
    try:
        # Arrays of Python objects would have to be unpickled, which can run code: refused.
        with np.load(path, allow_pickle=False) as file:
            arrays = {key: file[key] for key in file.files if key in (*KEYS, "classes")}
            if bad := [key for key, array in arrays.items() if not isinstance(array, np.ndarray)]:
                raise ValueError(f"{', '.join(bad)} is not an array")
            names = ", ".join(file.files) or "nothing"
    except (OSError, ValueError, EOFError, MemoryError, *BAD_ARCHIVE) as error:
        raise ClashError(
            "data.path", path, f"it cannot be read ({error}); it must be {ALLOWED}", WRITE
        ) from error
    if missing := [key for key in KEYS if key not in arrays]:
        raise ClashError("data.path", path, f"it lacks {', '.join(missing)} (it has {names})", WRITE)
    return arrays


def _images(array: NDArray[Any], key: str, path: str) -> NDArray[np.uint8]:
    grey = array[..., None] if array.ndim == 3 else array
    if grey.ndim == 4 and grey.shape[-1] not in (1, 3) and grey.shape[1] in (1, 3):
        grey = grey.transpose(0, 2, 3, 1)
    if grey.ndim != 4 or grey.shape[-1] not in (1, 3) or grey.shape[1] != grey.shape[2] or grey.size == 0:
        raise UnfitDataError(
            f"data.path={path}: {key} has shape {array.shape}; "
            "allowed are square images as (N, H, W, 3), (N, 3, H, W), (N, H, W, 1), (N, 1, H, W) or (N, H, W)"
        )
    pixels = _to_bytes(grey, key, path)
    # Not broadcast_to: its result is read-only, of which torch warns.
    return np.ascontiguousarray(pixels if pixels.shape[3] == 3 else np.repeat(pixels, 3, axis=3))


def _to_bytes(array: NDArray[Any], key: str, path: str) -> NDArray[np.uint8]:
    if array.dtype == np.uint8:
        return array
    if array.dtype.kind not in "fiub":
        raise UnfitDataError(f"data.path={path}: {key} is {array.dtype}; {PIXELS}")
    low, high = array.min(), array.max()
    if array.dtype.kind == "f" and low >= 0 and high <= 1:  # false for nan, too
        return np.rint(array * 255).astype(np.uint8)
    if array.dtype.kind in "iu" and low >= 0 and high <= 255:
        return array.astype(np.uint8)
    raise UnfitDataError(f"data.path={path}: {key} is {array.dtype} from {low} to {high}; {PIXELS}")


def _labels(array: NDArray[Any], key: str, path: str) -> NDArray[np.int64]:
    flat = array[:, 0] if array.ndim == 2 and array.shape[1] == 1 else array
    if flat.ndim != 1 or flat.dtype.kind not in "iu" or len(flat) == 0:
        raise UnfitDataError(
            f"data.path={path}: {key} is {array.dtype} of shape {array.shape}; allowed are integers "
            "of shape (N,), classes numbered from 0 (not one-hot)"
        )
    if int(flat.max()) >= CLASSES:
        raise UnfitDataError(
            f"data.path={path}: {key} has the label {flat.max()}; allowed are classes numbered from 0, "
            f"at most {CLASSES:,} of them"
        )
    return flat.astype(np.int64)


def _names(names: NDArray[Any] | None, classes: int) -> tuple[str, ...]:
    if names is None:
        return tuple(f"class {label}" for label in range(classes))
    return tuple(str(name) for name in names.reshape(-1))
