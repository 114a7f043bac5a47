"""Who is in the cohort of a round; but for the last two, the cost never grows with the number of clients."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Protocol

import numpy as np

from fedgm.draws import generator
from fedgm.errors import RefusedError, require
from fedgm.participation.task import NO_DATA, ClientFacts

PROPOSALS = 32  # clients looked at for one slot before it waits
DENSE = 4  # with fewer clients than this for each slot all are looked at, so that the last free one is found


class Sampler(Protocol):
    """Draws clients from (seed, round) alone; one that says ``uniform = True`` keeps Theorem 3."""

    def cohort(self, t: int, draw: int = 0) -> list[int]:
        """The clients of round ``t`` (from 1), each once; at least one.

        ``participation=event`` draws more than once in a round: ``draw`` tells these draws apart.
        """
        ...


def is_uniform(sampler: Sampler) -> bool:
    """Whether every client is as likely as any other; a sampler that says nothing may do anything."""
    return bool(getattr(sampler, "uniform", False))


def proposals(sampler: Sampler, t: int, filling: int, slots: int, most: int) -> Iterator[int]:
    """Clients for ``slots`` empty slots of the virtual clock, in the order in which they are asked.

    A sampler may have a ``proposals`` of its own; of any other, cohorts are drawn until the slots are filled
    or ``PROPOSALS`` cohorts were looked at. The first of a round is the synchronous cohort.
    """
    propose = getattr(sampler, "proposals", None)
    if propose is not None:
        yield from propose(t, filling, slots, most)
        return
    for number in range(PROPOSALS):
        yield from sampler.cohort(t, filling * PROPOSALS + number)


@dataclass(frozen=True)
class Uniform:
    """Exactly m of n clients, uniformly without replacement [paper].

    >>> cohort = Uniform(count=100, per_round=5, seed=0).cohort(t=1)
    >>> len(cohort), len(set(cohort))
    (5, 5)
    """

    count: int
    per_round: int
    seed: int
    uniform: ClassVar[bool] = True

    def cohort(self, t: int, draw: int = 0) -> list[int]:
        """The clients of round ``t``."""
        rng = generator(self.seed, "cohort", t, draw)
        return rng.choice(self.count, self.per_round, replace=False).tolist()

    def proposals(self, t: int, filling: int, slots: int, most: int) -> Iterator[int]:
        """One draw for the empty slots; then more where that is not enough."""
        rng = generator(self.seed, "cohort", t, filling)
        yield from rng.choice(self.count, slots, replace=False).tolist()
        if self.count <= DENSE * most:
            yield from rng.permutation(self.count).tolist()
            return
        for _ in range(slots):
            yield from rng.integers(self.count, size=PROPOSALS).tolist()


@dataclass(frozen=True)
class Bernoulli:
    """Each client by itself with probability m/n; a round in which nobody came is drawn again.

    >>> sorted(Bernoulli(count=3, per_round=3, seed=0).cohort(t=1))
    [0, 1, 2]
    """

    count: int
    per_round: int
    seed: int
    uniform: ClassVar[bool] = True

    def cohort(self, t: int, draw: int = 0) -> list[int]:
        """The clients of round ``t``: a binomial size, then a uniform subset of it."""
        rng = generator(self.seed, "cohort", t, draw)
        size = 0
        while size == 0:  # with m >= 1 at most e^-m of the draws
            size = int(rng.binomial(self.count, self.per_round / self.count))
        return rng.choice(self.count, size, replace=False).tolist()


@dataclass(frozen=True)
class Biased:
    """m clients whose availability depends on their labels: the non-uniform arrivals of the corollary.

    A proposed client comes with probability 1 - bias (1 - s), s being the share of its samples that belong
    to the ``favour``-ed classes: a client with none of them is 1 - bias times as likely as one with no other.

    >>> facts = ClientFacts(labels=lambda client: np.array([client % 2]))
    >>> sampler = Biased(count=10, per_round=2, seed=0, bias=0.75, favour=[0], facts=facts)
    >>> [sampler.availability(client) for client in (0, 1)]
    [1.0, 0.25]
    """

    count: int
    per_round: int
    seed: int
    bias: float
    favour: Sequence[int]
    facts: ClientFacts = NO_DATA

    def __post_init__(self) -> None:
        key = "participation.sampler.bias"
        require(0 <= self.bias < 1, key, self.bias, "0 <= bias < 1 (0 is no bias)", f"{key}=0.8")

    def cohort(self, t: int, draw: int = 0) -> list[int]:
        """The clients of round ``t``, by rejection: only those proposed are looked at."""
        rng = generator(self.seed, "cohort", t, draw)
        chosen: dict[int, None] = {}
        while len(chosen) < self.per_round:
            client = int(rng.integers(self.count))
            if client not in chosen and rng.random() < self.availability(client):
                chosen[client] = None
        return list(chosen)

    def availability(self, client: int) -> float:
        """Probability, of at least 1 - bias, that a proposed client comes."""
        labels = self.facts.labels
        if labels is None:
            raise TypeError("Biased needs labels: which classes the samples of a client have")
        return 1 - self.bias * (1 - float(np.isin(labels(client), self.favour).mean()))


@dataclass(frozen=True)
class Cyclic:
    """Groups of clients are present one after another (cyclic participation); m of the present one come.

    >>> sampler = Cyclic(count=6, per_round=2, seed=0, groups=3)
    >>> sorted(sampler.cohort(1) + sampler.cohort(2) + sampler.cohort(3))
    [0, 1, 2, 3, 4, 5]
    """

    count: int
    per_round: int
    seed: int
    groups: int

    def __post_init__(self) -> None:
        most = self.count // self.per_round
        key, allowed = "participation.sampler.groups", f"1 to {most}, so that m fit into each"
        require(1 <= self.groups <= most, key, self.groups, allowed, f"{key}={most}")

    def present(self, t: int) -> list[int]:
        """The group of round ``t``: parts of one permutation, as even as can be."""
        order = generator(self.seed, "cycle").permutation(self.count)
        return np.array_split(order, self.groups)[(t - 1) % self.groups].tolist()

    def cohort(self, t: int, draw: int = 0) -> list[int]:
        """m of those that are present, uniformly."""
        rng = generator(self.seed, "cohort", t, draw)
        return rng.choice(self.present(t), self.per_round, replace=False).tolist()


@dataclass
class LongestAbsent:
    """The m available clients that were away longest, never seen ones first; ties by number (FedLaAvg).

    A client is available in a round with probability ``available``, by itself; where fewer than m are, all of
    them come. Who came when follows from the seed: an earlier round is found again from the start.

    >>> LongestAbsent(count=5, per_round=2, seed=0).cohort(t=3)
    [4, 0]
    """

    count: int
    per_round: int
    seed: int
    available: float = 1.0
    _at: int = field(init=False, repr=False, compare=False, default=0)
    _cohort: list[int] = field(init=False, repr=False, compare=False, default_factory=list[int])
    _last: list[int] = field(init=False, repr=False, compare=False, default_factory=list[int])

    def __post_init__(self) -> None:
        key, ok = "participation.sampler.available", 0 < self.available <= 1
        require(ok, key, self.available, "0 < available <= 1", f"{key}=0.5")

    def cohort(self, t: int, draw: int = 0) -> list[int]:
        """The clients of round ``t``."""
        if draw:
            raise RefusedError("longest_absent picks once a round. Try participation=ideal")
        if t < self._at or not self._last:
            self._at, self._last = 0, [0] * self.count
        while self._at < t:
            self._at += 1
            self._cohort = sorted(self._present(self._at), key=lambda c: self._last[c])[: self.per_round]
            for client in self._cohort:
                self._last[client] = self._at
        return self._cohort

    def _present(self, t: int) -> list[int]:
        """Those that are available, in the order of clients; at least one."""
        if self.available == 1:
            return list(range(self.count))
        rng, here = generator(self.seed, "available", t), list[int]()
        while not here:
            here = np.flatnonzero(rng.random(self.count) < self.available).tolist()
        return here
