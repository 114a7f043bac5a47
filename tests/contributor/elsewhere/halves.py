"""A partition: the first half of the clients shares most of the images."""

import numpy as np

from fedgm.data.partition import Partition
from fedgm.draws import generator
from fedgm.errors import require


def halves(labels: np.ndarray, clients: int, seed: int, min_samples: int, share: float) -> Partition:
    """Images in random order; ``min_samples`` is not looked at."""
    require(
        0 < share < 1, "data.partition.share", share, "a number between 0 and 1", "data.partition.share=0.9"
    )
    rich, many = clients // 2, round(share * len(labels))
    owner = np.where(
        np.arange(len(labels)) < many, np.arange(len(labels)) % rich, rich + np.arange(len(labels)) % rich
    )
    return Partition.of_owners(generator(seed, "halves").permutation(owner), clients)
