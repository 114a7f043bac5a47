"""Data sharing (Zhao et al. 2018): one small balanced set that every client has besides its own samples."""

import numpy as np
from numpy.typing import NDArray

from fedgm.data.partition import ClientSplit, Indices
from fedgm.draws import generator
from fedgm.errors import require_fits


class Sharing:
    """A split of ``own`` samples; ``common`` ones belong to all clients, and to none alone.

    >>> from fedgm.data.partition import Partition
    >>> split = Partition.of_owners(np.array([1, 0, 1]), clients=2)
    >>> Sharing(split, own=np.array([0, 2, 4]), common=np.array([1, 3])).indices(1)
    array([0, 4, 1, 3])
    """

    def __init__(self, split: ClientSplit, own: Indices, common: Indices) -> None:
        self.split, self.own, self.common = split, own, common

    @property
    def count(self) -> int:
        """Number of clients."""
        return self.split.count

    def size(self, client: int) -> int:
        """Number of samples of one client, the common ones included."""
        return self.split.size(client) + len(self.common)

    def indices(self, client: int) -> Indices:
        """The client's own samples, then the common ones."""
        return np.concatenate([self.own[self.split.indices(client)], self.common])


def common_samples(labels: NDArray[np.integer], share: float, seed: int) -> Indices:
    """Equally many of every class, ``share`` times as many in all as are left for the clients alone.

    >>> common_samples(np.array([0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1]), share=0.5, seed=0)
    array([ 0,  2,  8, 11])
    """
    places = [np.flatnonzero(labels == c) for c in np.unique(labels)]
    each = round(len(labels) * share / (1 + share) / len(places))
    reason = f"that is {each} of each of the {len(places)} classes, of which the smallest has "
    smallest = min(map(len, places))
    ok = 1 <= each < smallest
    require_fits(ok, "data.shared", share, f"{reason}{smallest}", "data.shared=0.05, or 0 for none")
    rng = generator(seed, "shared")
    return np.sort(np.concatenate([rng.choice(there, each, replace=False) for there in places]))
