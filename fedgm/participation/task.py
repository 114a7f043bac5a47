"""The one unit of work that every participation scheme deals in."""

from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, Literal, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

Steps = Callable[[int, int], int]  # steps(client, epochs): local steps K of that client
Labels = Callable[[int], NDArray[np.int64]]  # labels(client): the classes of its samples
Effective = Callable[[int], float]  # of K local steps: |a|_1 of FedNova, K itself for plain SGD
Anchor = Literal["start", "current"]
Part = TypeVar("Part")


def step_per_epoch(client: int, epochs: int) -> int:
    """The local steps of a scheme that was given no ``steps``: an epoch is one step."""
    return epochs


@dataclass(frozen=True)
class ClientFacts:
    """What a scheme or a sampler may ask about clients; it gets them by annotating a parameter with this.

    Without data an epoch is one local step, and nobody has labels.
    """

    steps: Steps = step_per_epoch
    effective: Effective = float
    labels: Labels | None = None
    size: Callable[[int], int] | None = None  # size(client): how many samples it has


NO_DATA = ClientFacts()


def informed(part: Part, facts: ClientFacts) -> Part:
    """A scheme or sampler with ``facts`` in the place of those that it was not given; what it has, it keeps.

    >>> from fedgm.participation import ideal
    >>> scheme = ideal(count=2, per_round=2, epochs=1, seed=0, normalize="steps")
    >>> known = informed(scheme, ClientFacts(steps=lambda client, epochs: 4))
    >>> [task.weight for task in known.tasks(t=1)]
    [0.25, 0.25]
    """
    if not is_dataclass(part) or isinstance(part, type):
        return part
    given: dict[str, Any] = {field.name: getattr(part, field.name) for field in fields(part) if field.init}
    now = {name: facts if value is NO_DATA else informed(value, facts) for name, value in given.items()}
    changed = {name: value for name, value in now.items() if value is not given[name]}
    return replace(part, **changed) if changed else part


class ClientTask(NamedTuple):
    """One client's part in one round; synchronous FedGM is staleness 0, ``local.epochs``, weight 1.

    >>> from fedgm.participation import ideal
    >>> ideal(count=1, per_round=1, epochs=3, seed=0).tasks(t=1)
    [ClientTask(client=0, staleness=0, epochs=3, weight=1.0, began=None)]
    """

    client: int
    staleness: int  # tau: how many server rounds old the model is that it starts from
    epochs: int  # local work, in units of local.unit
    weight: float  # factor of its delta in the mean (normalisation of uneven work, and of age)
    began: int | None = None  # the round whose draws it uses, where its work began before this one


class Participation(Protocol):
    """Gives the cohort S_t as a function of (seed, round) alone: the same in every process, in any order."""

    @property
    def history(self) -> int:
        """How many global models the loop must keep; 1 is x_t alone."""
        ...

    @property
    def anchor(self) -> Anchor:
        """What a delta is measured from: the model that the client started from, or x_t (FedAsync)."""
        ...

    def tasks(self, t: int) -> list[ClientTask]:
        """The cohort of round ``t`` (from 1); each client at most once, and never empty."""
        ...

    def log(self, t: int) -> dict[str, float | int]:
        """What the scheme adds to the row of round ``t``."""
        ...
