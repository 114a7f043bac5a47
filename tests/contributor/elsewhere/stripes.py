"""A data set: stripes, upright or level."""

import numpy as np

from fedgm.data.dataset import Dataset, channel_statistics
from fedgm.draws import generator


def load(train: int, test: int, resolution: int, seed: int) -> Dataset:
    """Class 0 has columns of one grey each, class 1 rows."""
    rng = generator(seed, "stripes")
    labels = rng.integers(2, size=train + test)
    greys = rng.integers(256, size=(train + test, 1, resolution, 1), dtype=np.uint8)
    images = np.broadcast_to(greys, (train + test, resolution, resolution, 3)).copy()
    images[labels == 1] = images[labels == 1].swapaxes(1, 2)
    mean, std = channel_statistics(images[:train])
    return Dataset(
        images[:train], labels[:train], images[train:], labels[train:], ("upright", "level"), mean, std
    )
