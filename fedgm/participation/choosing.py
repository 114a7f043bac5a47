"""Cohorts that the model has a say in: power-of-choice and Active FL.

A sampler of this kind names candidates, is told the loss of x_t on each of them, and chooses. Its cohorts are
not known before their round: :meth:`cohort` gives the one that was chosen last.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from fedgm.draws import generator
from fedgm.errors import RefusedError, require
from fedgm.participation.task import NO_DATA, ClientFacts

Measured = Literal["all", "batch", "nothing"]  # of a candidate's samples
DECIDED = "decided during the run"


@runtime_checkable
class Chooses(Protocol):
    """A sampler whose cohort depends on the model: ``choose`` before each round, ``observe`` after it."""

    @property
    def measures(self) -> Measured:
        """What of each candidate's samples the loss is measured on."""
        ...

    def candidates(self, t: int) -> list[int]:
        """The clients that are measured before round ``t``."""
        ...

    def choose(self, t: int, losses: Mapping[int, float]) -> list[int]:
        """The cohort of round ``t``, from the mean loss of x_t on each candidate."""
        ...

    def observe(self, row: Mapping[str, Any], losses: Mapping[int, float]) -> None:
        """After a round: its row, and the mean loss that each of its clients saw while it trained."""
        ...

    def state_dict(self) -> dict[str, Any]:
        """What a checkpoint keeps."""
        ...

    def load_state_dict(self, content: dict[str, Any]) -> None:
        """Continue with it."""
        ...


@dataclass
class Choice:
    """The part that all of them share: the last cohort, and one number for each client that was seen."""

    count: int
    per_round: int
    seed: int
    values: dict[int, float] = field(init=False, repr=False, default_factory=dict[int, float])
    _chosen: tuple[int, list[int]] = field(init=False, repr=False, default=(0, []))

    def cohort(self, t: int, draw: int = 0) -> list[int]:
        """The clients of round ``t``, which must be the round that was chosen last."""
        at, chosen = self._chosen
        if t != at:
            raise RefusedError(f"the clients of round {t} are {DECIDED}: they depend on the model")
        return chosen

    def observe(self, row: Mapping[str, Any], losses: Mapping[int, float]) -> None:
        """Nothing, unless a rule wants it."""

    def state_dict(self) -> dict[str, Any]:
        """Values by client."""
        return {"values": dict(self.values)}

    def load_state_dict(self, content: dict[str, Any]) -> None:
        """Continue with the values of a checkpoint."""
        self.values = dict(content["values"])

    def _sizes(self, facts: ClientFacts) -> NDArray[np.float64]:
        if facts.size is None:
            return np.ones(self.count)
        return np.array([facts.size(client) for client in range(self.count)], np.float64)


def largest(losses: Mapping[int, float], m: int) -> list[int]:
    """The m clients of largest loss; of equal ones that which was drawn first.

    >>> largest({7: 0.5, 3: 2.0, 5: 2.0}, m=2)
    [3, 5]
    """
    return sorted(losses, key=lambda client: -losses[client])[:m]


@dataclass
class PowerOfChoice(Choice):
    """Power-of-choice (Cho 2022): of d candidates, drawn by their sample counts, the m of largest loss.

    ``pow`` measures all of a candidate's samples, ``cpow`` one batch of them. ``rpow`` measures nothing: it
    takes the mean loss over the first local epoch of the round in which a client last trained, and infinity
    for one that never did.

    >>> sampler = PowerOfChoice(count=10, per_round=2, seed=0, d=4, variant="pow")
    >>> losses = {client: float(client) for client in sampler.candidates(t=1)}
    >>> sampler.choose(1, losses) == sorted(losses)[-2:][::-1]
    True
    """

    d: int = 0
    variant: Literal["pow", "cpow", "rpow"] = "pow"
    facts: ClientFacts = NO_DATA

    def __post_init__(self) -> None:
        allowed = f"clients.per_round={self.per_round} to clients.count={self.count}"
        hint = f"participation.sampler.d={min(2 * self.per_round, self.count)}"
        require(self.per_round <= self.d <= self.count, "participation.sampler.d", self.d, allowed, hint)

    @property
    def measures(self) -> Measured:
        """All samples, a batch, or none."""
        kinds: dict[str, Measured] = {"pow": "all", "cpow": "batch", "rpow": "nothing"}
        return kinds[self.variant]

    def candidates(self, t: int) -> list[int]:
        """d of n, one after another without replacement, each in proportion to its samples."""
        sizes = self._sizes(self.facts)
        rng = generator(self.seed, "candidates", t)
        return rng.choice(self.count, self.d, replace=False, p=sizes / sizes.sum()).tolist()

    def choose(self, t: int, losses: Mapping[int, float]) -> list[int]:
        """The m candidates of largest loss."""
        if self.variant == "rpow":
            losses = {client: self.values.get(client, inf) for client in self.candidates(t)}
        self._chosen = t, largest(losses, self.per_round)
        return self._chosen[1]

    def observe(self, row: Mapping[str, Any], losses: Mapping[int, float]) -> None:
        """rpow keeps the losses of those that trained."""
        if self.variant == "rpow":
            self.values |= losses


