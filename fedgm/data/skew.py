"""Other ways in which papers make clients unlike: shards, classes, sizes, and a Dirichlet split with a cap.

All share out every sample to exactly one client, and draw from (seed, purpose, attempt) alone.
"""

from collections.abc import Callable
from math import inf

import numpy as np
from numpy.typing import NDArray

from fedgm.data.partition import Indices, Partition, check_room
from fedgm.draws import generator
from fedgm.errors import ClashError, require, require_fits

Labels = NDArray[np.integer]
RETRIES = 100  # draws before a split that must give every client data.min_samples is given up


def shards(labels: Labels, clients: int, per_client: int, seed: int, min_samples: int) -> Partition:
    """McMahan 2017: samples sorted by label, cut into clients * per_client pieces, per_client pieces each.

    >>> labels = np.arange(100) % 10
    >>> split = shards(labels, clients=5, per_client=2, seed=0, min_samples=1)
    >>> split.sizes
    array([20, 20, 20, 20, 20])
    """
    key, pieces = "data.shards", clients * per_client
    require(per_client >= 1, key, per_client, "at least 1", f"{key}=2")
    most = max(1, len(labels) // clients)
    allowed = f"{len(labels)} samples make at most {most} shards for each of {clients} clients"
    require_fits(pieces <= len(labels), key, per_client, allowed, f"{key}={min(2, most)}")

    def draw(rng: np.random.Generator) -> Indices:
        mixed = rng.permutation(len(labels))
        by_label = mixed[np.argsort(labels[mixed], kind="stable")]  # within a class in random order
        holder = np.repeat(np.arange(clients), per_client)[rng.permutation(pieces)]
        owner = np.empty(len(labels), np.int64)
        for client, piece in zip(holder, np.array_split(by_label, pieces), strict=True):
            owner[piece] = client
        return owner

    return _drawn("shards", draw, labels, clients, seed, min_samples, 1, f"{key}={per_client}")


def classes(labels: Labels, clients: int, per_client: int, seed: int, min_samples: int) -> Partition:
    """``per_client`` classes each; all classes have equally many clients, among whom they are dealt out.

    >>> labels = np.arange(100) % 10
    >>> split = classes(labels, clients=5, per_client=2, seed=0, min_samples=1)
    >>> [len(np.unique(labels[split.indices(client)])) for client in range(5)]
    [2, 2, 2, 2, 2]
    """
    key, present = "data.classes_per_client", np.unique(labels)
    most, least = len(present), -(-len(present) // clients)
    allowed = f"{least} to {most}: there are {most} classes, and each needs one of {clients} clients"
    require(least <= per_client <= most, key, per_client, allowed, f"{key}={max(least, min(2, most))}")

    def draw(rng: np.random.Generator) -> Indices:
        taken = np.zeros(len(present), np.int64)
        holders: list[list[int]] = [[] for _ in present]
        for client in rng.permutation(clients):
            chosen = np.lexsort((rng.random(len(present)), taken))[:per_client]  # rarest first, ties by lot
            taken[chosen] += 1
            for place in chosen:
                holders[place].append(int(client))
        owner = np.empty(len(labels), np.int64)
        for label, held in zip(present, holders, strict=True):
            members = rng.permutation(np.flatnonzero(labels == label))
            owner[members] = np.array(held)[np.arange(len(members)) % len(held)]
        return owner

    return _drawn("classes", draw, labels, clients, seed, min_samples, 1, f"{key}={per_client}")


def quantity(labels: Labels, clients: int, alpha: float, seed: int, min_samples: int) -> Partition:
    """Sizes ~ Dirichlet(alpha), labels alike: clients differ in how much they have, not in what.

    >>> labels = np.arange(100) % 10
    >>> split = quantity(labels, clients=5, alpha=0.5, seed=0, min_samples=1)
    >>> split.sizes
    array([36, 39, 17,  6,  2])
    """
    _check_alpha(alpha, "quantity")

    def draw(rng: np.random.Generator) -> Indices:
        ends = _cuts(rng.dirichlet(np.full(clients, alpha)), len(labels))
        owner = np.empty(len(labels), np.int64)
        owner[rng.permutation(len(labels))] = np.searchsorted(ends, np.arange(len(labels)), side="right")
        return owner

    return _drawn("quantity", draw, labels, clients, seed, min_samples, RETRIES, f"data.alpha={alpha:g}")


def capped(labels: Labels, clients: int, alpha: float, seed: int, min_samples: int) -> Partition:
    """NIID-Bench's Dirichlet split: a client that has the mean size already gets nothing of later classes.

    >>> labels = np.arange(100) % 10
    >>> split = capped(labels, clients=5, alpha=0.5, seed=0, min_samples=1)
    >>> split.count, int(split.sizes.sum())
    (5, 100)
    """
    _check_alpha(alpha, "capped")

    def draw(rng: np.random.Generator) -> Indices:
        sizes, owner = np.zeros(clients), np.empty(len(labels), np.int64)
        for label in np.unique(labels):
            members = rng.permutation(np.flatnonzero(labels == label))
            free = sizes < len(labels) / clients
            shares = rng.dirichlet(np.full(clients, alpha)) * free
            shares = shares if shares.sum() > 0 else free.astype(float)  # a tiny alpha may leave nothing
            ends = _cuts(shares / shares.sum(), len(members))
            owner[members] = np.searchsorted(ends, np.arange(len(members)), side="right")
            sizes += np.bincount(owner[members], minlength=clients)
        return owner

    return _drawn("capped", draw, labels, clients, seed, min_samples, RETRIES, f"data.alpha={alpha:g}")


def _cuts(shares: NDArray[np.float64], total: int) -> Indices:
    """Where each client but the last ends, among ``total`` samples."""
    return np.minimum(np.cumsum(shares)[:-1] * total, total).astype(np.int64)


def _drawn(
    name: str,
    draw: Callable[[np.random.Generator], Indices],
    labels: Labels,
    clients: int,
    seed: int,
    min_samples: int,
    attempts: int,
    words: str,
) -> Partition:
    """The first draw that gives every client ``min_samples``, or an error that says how close they came."""
    check_room(len(labels), clients, min_samples)
    best = -1
    for attempt in range(attempts):
        split = Partition.of_owners(draw(generator(seed, f"partition-{name}", round=attempt)), clients)
        if (smallest := int(split.sizes.min())) >= min_samples:
            return split
        best = max(best, smallest)
    allowed = (
        f"with data.partition={name}, {words}, {len(labels)} samples and {clients} clients, "
        f"the smallest client of {attempts} draw{'s' if attempts > 1 else ''} has {best}"
    )
    lower = f"data.min_samples={best}, " if best >= 1 else ""
    other = "a larger data.alpha, " if "alpha" in words else ""
    hint = f"{lower}{other}more data.train_samples, or fewer clients.count"
    raise ClashError("data.min_samples", min_samples, allowed, hint)


def _check_alpha(alpha: float, name: str) -> None:
    allowed = f"a positive number with data.partition={name}"
    require(0 < alpha < inf, "data.alpha", alpha, allowed, "data.alpha=0.5, or data.partition=dirichlet")
