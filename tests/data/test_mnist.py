"""The real digits and clothes from their real sources; the first run on a machine fetches 42 megabytes."""

import gzip
import hashlib
import io
import tarfile

import numpy as np
import pytest

from fedgm.data import mnist
from fedgm.data.fetching import silent
from fedgm.errors import ConfigError, DataError

MD5 = {  # of the official idx files, unpacked
    "mnist": [
        "6bbc9ace898e44ae57da46a324031adb", "2646ac647ad5339dbf082846283269ea",
        "a25bea736e30d166cdddb491f175f624", "27ae3e4e09519cfbb04c329615203637",
    ],
    "fashion_mnist": [
        "f4a8712d7a061bf5bd6d2ca38dc4d50a", "8181f5470baa50b63fa0f6fddb340f0a",
        "9018921c3c673c538a1fc5bad174d6f9", "15d484375f8d13e6eb1aabb0c3f46965",
    ],
}  # fmt: skip


def head(shape: tuple[int, ...]) -> bytes:
    return bytes([0, 0, 8, len(shape)]) + b"".join(size.to_bytes(4, "big") for size in shape)


def tar(files: dict[str, bytes], mode: str) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode=mode) as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return file.getvalue()


def ar(files: dict[str, bytes]) -> bytes:
    parts = [b"!<arch>\n"]
    for name, content in files.items():
        parts += [f"{name + '/':16}{0:<12}{0:<6}{0:<6}{100644:<8}{len(content):<10}`\n".encode(), content]
        parts += [b"\n"] if len(content) % 2 else []
    return b"".join(parts)


@pytest.fixture(scope="module", params=["mnist", "fashion_mnist"])
def real(request):
    try:
        return request.param, mnist.SETS[request.param].stored.content()
    except DataError as error:
        if "cannot be fetched" in str(error):
            pytest.skip(f"{request.param} cannot be fetched here")
        raise


def test_the_bytes_are_those_of_the_official_files(real):
    which, content = real
    parts = mnist.arrays(content)
    assert [hashlib.md5(head(part.shape) + part.tobytes()).hexdigest() for part in parts] == MD5[which]
    pixels = parts[0] / 255.0
    assert pixels.mean() == pytest.approx(mnist.SETS[which].mean, abs=5e-5)
    assert pixels.std() == pytest.approx(mnist.SETS[which].std, abs=5e-5)


def test_images_have_a_border_and_three_equal_channels(real):
    which, content = real
    loaded = mnist.load(which, train=1000, test=500, seed=0)
    assert loaded.train_images.shape == (1000, 32, 32, 3)
    assert len(loaded.classes) == 10
    assert np.bincount(loaded.test_labels, minlength=10).min() >= 40
    assert not loaded.train_images[:, :2].any()
    assert not loaded.train_images[:, :, 30:].any()
    assert np.array_equal(loaded.train_images[..., 0], loaded.train_images[..., 2])
    assert loaded.train_images.flags.writeable  # torch warns of read-only memory
    own = mnist.arrays(content)
    first = np.flatnonzero((own[0] == loaded.train_images[0, 2:30, 2:30, 0]).all((1, 2)))
    assert loaded.train_labels[0] in own[2][first]


def test_both_packages_are_read_alike(monkeypatch):
    monkeypatch.setattr(
        mnist, "FILES", {"train-images-idx3-ubyte": (2, 1, 1), "t10k-labels-idx1-ubyte": (3,)}
    )
    files = {"train-images-idx3-ubyte": b"\1\2", "t10k-labels-idx1-ubyte": b"\3\4\5"}
    whole = {name: head(mnist.FILES[name]) + content for name, content in files.items()}
    npm = tar({f"package/data/{name}": content for name, content in whole.items()}, "w:gz")
    place = "./usr/share/datasets/fashion-mnist"
    packed = {f"{place}/{name}.gz": gzip.compress(content) for name, content in whole.items()}
    deb = ar({"debian-binary": b"2.0", "control.tar.xz": b"odd", "data.tar.xz": tar(packed, "w:xz")})
    assert mnist.read_npm(npm, silent) == mnist.read_deb(deb, silent) == b"\1\2\3\4\5"


@pytest.mark.parametrize(
    "data", [head((2,)) + b"\1", head((2,)) + b"\1\2\3", head((3,)) + b"\1\2", b"\0\0\x0d\1\0\0\0\2\1\2", b""]
)
def test_an_idx_file_of_another_shape_is_refused(data):
    assert mnist.idx(head((2,)) + b"\1\2", (2,)) == b"\1\2"
    with pytest.raises(DataError, match="not an idx file"):
        mnist.idx(data, (2,))


def test_packages_of_another_content_are_refused():
    bad = {
        "mnist": [b"no", tar({"package/x": b""}, "w:gz")],
        "fashion_mnist": [b"no", ar({"data.tar.xz": b"no"})],
    }
    for which, archive in ((which, archive) for which, archives in bad.items() for archive in archives):
        stored = mnist.SETS[which].stored
        with pytest.raises(DataError, match=r"is not the package|there is no data\.tar\.xz"):
            stored.decoded(archive, silent)


def test_an_unknown_set_is_refused():
    with pytest.raises(ConfigError, match=r"data\.source\.which=emnist: expected mnist or fashion_mnist"):
        mnist.load("emnist")
