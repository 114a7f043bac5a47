"""Who is in the cohort of a round; the cost grows with the cohort, never with the number of clients."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from fedgm.draws import generator
from fedgm.errors import require
from fedgm.participation.task import Labels


class Sampler(Protocol):
    """Draws clients from (seed, round) alone."""

    def cohort(self, t: int) -> list[int]:
        """The clients of round ``t`` (from 1), each once; at least one."""
        ...


@dataclass(frozen=True)
class Uniform:
    """Exactly m of n clients, uniformly without replacement [paper]."""

    count: int
    per_round: int
    seed: int

    def cohort(self, t: int) -> list[int]:
        """The clients of round ``t``."""
        return generator(self.seed, "cohort", t).choice(self.count, self.per_round, replace=False).tolist()


@dataclass(frozen=True)
class Bernoulli:
    """Each client on its own with probability m/n; a round in which nobody came is drawn again."""

    count: int
    per_round: int
    seed: int

    def cohort(self, t: int) -> list[int]:
        """The clients of round ``t``: a binomial size, then a uniform subset of it."""
        rng = generator(self.seed, "cohort", t)
        size = 0
        while size == 0:  # with m >= 1 at most e^-m of the draws
            size = int(rng.binomial(self.count, self.per_round / self.count))
        return rng.choice(self.count, size, replace=False).tolist()


@dataclass(frozen=True)
class Biased:
    """m clients whose availability depends on their labels: the non-uniform arrivals of the corollary.

    A proposed client comes with probability 1 - bias (1 - s), s being the share of its samples that belong
    to the ``favour``-ed classes: a client with none of them is 1 - bias times as likely as one with no other.
    """

    count: int
    per_round: int
    seed: int
    bias: float
    favour: Sequence[int]
    labels: Labels | None = None

    def __post_init__(self) -> None:
        key = "participation.sampler.bias"
        require(0 <= self.bias < 1, key, self.bias, "0 <= bias < 1 (0 is no bias)", f"{key}=0.8")

    def cohort(self, t: int) -> list[int]:
        """The clients of round ``t``, by rejection: only those proposed are looked at."""
        rng = generator(self.seed, "cohort", t)
        chosen: dict[int, None] = {}
        while len(chosen) < self.per_round:
            client = int(rng.integers(self.count))
            if client not in chosen and rng.random() < self.availability(client):
                chosen[client] = None
        return list(chosen)

    def availability(self, client: int) -> float:
        """Probability, of at least 1 - bias, that a proposed client comes."""
        if self.labels is None:
            raise TypeError("Biased needs labels=: a function from a client to the classes of its samples")
        return 1 - self.bias * (1 - float(np.isin(self.labels(client), self.favour).mean()))
