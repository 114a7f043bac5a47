"""Asynchronous participation under a virtual clock: FedBuff, FedAsync, Anarchic FL, and synchronous FL."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from fedgm.errors import require, require_fits
from fedgm.participation.choosing import Chooses
from fedgm.participation.devices import Devices
from fedgm.participation.local_work import Discount, Kind, Normalize, epoch_range, weights
from fedgm.participation.samplers import LongestAbsent, Sampler, Uniform, is_uniform
from fedgm.participation.task import NO_DATA, Anchor, ClientFacts, ClientTask, step_per_epoch
from fedgm.participation.virtual_clock import Clock, Round, Rules, WorkSpan


@dataclass(frozen=True)
class Counting:
    """How an update counts in the mean: by its work (``normalize``, ``reference``) and by its age."""

    normalize: Normalize
    reference: int
    discount: Discount
    anchor: Anchor

    def tasks(
        self, works: Sequence[tuple[int, int, int]], t: int, facts: ClientFacts, began: bool = False
    ) -> list[ClientTask]:
        """The tasks of (client, version, epochs) in step ``t``; with ``began`` draws are of their version."""
        epochs = [epochs for _, _, epochs in works]
        steps = [facts.steps(client, epochs) for client, _, epochs in works]
        factors = weights(self.normalize, epochs, steps, self.reference, facts.effective)
        return [
            ClientTask(
                client, t - version, epochs, factor * self.discount(t - version), version if began else None
            )
            for (client, version, epochs), factor in zip(works, factors, strict=True)
        ]


@dataclass
class Event:
    """The server steps whenever ``per_round`` updates have arrived, whatever their age (Alg. 4).

    Only the latest round is kept: an earlier one is simulated again from the start, which gives the same.
    ``conf/participation/event.yaml`` describes the keys, :mod:`fedgm.participation.virtual_clock` the rules.
    """

    server: Rules
    devices: Devices
    counting: Counting
    sampler: Sampler
    timed: Literal["steps", "epochs"]
    facts: ClientFacts = NO_DATA
    _clock: Clock = field(init=False, repr=False, compare=False)
    _latest: Round = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        self._restart()

    @property
    def normalize(self) -> Normalize:
        """How uneven work is weighed."""
        return self.counting.normalize

    @property
    def anchor(self) -> Anchor:
        """What a delta is measured from."""
        return self.counting.anchor

    @property
    def arrives_uniformly(self) -> bool:
        """Fast clients arrive more often, unless the server waits for all and nobody is ever away."""
        waits = self.server.wait and self.devices.available >= 1 and self.devices.dropout == 0
        return waits and is_uniform(self.sampler)

    @property
    def history(self) -> int:
        """As many models as an update may be old, and x_t."""
        return self.server.max_staleness + 1

    def tasks(self, t: int) -> list[ClientTask]:
        """The updates that the server averages in step ``t``, in the order in which their work began."""
        works = [(work.client, work.version, work.epochs) for work in self._at(t).arrived]
        return self.counting.tasks(works, t, self.facts)

    def log(self, t: int) -> dict[str, float | int]:
        """Virtual time, and what did not make it into the mean."""
        now = self._at(t)
        return {
            "clock/time": now.time,
            "clock/wait": now.waited,
            "cohort/dropped": now.dropped,
            "cohort/stale": now.stale,
            "cohort/idle": now.idle,
        }

    def trace(self, t: int) -> list[WorkSpan]:
        """The pieces of work that ended in round ``t``."""
        return list(self._at(t).intervals)

    def _at(self, t: int) -> Round:
        """Round ``t``: the latest, or simulated up to there."""
        if t < 1:
            raise IndexError(f"round {t} does not exist: rounds are counted from 1")
        if t < self._latest.t:
            self._restart()
        while self._latest.t < t:
            self._latest = self._clock.step()
        return self._latest

    def _restart(self) -> None:
        steps = step_per_epoch if self.timed == "epochs" else self.facts.steps
        self._clock = Clock(self.server, self.devices, self.sampler, steps)
        self._latest = Round(t=0)


def under_clock(
    *,
    count: int,
    per_round: int,
    epochs: Sequence[int],
    reference: int,
    seed: int,
    normalize: Normalize,
    concurrency: int | None,
    wait: bool,
    step_time: float,
    timed: Literal["steps", "epochs"],
    speed_sigma: float,
    speeds: str | None,
    network: float,
    available: float,
    period: float,
    dropout: float,
    timeout: float,
    staleness: Kind,
    exponent: float,
    hinge_a: float,
    hinge_b: float,
    max_staleness: int,
    anchor: Anchor = "start",  # stored runs of older versions have neither this key nor the next
    sampler: Sampler | None = None,
    facts: ClientFacts = NO_DATA,
) -> Event:
    """The scheme that the flat keys of ``conf/participation/event.yaml`` describe, and give defaults for.

    >>> work = {"epochs": (1, 1), "reference": 1, "normalize": "none", "concurrency": 4, "wait": False}
    >>> clients = {"step_time": 1.0, "timed": "epochs", "speed_sigma": 0.5, "speeds": None, "network": 0.0}
    >>> absence = {"available": 1.0, "period": 3600.0, "dropout": 0.0, "timeout": 0.0, "max_staleness": 10}
    >>> age = {"staleness": "polynomial", "exponent": 0.5, "hinge_a": 10.0, "hinge_b": 4.0}
    >>> fedbuff = under_clock(count=10, per_round=2, seed=0, **work, **clients, **absence, **age)
    >>> [task.weight == (1 + task.staleness) ** -0.5 for task in fedbuff.tasks(t=5)]
    [True, True]
    """
    _require_slots(concurrency, per_round, count)
    key = "participation.max_staleness"
    require(max_staleness >= 0, key, max_staleness, "at least 0", f"{key}=10")
    key = "participation.timeout"
    require(0 <= timeout < float("inf"), key, timeout, "a number of seconds, at least 0", f"{key}=60")
    slots, work = concurrency or per_round, epoch_range(epochs)
    known = not isinstance(sampler, Chooses | LongestAbsent)
    reason = "the clock runs ahead of training, and this sampler cannot say who comes before it happens"
    require_fits(known, "participation/sampler", type(sampler).__name__, reason, "participation=ideal")
    return Event(
        Rules(count, per_round, slots, wait, work, timeout, max_staleness, seed),
        Devices(seed, step_time, speed_sigma, speeds, network, available, period, dropout),
        Counting(normalize, reference, Discount(staleness, exponent, hinge_a, hinge_b), anchor),
        sampler or Uniform(count, per_round, seed),
        timed,
        facts,
    )


def _require_slots(slots: int | None, m: int, n: int) -> None:
    """A server step needs its updates from clients that are at work together."""
    key = "participation.concurrency"
    allowed = f"from clients.per_round={m}, the updates of a server step, to clients.count={n}"
    hint = f"{key}={min(max(slots or m, m), n)}, or clients.per_round={min(max(slots or m, 1), m)}"
    require(slots is None or m <= slots <= n, key, slots, allowed, hint)
