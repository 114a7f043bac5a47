"""Schedules that move eta every round, to compare multistage FedGM with."""

from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import cos, inf, pi

from fedgm.errors import require
from fedgm.schedule.plan import Plan, Stage
from fedgm.server.rule import Hyper, ServerRule


@dataclass(frozen=True)
class PerRound(Plan):
    """A single stage, whose hyperparameters are a function of the round: no stage lines to draw."""

    change: Callable[[int], Hyper]

    def at(self, t: int) -> tuple[int, Hyper]:
        """Stage 1, and the hyperparameters of round ``t`` (from 1)."""
        super().at(t)  # refuses a round after the last
        return 1, self.change(t)

    def after(self, t: int) -> Hyper:
        """Hyperparameters of round t + 1, which a function has beyond the last round, too."""
        return self.change(t + 1)


def per_round(rounds: int, change: Callable[[int], Hyper]) -> PerRound:
    """The plan in which ``change(t)`` holds in round t."""
    return PerRound((Stage(rounds, change(1)),), change)


@dataclass(frozen=True)
class Curve(ABC):
    """eta_t = algorithm.eta * factor(t); ``follow_w1`` lets beta follow W1 as Eq. 3 does, else it stays."""

    follow_w1: bool = field(default=False, kw_only=True)

    def plan(self, rounds: int, rule: ServerRule) -> Plan:
        """A plan of one stage."""
        return per_round(rounds, partial(self.hyper_at, rounds, rule))

    def hyper_at(self, rounds: int, rule: ServerRule, t: int) -> Hyper:
        """Hyperparameters of round ``t``."""
        first = rule.hyper["eta"]
        eta = first * self.factor(t, rounds)
        return rule.follow(eta, first) if self.follow_w1 else {**rule.hyper, "eta": eta}

    @abstractmethod
    def factor(self, t: int, rounds: int) -> float:
        """What algorithm.eta is multiplied by in round ``t``, from 1 to ``rounds``; positive."""


@dataclass(frozen=True)
class Polynomial(Curve):
    """eta_t = eta t^-power."""

    power: float

    def __post_init__(self) -> None:
        require(0 <= self.power < inf, "schedule.power", self.power, "a number >= 0", "schedule.power=0.5")

    def factor(self, t: int, rounds: int) -> float:
        """t^-power."""
        return t**-self.power


@dataclass(frozen=True)
class Cosine(Curve):
    """Half a cosine from eta down to final * eta, which round T + 1 would reach."""

    final: float

    def __post_init__(self) -> None:
        require(0 <= self.final <= 1, "schedule.final", self.final, "0 <= final <= 1", "schedule.final=0.0")

    def factor(self, t: int, rounds: int) -> float:
        """From 1 down to almost ``final``."""
        return self.final + (1 - self.final) * (1 + cos(pi * (t - 1) / rounds)) / 2


@dataclass(frozen=True)
class WarmupStep(Curve):
    """A linear rise, then drops by ``ratio``; places are fractions of the run, so any ``rounds`` will do."""

    warmup: float
    drops: Sequence[float]
    ratio: float

    def __post_init__(self) -> None:
        require(
            0 <= self.warmup < 1, "schedule.warmup", self.warmup, "0 <= warmup < 1", "schedule.warmup=0.05"
        )
        rising = all(a < b for a, b in zip([0.0, *self.drops], [*self.drops, 1.0], strict=True))
        allowed = "rising fractions of the run, between 0 and 1"
        require(rising, "schedule.drops", list(self.drops), allowed, "schedule.drops=[0.5,0.75]")
        require(0 < self.ratio <= 1, "schedule.ratio", self.ratio, "0 < ratio <= 1", "schedule.ratio=0.1")

    def factor(self, t: int, rounds: int) -> float:
        """The rise times the drops before round ``t``."""
        rise = min(1.0, t / max(1, round(self.warmup * rounds)))
        return rise * self.ratio ** bisect_left(self.drops, t / rounds)


@dataclass(frozen=True)
class Cyclic(Curve):
    """Triangles between low * eta and eta (Smith 2017)."""

    cycles: int
    low: float

    def __post_init__(self) -> None:
        require(self.cycles >= 1, "schedule.cycles", self.cycles, "at least 1", "schedule.cycles=4")
        require(0 < self.low <= 1, "schedule.low", self.low, "0 < low <= 1", "schedule.low=0.1")

    def factor(self, t: int, rounds: int) -> float:
        """From ``low`` up to 1 and back, ``cycles`` times."""
        phase = (t - 1) * self.cycles / rounds % 1
        return self.low + (1 - self.low) * (1 - abs(2 * phase - 1))
