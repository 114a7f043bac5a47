"""Asynchronous participation under a virtual clock: FedBuff, FedAsync, Anarchic FL, and synchronous FL."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from fedgm.errors import require
from fedgm.participation.clock import Clock, Interval, Round, Rules
from fedgm.participation.devices import Devices
from fedgm.participation.epochs import epoch_range
from fedgm.participation.normalize import Effective, Normalize, weights
from fedgm.participation.staleness import Discount, Kind
from fedgm.participation.task import Anchor, ClientTask, Steps, step_per_epoch


@dataclass
class Event:
    """The server steps whenever ``per_round`` updates have arrived, whatever their age (Alg. 4).

    Only the latest round is kept: an earlier one is simulated again from the start, which gives the same.
    ``conf/participation/event.yaml`` describes the keys, :mod:`fedgm.participation.clock` the rules.
    """

    count: int
    per_round: int
    epochs: Sequence[int]
    reference: int
    seed: int
    normalize: Normalize = "reference"
    concurrency: int | None = None
    wait: bool = False
    step_time: float = 1.0
    timed: Literal["steps", "epochs"] = "steps"
    speed_sigma: float = 0.0
    speeds: str | None = None
    network: float = 0.0
    available: float = 1.0
    period: float = 3600.0
    dropout: float = 0.0
    timeout: float = 60.0
    staleness: Kind = "none"
    exponent: float = 0.5
    hinge_a: float = 10.0
    hinge_b: float = 4.0
    max_staleness: int = 10
    anchor: Anchor = "start"
    steps: Steps | None = None
    effective: Effective | None = None
    _clock: Clock = field(init=False, repr=False, compare=False)
    _latest: Round = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        self._check()
        self._discount = Discount(self.staleness, self.exponent, self.hinge_a, self.hinge_b)
        self._devices = Devices(
            self.seed, self.step_time, self.speed_sigma, self.speeds, self.network, self.available,
            self.period, self.dropout,
        )  # fmt: skip
        self._rules = Rules(
            self.count, self.per_round, self.concurrency or self.per_round, self.wait,
            epoch_range(self.epochs), self.timeout, self.max_staleness, self.seed,
        )  # fmt: skip
        self._restart()

    @property
    def history(self) -> int:
        """As many models as an update may be old, and x_t."""
        return self.max_staleness + 1

    def tasks(self, t: int) -> list[ClientTask]:
        """The updates that the server averages in step ``t``, in the order in which their work began."""
        arrived = self._at(t).arrived
        epochs = [work.epochs for work in arrived]
        steps = [(self.steps or step_per_epoch)(work.client, work.epochs) for work in arrived]
        factors = weights(self.normalize, epochs, steps, self.reference, self.effective)
        ages = [t - work.version for work in arrived]
        return [
            ClientTask(work.client, tau, work.epochs, factor * self._discount(tau))
            for work, tau, factor in zip(arrived, ages, factors, strict=True)
        ]

    def log(self, t: int) -> dict[str, float | int]:
        """Virtual time, and what did not make it into the mean."""
        now = self._at(t)
        return {
            "clock/time": now.time,
            "clock/wait": now.waited,
            "cohort/dropped": now.dropped,
            "cohort/stale": now.stale,
            "cohort/idle": now.idle,
            "cohort/staleness": sum(t - work.version for work in now.arrived) / len(now.arrived),
        }

    def trace(self, t: int) -> list[Interval]:
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
        work = step_per_epoch if self.timed == "epochs" else self.steps or step_per_epoch
        self._clock = Clock(self._rules, self._devices, work)
        self._latest = Round(t=0)

    def _check(self) -> None:
        slots, m, n = self.concurrency, self.per_round, self.count
        key = "participation.concurrency"
        allowed = f"from clients.per_round={m}, the updates of a server step, to clients.count={n}"
        hint = f"{key}={min(max(slots or m, m), n)}, or clients.per_round={min(max(slots or m, 1), m)}"
        require(slots is None or m <= slots <= n, key, slots, allowed, hint)
        key = "participation.max_staleness"
        require(self.max_staleness >= 0, key, self.max_staleness, "at least 0", f"{key}=10")
        key = "participation.timeout"
        allowed = "a number of seconds, at least 0"
        require(0 <= self.timeout < float("inf"), key, self.timeout, allowed, f"{key}=60")
