"""FedCS (Nishio and Yonetani 2019): as many clients as can send before a deadline, under a virtual clock.

Uploads come one after another, as in its paper: a client is ready after its local steps, then sends when the
channel is free. With uploads side by side the rule would only be "whoever is ready in time".
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import ceil, inf
from typing import NamedTuple

from fedgm.draws import generator
from fedgm.errors import RefusedError, require
from fedgm.participation.devices import Devices
from fedgm.participation.task import NO_DATA, Anchor, ClientFacts, ClientTask

ATTEMPTS = 32  # candidates that are asked anew before a round in which none of them fits is given up


class Chosen(NamedTuple):
    """The clients of a round, and when the last of them has sent."""

    clients: list[int]
    ends: float


def within(
    deadline: float, candidates: Sequence[int], update: Sequence[float], upload: Sequence[float]
) -> Chosen:
    """Algorithm 3: again and again the candidate that adds least time, if it ends before the deadline.

    Client k adds upload_k + max(0, update_k - Theta), where Theta is when the channel is free. One that does
    not fit is left out, others are still tried; of equal ones the first.

    >>> within(10.0, candidates=[5, 6, 7], update=[4.0, 1.0, 9.0], upload=[2.0, 2.0, 2.0])
    Chosen(clients=[6, 5], ends=6.0)
    """
    left, chosen, theta = list(range(len(candidates))), list[int](), 0.0
    while left:
        best = min(left, key=lambda k: upload[k] + max(0.0, update[k] - theta))
        left.remove(best)
        ends = theta + upload[best] + max(0.0, update[best] - theta)
        if ends < deadline:
            chosen, theta = [*chosen, candidates[best]], ends
    return Chosen(chosen, theta)


@dataclass
class Deadline:
    """``share`` of the clients are asked at random for their times; those that fit before ``deadline`` train.

    The cohort varies in size, and D is its mean. If none fits, others are asked, and the round has cost a
    deadline more. ``upload`` is the mean time of sending, exponential, drawn anew in each round.

    >>> devices = Devices(seed=0, step_time=1.0)
    >>> scheme = Deadline(count=10, seed=0, epochs=1, deadline=3.5, share=0.5, upload=0.0, devices=devices)
    >>> len(scheme.tasks(t=1)), scheme.log(t=2)["clock/time"]
    (5, 2.0)
    """

    count: int
    seed: int
    epochs: int
    deadline: float
    share: float
    upload: float
    devices: Devices
    facts: ClientFacts = NO_DATA
    history: int = field(init=False, default=1)
    anchor: Anchor = field(init=False, default="start")
    _latest: tuple[int, float, Chosen, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        ok = 0 < self.deadline < inf
        require(ok, "participation.deadline", self.deadline, "a positive time", "participation.deadline=60")
        ok = 0 < self.share <= 1
        require(ok, "participation.share", self.share, "0 < share <= 1", "participation.share=0.1")
        ok = 0 <= self.upload < inf
        require(ok, "participation.upload", self.upload, "a time of at least 0", "participation.upload=1")
        self._latest = 0, 0.0, Chosen([], 0.0), 0

    def tasks(self, t: int) -> list[ClientTask]:
        """All that fit start from x_t, with equal work."""
        return [ClientTask(client, 0, self.epochs, 1.0) for client in self._at(t)[2].clients]

    def log(self, t: int) -> dict[str, float | int]:
        """Virtual time after the round, and how many were asked."""
        _, time, _, asked = self._at(t)
        return {"clock/time": time, "cohort/asked": asked}

    def _at(self, t: int) -> tuple[int, float, Chosen, int]:
        """Round ``t``: the latest, or from the start, as the clock needs all rounds before it."""
        if t < self._latest[0]:
            self._latest = 0, 0.0, Chosen([], 0.0), 0
        while self._latest[0] < t:
            self._latest = self._next(*self._latest[:2])
        return self._latest

    def _next(self, t: int, now: float) -> tuple[int, float, Chosen, int]:
        asked = ceil(self.count * self.share - 1e-9)
        for attempt in range(ATTEMPTS):
            rng = generator(self.seed, "cohort", t + 1, attempt)
            candidates: list[int] = rng.choice(self.count, asked, replace=False).tolist()
            chosen = within(self.deadline, candidates, *self._times(t + 1, candidates))
            if chosen.clients:
                return t + 1, now + chosen.ends, chosen, asked * (attempt + 1)
            now += self.deadline
        raise RefusedError(
            f"participation.deadline={self.deadline:g}: in round {t + 1} no client of {ATTEMPTS} draws can "
            "train and send in that time. Try a later deadline, or a smaller participation.step_time"
        )

    def _times(self, t: int, clients: Sequence[int]) -> tuple[list[float], list[float]]:
        """Seconds of training and of sending of each client."""
        update = [self.devices.seconds(c, self.facts.steps(c, self.epochs), t) for c in clients]
        draws = [
            generator(self.seed, "network", t, c).exponential(1.0) if self.upload else 0.0 for c in clients
        ]
        return update, [self.upload * draw for draw in draws]


def deadline(
    *,
    count: int,
    epochs: int,
    seed: int,
    deadline: float,
    share: float,
    upload: float,
    step_time: float,
    speed_sigma: float,
    speeds: str | None,
    facts: ClientFacts = NO_DATA,
) -> Deadline:
    """The scheme that the flat keys of ``conf/participation/deadline.yaml`` describe."""
    devices = Devices(seed, step_time, speed_sigma, speeds)
    return Deadline(count, seed, epochs, deadline, share, upload, devices, facts)
