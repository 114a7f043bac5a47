"""A labelled image set as plain arrays, and the two ways a profile makes it smaller."""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fedgm.draws import generator
from fedgm.errors import UnfitDataError, require, require_fits

if TYPE_CHECKING:
    from fedgm.config import RunConfig
    from fedgm.data.federation import Federation


class Dataset(NamedTuple):
    """Images stay uint8; ``mean`` and ``std`` are per channel, of values scaled to 0..1."""

    train_images: NDArray[np.uint8]  # (N, H, W, 3)
    train_labels: NDArray[np.int64]  # (N,)
    test_images: NDArray[np.uint8]
    test_labels: NDArray[np.int64]
    classes: tuple[str, ...]
    mean: tuple[float, ...]
    std: tuple[float, ...]

    def federate(self, config: "RunConfig") -> "Federation":
        """The clients of a run (what every ``data.source`` can do)."""
        from fedgm.data.federation import from_run

        return from_run(self, config)


def channel_statistics(images: NDArray[np.uint8]) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Mean and standard deviation of each channel in 0..1 units, exact because counted, not summed."""
    values = np.arange(256) / 255.0
    mean: list[float] = []
    std: list[float] = []
    for channel in range(images.shape[-1]):
        counts = np.bincount(images[..., channel].reshape(-1), minlength=256)
        centre = float(counts @ values / counts.sum())
        mean.append(centre)
        # A constant channel has no spread; 1/255 keeps the normalised values finite.
        std.append(max(float(np.sqrt(counts @ (values - centre) ** 2 / counts.sum())), 1 / 255))
    return tuple(mean), tuple(std)


def subset(dataset: Dataset, train: int | None, test: int | None, seed: int) -> Dataset:
    """Keep ``train`` and ``test`` random samples with class shares kept; ``None`` keeps all.

    >>> from fedgm.data.synthetic import load
    >>> small = subset(load(train=40, test=20, resolution=8, classes=2), train=10, test=None, seed=0)
    >>> np.bincount(small.train_labels), len(small.test_labels)
    (array([5, 5]), 20)
    """
    kept_train = _stratified(dataset.train_labels, train, seed, "train")
    kept_test = _stratified(dataset.test_labels, test, seed, "test")
    return dataset._replace(
        train_images=dataset.train_images[kept_train],
        train_labels=dataset.train_labels[kept_train],
        test_images=dataset.test_images[kept_test],
        test_labels=dataset.test_labels[kept_test],
    )


def pool(dataset: Dataset, resolution: int) -> Dataset:
    """Average-pool the images to ``resolution`` squared; the statistics stay those of the full images.

    >>> from fedgm.data.synthetic import load
    >>> pool(load(train=10, test=10, resolution=16), resolution=8).train_images.shape
    (10, 8, 8, 3)
    """
    height, width = dataset.train_images.shape[1:3]
    if height == width == resolution:
        return dataset
    divisors = [str(n) for n in range(1, height + 1) if height % n == 0 and width % n == 0]
    require_fits(
        height == width and resolution > 0 and height % resolution == 0,
        "data.resolution",
        resolution,
        f"images of {height}x{width} pool to {', '.join(divisors)}"
        if height == width
        else "images are not square",
        f"data.resolution={height // 2 if height % 2 == 0 else height}",
    )
    return dataset._replace(
        train_images=_pool(dataset.train_images, height // resolution),
        test_images=_pool(dataset.test_images, height // resolution),
    )


def checked(dataset: Dataset, origin: str) -> Dataset:
    """Return ``dataset`` if its arrays fit together, else say which of them do not."""
    for split in ("train", "test"):
        images: NDArray[Any] = getattr(dataset, f"{split}_images")
        labels: NDArray[Any] = getattr(dataset, f"{split}_labels")
        if len(images) != len(labels) or len(labels) == 0:
            raise UnfitDataError(f"{origin}: {len(images)} {split} images but {len(labels)} labels")
        if labels.min() < 0 or labels.max() >= len(dataset.classes):
            raise UnfitDataError(
                f"{origin}: {split} labels run from {labels.min()} to {labels.max()}, "
                f"but there are {len(dataset.classes)} classes, numbered from 0"
            )
    return dataset


def _stratified(
    labels: NDArray[np.int64], keep: int | None, seed: int, split: str
) -> slice | NDArray[np.int64]:
    total = len(labels)
    if keep is None or keep == total:
        return slice(None)
    key = f"data.{split}_samples"
    require(1 <= keep <= total, key, keep, f"1..{total}, or null for all", f"{key}={total}")
    shuffled = generator(seed, f"subset-{split}").permutation(total)
    by_class = shuffled[np.argsort(labels[shuffled], kind="stable")]
    sizes = np.bincount(labels)
    rank = np.arange(total) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    # Every class is read at its own even pace, so any prefix holds the classes in their proportions.
    pace = (rank + 0.5) / np.repeat(sizes, sizes)
    return np.sort(by_class[np.argsort(pace, kind="stable")[:keep]])


def _pool(images: NDArray[np.uint8], factor: int) -> NDArray[np.uint8]:
    """Mean of ``factor`` x ``factor`` blocks, halves rounded up; 0.3 s for 50,000 images of 32x32."""
    count, height, width, channels = images.shape
    high, wide, area = height // factor, width // factor, factor * factor
    pooled = np.empty((count, high, wide, channels), np.uint8)
    exact = np.uint16 if area * 256 <= 65536 else np.uint32
    for start in range(0, count, 100):  # a block that stays in the processor's cache
        rows = images[start : start + 100].reshape(-1, high, factor, width * channels)
        total = rows[:, :, 0].astype(exact)
        for row in range(1, factor):
            total += rows[:, :, row]
        columns = total.reshape(-1, high, wide, factor, channels)
        total = columns[:, :, :, 0].copy()
        for column in range(1, factor):
            total += columns[:, :, :, column]
        pooled[start : start + 100] = (total + exact(area // 2)) // exact(area)
    return pooled