def active_chances(v: NDArray[np.float64], alpha1: float, alpha2: float) -> NDArray[np.float64]:
    """0 for the floor(alpha1 n) smallest values and for unseen clients (-inf), else as exp(alpha2 v).

    >>> active_chances(np.array([-np.inf, 1.0, 1.0]), alpha1=0.4, alpha2=0.01)
    array([0. , 0.5, 0.5])
    """
    out = np.argsort(v, kind="stable")[: int(alpha1 * len(v))]
    seen, raw = np.isfinite(v), np.zeros(len(v))
    raw[seen] = np.exp(alpha2 * (v[seen] - v[seen].max(initial=-np.inf)))
    raw[out] = 0.0
    return raw / raw.sum() if raw.sum() > 0 else raw


@dataclass
class Active(Choice):
    """Active FL (Goetz 2019): clients whose data the model finds hard come more often.

    v_i = sum of losses / sqrt(n_i), at the model that client i last received, -inf before its first round.
    Of m, floor((1 - alpha3) m) are drawn by the chances of :func:`active_chances`, as far as there are any,
    the rest uniformly from the others.

    >>> sampler = Active(count=10, per_round=4, seed=0)
    >>> sampler.values, len(sampler.candidates(t=1))
    ({}, 4)
    """

    alpha1: float = 0.75
    alpha2: float = 0.01
    alpha3: float = 0.1
    facts: ClientFacts = NO_DATA

    def __post_init__(self) -> None:
        for name in ("alpha1", "alpha3"):
            key, value = f"participation.sampler.{name}", getattr(self, name)
            require(0 <= value <= 1, key, value, "0 to 1", f"{key}={type(self).__dict__[name]}")
        key = "participation.sampler.alpha2"
        require(0 <= self.alpha2 < inf, key, self.alpha2, "a number of at least 0", f"{key}=0.01")

    @property
    def measures(self) -> Measured:
        """All samples of those that come: they have x_t anyway."""
        return "all"

    def candidates(self, t: int) -> list[int]:
        """The cohort itself: it depends on earlier rounds alone."""
        v = np.array([self.values.get(client, -inf) for client in range(self.count)])
        chances = active_chances(v, self.alpha1, self.alpha2)
        share = int((1 - self.alpha3) * self.per_round + 1e-9)  # int((1 - .9) * 10) would be 0
        k = min(share, int((chances > 0).sum()))
        drawn = generator(self.seed, "active", t)
        chosen: list[int] = drawn.choice(self.count, k, replace=False, p=chances).tolist() if k else []
        others = [client for client in range(self.count) if client not in set(chosen)]
        rest = generator(self.seed, "cohort", t).choice(others, self.per_round - k, replace=False)
        return [*chosen, *rest.tolist()]

    def choose(self, t: int, losses: Mapping[int, float]) -> list[int]:
        """All of them; what was measured is their value from now on."""
        size = self.facts.size or (lambda client: 1)
        self.values |= {client: size(client) ** 0.5 * loss for client, loss in losses.items()}
        self._chosen = t, list(losses)
        return self._chosen[1]
