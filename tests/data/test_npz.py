import zipfile
from pathlib import Path

import numpy as np
import pytest

from fedgm.data import npz
from fedgm.errors import ConfigError, RefusedError

RNG = np.random.default_rng(0)
PIXELS = RNG.integers(0, 256, (12, 6, 6, 3), dtype=np.uint8)
LABELS = np.arange(12) % 3


def written(tmp_path, **changes):
    arrays = {"x_train": PIXELS, "y_train": LABELS, "x_test": PIXELS[:4], "y_test": LABELS[:4], **changes}
    path = tmp_path / "own.npz"
    np.savez(path, **{key: value for key, value in arrays.items() if value is not None})
    return str(path)


def test_bytes_come_back_as_they_are(tmp_path):
    data = npz.load(written(tmp_path, y_train=LABELS[:, None].astype(np.uint8)))
    assert (data.train_images == PIXELS).all()
    assert data.train_labels.tolist() == LABELS.tolist()
    assert data.train_labels.dtype == np.int64
    assert data.classes == ("class 0", "class 1", "class 2")
    assert data.mean == pytest.approx(PIXELS.mean((0, 1, 2)) / 255)


@pytest.mark.parametrize(
    "convert",
    [
        lambda x: x.transpose(0, 3, 1, 2),
        lambda x: (x / 255).astype(np.float32),
        lambda x: (x / 255).transpose(0, 3, 1, 2),
        lambda x: x.astype(np.int32),
    ],
)
def test_other_layouts_and_types_mean_the_same(tmp_path, convert):
    data = npz.load(written(tmp_path, x_train=convert(PIXELS), x_test=convert(PIXELS[:4])))
    assert (data.train_images == PIXELS).all()
    assert data.test_images.dtype == np.uint8
    assert data.train_images.flags.c_contiguous


@pytest.mark.parametrize("shape", [(12, 6, 6), (12, 6, 6, 1), (12, 1, 6, 6)])
def test_grey_images_get_three_equal_channels(tmp_path, shape):
    grey = PIXELS[..., 0].reshape(shape)
    data = npz.load(written(tmp_path, x_train=grey, x_test=grey[:4]))
    assert data.train_images.shape == (12, 6, 6, 3)
    assert all((data.train_images[..., c] == PIXELS[..., 0]).all() for c in range(3))


def test_class_names_are_read(tmp_path):
    assert npz.load(written(tmp_path, classes=np.array(["cat", "dog", "eel"]))).classes == (
        "cat",
        "dog",
        "eel",
    )


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"y_test": None, "x_test": None}, r"lacks x_test, y_test \(it has x_train, y_train\)"),
        ({"x_train": PIXELS.astype(float)}, r"x_train is float64 from .* floats in 0\.\.1"),
        ({"x_train": np.full((12, 6, 6, 3), np.nan)}, "x_train is float64 from nan"),
        ({"x_train": PIXELS[:, :5]}, r"x_train has shape \(12, 5, 6, 3\); allowed are square"),
        ({"x_train": PIXELS[:, :4, :4]}, r"x_train are \(4, 4, 3\), those of x_test \(6, 6, 3\)"),
        ({"y_train": np.eye(12)}, "not one-hot"),
        ({"y_train": LABELS - 1}, "labels run from -1"),
        ({"y_test": LABELS[:4] + 5}, "test labels run from 5 to 7, but there are 3 classes"),
        ({"y_train": LABELS[:5]}, "12 train images but 5 labels"),
        ({"y_train": np.array([object()] * 12)}, "cannot be read"),
        ({"x_train": np.full((12, 6, 6, 3), "a")}, "x_train is <U1; allowed are integers"),
        ({"x_train": np.zeros((12, 6, 6, 3), complex)}, "x_train is complex128; allowed are integers"),
        ({"x_train": np.zeros((12, 6, 6, 3), "M8[s]")}, "x_train is datetime64.*; allowed are integers"),
        ({"x_train": np.zeros((12, 0, 0, 3), np.uint8)}, r"x_train has shape \(12, 0, 0, 3\)"),
        ({"y_train": np.full(12, 2**62)}, "y_train has the label 4611686018427387904; .* at most 100,000"),
    ],
)
def test_what_does_not_fit_is_named(tmp_path, changes, said):
    with pytest.raises(RefusedError, match=said) as caught:
        npz.load(written(tmp_path, **changes))
    assert "data.path=" in str(caught.value)


def test_a_missing_or_foreign_file_says_how_to_write_one(tmp_path):
    (tmp_path / "text.npz").write_text("hello")
    np.save(tmp_path / "one.npy", PIXELS)
    for path in (None, str(tmp_path / "none.npz"), str(tmp_path / "text.npz"), str(tmp_path / "one.npy")):
        with pytest.raises(ConfigError, match=r"data\.path=.*np\.savez"):
            npz.load(path)


@pytest.mark.parametrize("key", ["x_train", "y_test", "classes"])
def test_a_member_that_is_no_array_is_refused(tmp_path, key):
    path = written(tmp_path, **{key: None})
    with zipfile.ZipFile(path, "a") as file:
        file.writestr(f"{key}.npy", b"hello")
    with pytest.raises(ConfigError, match=rf"data\.path=.*{key} is not an array.*np\.savez"):
        npz.load(path)


def test_a_compression_that_python_does_not_have_is_refused(tmp_path):
    data = bytearray(Path(written(tmp_path)).read_bytes())
    place = data.index(b"PK\x01\x02")
    data[place + 10 : place + 12] = (99).to_bytes(2, "little")  # the method of the first member
    (tmp_path / "odd.npz").write_bytes(data)
    with pytest.raises(ConfigError, match=r"data\.path=.*cannot be read"):
        npz.load(str(tmp_path / "odd.npz"))
