"""Alg. 4 on a real clock: nodes of a deployment arrive when they do; :mod:`fedgm.flower.live` waits for them.

Who came, how old and with which weight is stored, and :mod:`fedgm.participation.replay` computes it again.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from fedgm.errors import require
from fedgm.participation.event import Counting
from fedgm.participation.local_work import Discount, Kind, Normalize, draw_epochs, epoch_range
from fedgm.participation.task import NO_DATA, Anchor, ClientFacts, ClientTask


@dataclass(frozen=True)
class Live:
    """The server steps whenever ``per_round`` updates have arrived, whatever their age.

    >>> scheme = live(
    ...     count=4, per_round=2, epochs=(2, 2), reference=2, seed=0, normalize="reference", max_staleness=3,
    ...     staleness="polynomial", exponent=0.5, hinge_a=10.0, hinge_b=4.0,
    ... )
    >>> [(task.staleness, task.weight, task.began) for task in scheme.arrived([(3, 5), (1, 2)], t=5)]
    [(0, 1.0, 5), (3, 0.5, 2)]
    """

    per_round: int
    epochs: tuple[int, int]
    max_staleness: int
    seed: int
    counting: Counting
    facts: ClientFacts = NO_DATA
    seen: dict[int, dict[str, float | int]] = field(default_factory=dict[int, dict[str, float | int]])

    @property
    def anchor(self) -> Anchor:
        """What a delta is measured from."""
        return self.counting.anchor

    @property
    def history(self) -> int:
        """As many models as an update may be old, and x_t."""
        return self.max_staleness + 1

    def tasks(self, t: int) -> list[ClientTask]:
        """As many places as there will be arrivals; who takes them is known when they have come."""
        return [ClientTask(client, 0, self.epochs[0], 1.0) for client in range(self.per_round)]

    def work(self, client: int, version: int) -> int:
        """Local epochs of a client that begins with the model of round ``version``."""
        return draw_epochs(self.epochs, self.seed, version, client)

    def arrived(self, works: Sequence[tuple[int, int]], t: int) -> list[ClientTask]:
        """The tasks of (client, version) that the server averages in step ``t``."""
        return self.counting.tasks([(c, v, self.work(c, v)) for c, v in works], t, self.facts, began=True)

    def log(self, t: int) -> dict[str, float | int]:
        """What the cohort has written down of the round."""
        return self.seen.get(t, {})


def live(
    *,
    count: int,
    per_round: int,
    epochs: Sequence[int],
    reference: int,
    seed: int,
    normalize: Normalize,
    staleness: Kind,
    exponent: float,
    hinge_a: float,
    hinge_b: float,
    max_staleness: int,
    anchor: Anchor = "start",
    facts: ClientFacts = NO_DATA,
) -> Live:
    """The scheme that ``conf/participation/live.yaml`` describes."""
    key = "participation.max_staleness"
    require(max_staleness >= 0, key, max_staleness, "at least 0", f"{key}=10")
    key, work = "participation.epochs", epoch_range(epochs)
    require(work[0] >= 1, key, list(work), "at least 1 epoch: a node that is asked works", f"{key}=[1,6]")
    key = "participation.per_round"
    require(per_round <= count, key, per_round, f"at most the {count} clients", f"{key}={count}")
    discount = Discount(staleness, exponent, hinge_a, hinge_b)
    counting = Counting(normalize, reference, discount, anchor)
    return Live(per_round, work, max_staleness, seed, counting, facts)
