"""How samples are shared out to clients; pure numpy, usable from a notebook.

A partition is a function of ``labels``, ``clients``, ``seed``, ``min_samples`` and what its yaml in
``conf/data/partition`` sets, which returns a :class:`ClientSplit`. More of them: :mod:`fedgm.data.skew`.

``dirichlet`` splits the whole set, every sample to exactly one client: for each class
``p ~ Dirichlet(alpha)`` over the clients (Section 5 of the paper: alpha = 0.5, 100 clients).
``VirtualPartition`` serves populations larger than the data: a client's samples are drawn when asked for.
"""

import heapq
import math
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from fedgm.draws import generator
from fedgm.errors import ClashError, require, require_fits

Indices = NDArray[np.int64]


class ClientSplit(Protocol):
    """What the federation needs to know of a split."""

    @property
    def count(self) -> int:
        """Number of clients."""
        ...

    def size(self, client: int) -> int:
        """Number of samples of one client, in constant time."""
        ...

    def indices(self, client: int) -> Indices:
        """The samples of one client, the same at every call."""
        ...


class Partition:
    """Client ``i`` owns ``order[offsets[i]:offsets[i + 1]]``; ``order`` is a permutation of all samples.

    >>> split = Partition.of_owners(np.array([1, 0, 1]), clients=2)
    >>> split.indices(1)
    array([0, 2])
    """

    def __init__(self, order: Indices, offsets: Indices) -> None:
        self.order, self.offsets = order, offsets

    @classmethod
    def of_owners(cls, owner: Indices, clients: int) -> "Partition":
        """From the client of every sample."""
        sizes = np.bincount(owner, minlength=clients)
        offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        return cls(np.argsort(owner, kind="stable").astype(np.int64), offsets)

    @property
    def count(self) -> int:
        """Number of clients."""
        return len(self.offsets) - 1

    @property
    def sizes(self) -> Indices:
        """Samples per client."""
        return np.diff(self.offsets)

    def size(self, client: int) -> int:
        """Number of samples of one client."""
        _check_client(client, self.count)
        return int(self.offsets[client + 1] - self.offsets[client])

    def indices(self, client: int) -> Indices:
        """The samples of one client, as a view."""
        _check_client(client, self.count)
        return self.order[self.offsets[client] : self.offsets[client + 1]]


class VirtualPartition:
    """Clients that exist only when asked for: set-up and memory do not depend on ``count``.

    A client's label mix is ``Dirichlet(alpha * C * prior)`` over the C classes: its mean is the prior, the
    class shares of the data, for every alpha. With equal classes it is the symmetric ``Dirichlet(alpha)``
    that ``dirichlet`` approaches with many clients. Clients share samples; within one client a sample
    repeats only if its class is too small.
    """

    def __init__(
        self, labels: NDArray[np.integer], count: int, alpha: float, seed: int, samples: int
    ) -> None:
        _check_alpha(alpha)
        require(count >= 1, "clients.count", count, "at least 1", "clients.count=100")
        require(samples >= 1, "data.client_samples", samples, "at least 1", "data.client_samples=50")
        self._count, self._samples, self._seed = count, samples, seed
        self._by_class = np.argsort(labels, kind="stable").astype(np.int64)
        sizes = np.bincount(labels)
        self._sizes = sizes[sizes > 0]
        self._starts = np.cumsum(self._sizes) - self._sizes
        self._prior = self._sizes / self._sizes.sum()
        self._alpha = alpha
        self._concentration = alpha * len(self._prior) * self._prior
        self._drawn = bool(self._concentration.min() > 0)  # else one class each

    @property
    def count(self) -> int:
        """Number of clients."""
        return self._count

    def size(self, client: int) -> int:
        """Number of samples of one client: the same for all."""
        _check_client(client, self._count)
        return self._samples

    def indices(self, client: int) -> Indices:
        """Draw the samples of one client in O(samples + classes)."""
        _check_client(client, self._count)
        rng = generator(self._seed, "virtual-client", client=client)
        if math.isinf(self._alpha):
            return self._by_class[_choose(rng, len(self._by_class), self._samples)]
        wanted = rng.multinomial(self._samples, self._mix(rng))
        parts = [
            self._by_class[self._starts[label] + _choose(rng, int(self._sizes[label]), int(wanted[label]))]
            for label in np.flatnonzero(wanted)
        ]
        return np.concatenate(parts)

    def _mix(self, rng: np.random.Generator) -> NDArray[np.float64]:
        if self._drawn:
            return rng.dirichlet(self._concentration)
        return np.eye(len(self._prior))[rng.choice(len(self._prior), p=self._prior)]


def dirichlet(
    labels: NDArray[np.integer], clients: int, alpha: float, seed: int, min_samples: int, retries: int = 100
) -> Partition:
    """Split all samples; redraw until every client has ``min_samples``, at most ``retries`` times.

    ``alpha=inf`` deals the samples out evenly (IID), ``alpha=0`` gives each client samples of one class.

    >>> labels = np.arange(100) % 10
    >>> split = dirichlet(labels, clients=4, alpha=0.5, seed=0, min_samples=1)
    >>> split.count, int(split.sizes.sum())
    (4, 100)
    """
    _check_alpha(alpha)
    check_room(len(labels), clients, min_samples)
    best = -1
    # Only the Dirichlet draw can do better on a second try.
    for attempt in range(retries if 0 < alpha < math.inf else 1):
        rng = generator(seed, "partition", round=attempt)
        owner = _owners(rng, labels, clients, alpha)
        split = Partition.of_owners(owner, clients)
        if split.sizes.min() >= min_samples:
            return split
        best = max(best, int(split.sizes.min()))
    if alpha == 0:
        raise ClashError(
            "data.min_samples",
            min_samples,
            f"with one class per client (data.alpha=0) the smallest of {clients} clients has {best} samples",
            f"data.min_samples={max(best, 1)}, fewer clients.count, or a larger data.alpha",
        )
    raise ClashError(
        "data.min_samples",
        min_samples,
        f"with data.alpha={alpha:g}, {len(labels)} samples and {clients} clients, {retries} draws gave the "
        f"smallest client at most {best}",
        f"data.min_samples={best}, a larger data.alpha, more data.train_samples, or fewer clients.count"
        if best >= 1
        else "a larger data.alpha, more data.train_samples, fewer clients.count, or data.partition=virtual",
    )


