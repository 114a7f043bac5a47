"""Textured images made on the spot: no download, learnable by a small CNN, hard for a linear model.

A class is a pair of gratings and a tint. Phases are random, so no single pixel tells the class; a distractor
grating, jitter of the tint and noise keep it from being easy.
"""

import numpy as np
from numpy.typing import NDArray

from fedgm.data.dataset import Dataset, channel_statistics
from fedgm.draws import generator
from fedgm.errors import require

Floats = NDArray[np.float32]

_BLOCK = 2_000  # images made at a time: keeps 50,000 images of 32x32 within 100 MB of scratch memory


def load(
    train: int | None = 10_000,
    test: int | None = 2_000,
    resolution: int = 16,
    classes: int = 10,
    seed: int = 0,
    noise: float = 0.8,
    distractor: float = 1.0,
    jitter: float = 0.5,
    tint: float = 0.25,
) -> Dataset:
    """``train`` and ``test`` images with classes as equal as can be; ``None`` gives 10,000 and 2,000.

    ``noise`` and ``distractor`` are amplitudes relative to the texture that carries the class, ``tint``
    is that of a class's own colour, ``jitter`` is how much colours of one class differ.

    >>> data = load(train=20, test=10, resolution=8, classes=2)
    >>> data.train_images.shape, data.classes
    ((20, 8, 8, 3), ('texture 0', 'texture 1'))
    """
    train, test = train or 10_000, test or 2_000
    require(classes >= 2, "data.source.classes", classes, "at least 2", "data.source.classes=10")
    require(resolution >= 8, "data.resolution", resolution, "at least 8", "data.resolution=16")
    for key, size in (("train_samples", train), ("test_samples", test)):
        require(
            size >= classes, f"data.{key}", size, f"at least {classes}, one per class", f"data.{key}=1000"
        )
    train_labels = _labels(train, classes, seed, "train")
    test_labels = _labels(test, classes, seed, "test")
    colour = (tint, jitter)
    images = [
        _images(labels, resolution, classes, noise, distractor, colour, generator(seed, f"synthetic-{split}"))
        for split, labels in (("train", train_labels), ("test", test_labels))
    ]
    mean, std = channel_statistics(images[0])
    names = tuple(f"texture {label}" for label in range(classes))
    return Dataset(images[0], train_labels, images[1], test_labels, names, mean, std)


def _labels(count: int, classes: int, seed: int, split: str) -> NDArray[np.int64]:
    return (
        generator(seed, f"synthetic-{split}-labels").permutation(np.arange(count) % classes).astype(np.int64)
    )


def _images(
    labels: NDArray[np.int64],
    resolution: int,
    classes: int,
    noise: float,
    distractor: float,
    tint: tuple[float, float],
    rng: np.random.Generator,
) -> NDArray[np.uint8]:
    images = np.empty((len(labels), resolution, resolution, 3), np.uint8)
    for start in range(0, len(labels), _BLOCK):
        block = labels[start : start + _BLOCK]
        texture = _texture(block, resolution, classes, rng)
        texture += distractor * _grating(
            rng.uniform(0, np.pi, len(block)), rng.uniform(1.6, 3.4, len(block)), resolution, rng
        )
        colour = _tint(block, classes, tint, rng)
        values = rng.standard_normal((len(block), resolution, resolution, 3), np.float32)
        values *= noise
        values += texture[..., None] * (1 + 0.5 * colour)[:, None, None, :]
        values += 0.5 * colour[:, None, None, :]
        images[start : start + _BLOCK] = np.clip(127.5 + 40 * values, 0, 255).astype(np.uint8)
    return images


def _texture(labels: NDArray[np.int64], resolution: int, classes: int, rng: np.random.Generator) -> Floats:
    """A coarse and a fine grating at the class's two angles, mirrored at random: flips keep the class."""
    side = rng.choice([-1.0, 1.0], len(labels))
    jitter = rng.normal(0, 0.06, (2, len(labels)))
    golden = (labels * 0.618034) % 1  # spreads the second angle unlike the first
    coarse = side * (0.5 * np.pi * labels / (classes - 1) + jitter[0])
    fine = side * (0.5 * np.pi * golden + jitter[1])
    texture = _grating(coarse, rng.uniform(1.6, 2.0, len(labels)), resolution, rng)
    texture += _grating(fine, rng.uniform(2.8, 3.4, len(labels)), resolution, rng)
    return texture


def _grating(
    angle: NDArray[np.float64], cycles: NDArray[np.float64], resolution: int, rng: np.random.Generator
) -> Floats:
    """Sine waves of random phase with ``cycles`` periods across the image."""
    axis = (2 * np.pi / resolution) * np.arange(resolution, dtype=np.float32)
    phase = rng.uniform(0, 2 * np.pi, len(angle))
    down = (cycles * np.sin(angle)).astype(np.float32)[:, None] * axis + phase.astype(np.float32)[:, None]
    across = (cycles * np.cos(angle)).astype(np.float32)[:, None] * axis
    return np.sin(down[:, :, None] + across[:, None, :])


def _tint(
    labels: NDArray[np.int64], classes: int, tint: tuple[float, float], rng: np.random.Generator
) -> Floats:
    """A hue around the colour circle; with the usual (0.25, 0.5), own and jitter, it is buried."""
    own, jitter = tint
    hue = 2 * np.pi * labels / classes
    wheel = np.cos(hue[:, None] - np.array([0, 2 * np.pi / 3, 4 * np.pi / 3]))
    return (own * wheel + rng.normal(0, jitter, (len(labels), 3))).astype(np.float32)