def virtual(
    labels: NDArray[np.integer],
    clients: int,
    alpha: float,
    seed: int,
    min_samples: int,
    client_samples: int | None = None,
) -> VirtualPartition:
    """Clients drawn on demand; without ``client_samples`` each has its share, at least ``min_samples``.

    >>> split = virtual(np.arange(100) % 10, clients=1_000_000, alpha=0.5, seed=0, min_samples=5)
    >>> len(split.indices(999_999))
    5
    """
    samples = client_samples or max(min_samples, len(labels) // clients)
    return VirtualPartition(labels, clients, alpha, seed, samples)


def label_counts(partition: ClientSplit, labels: NDArray[np.integer], classes: int, clients: int) -> Indices:
    """Samples of each class at each of the first ``clients`` clients, as a (clients, classes) table.

    >>> split = dirichlet(np.array([0, 0, 1, 1]), clients=2, alpha=0, seed=0, min_samples=1)
    >>> label_counts(split, np.array([0, 0, 1, 1]), classes=2, clients=2).sum(0)
    array([2, 2])
    """
    rows = [np.bincount(labels[partition.indices(client)], minlength=classes) for client in range(clients)]
    return np.stack(rows).astype(np.int64)


def _owners(rng: np.random.Generator, labels: NDArray[np.integer], clients: int, alpha: float) -> Indices:
    owner = np.empty(len(labels), np.int64)
    if math.isinf(alpha):
        owner[rng.permutation(len(labels))] = np.arange(len(labels)) % clients
        return owner
    classes = np.unique(labels)
    holders = _shards(rng, labels, clients) if alpha == 0 else {}
    for label in classes:
        members = rng.permutation(np.flatnonzero(labels == label))
        if alpha == 0:
            owner[members] = holders[int(label)][np.arange(len(members)) % len(holders[int(label)])]
            continue
        shares = np.cumsum(rng.dirichlet(np.full(clients, alpha)))[:-1]
        cuts = np.minimum(shares * len(members), len(members)).astype(np.int64)
        owner[members] = np.searchsorted(cuts, np.arange(len(members)), side="right")
    return owner


def _shards(rng: np.random.Generator, labels: NDArray[np.integer], clients: int) -> dict[int, Indices]:
    """Which clients hold which class: each further client goes where shards are largest."""
    classes, sizes = np.unique(labels, return_counts=True)
    require_fits(
        clients >= len(classes),
        "data.alpha",
        0,
        f"one class per client needs at least {len(classes)} clients, one per class; there are {clients}",
        f"clients.count={len(classes)}, or data.alpha=0.1",
    )
    shards = dict.fromkeys(map(int, classes), 1)
    heap = [(-float(size), int(label), int(size)) for label, size in zip(classes, sizes, strict=True)]
    heapq.heapify(heap)
    for _ in range(clients - len(classes)):
        _, label, size = heap[0]
        shards[label] += 1
        heapq.heapreplace(heap, (-size / shards[label], label, size))
    ends = np.cumsum(list(shards.values()))
    return dict(zip(shards, np.split(rng.permutation(clients), ends[:-1]), strict=True))


def _choose(rng: np.random.Generator, population: int, wanted: int) -> Indices:
    """``wanted`` of ``range(population)`` without replacement; if there are too few, all of them first."""
    if wanted >= population:
        whole, rest = divmod(wanted, population)
        return np.concatenate([np.tile(np.arange(population), whole), _choose(rng, population, rest)])
    if 2 * wanted > population:
        return rng.permutation(population)[:wanted]
    # The set of the first `wanted` distinct draws; numpy's own choice allocates the whole population.
    chosen = rng.integers(population, size=wanted)
    if wanted == 1:
        return chosen
    chosen = np.unique(chosen)
    while len(chosen) < wanted:
        chosen = np.union1d(chosen, rng.integers(population, size=wanted - len(chosen)))
    return chosen


def _check_client(client: int, count: int) -> None:
    if not 0 <= client < count:
        raise IndexError(f"client {client} does not exist: clients are 0..{count - 1}")


def _check_alpha(alpha: float) -> None:
    require(alpha >= 0, "data.alpha", alpha, "alpha >= 0, or inf for IID", "data.alpha=0.5")


def check_room(samples: int, clients: int, min_samples: int) -> None:
    """Refuse what no split can give."""
    require(clients >= 1, "clients.count", clients, "at least 1", "clients.count=100")
    require(min_samples >= 1, "data.min_samples", min_samples, "at least 1", "data.min_samples=1")
    require_fits(
        clients * min_samples <= samples,
        "data.min_samples",
        min_samples,
        f"{samples} samples give {clients} clients {samples // clients} each at best",
        f"data.min_samples={samples // clients}, or fewer clients.count"
        if samples >= clients
        else "fewer clients.count, more data.train_samples, or data.partition=virtual",
    )
