"""Schedules that change the hyperparameters every round, to compare multistage FedGM with.

Curves move eta and may let beta follow W1; Sutskever 2013 and Schedule-Free move beta, and eta stays.
"""

from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import cos, inf, pi
from typing import ClassVar

from fedgm.errors import require, require_fits
from fedgm.schedule.plan import Plan, Schedule, Stage
from fedgm.server.momentum import GeneralMomentum
from fedgm.server.rule import Hyper, ServerRule
from fedgm.server.schemes import ScheduleFree


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
    """eta_t = eta t^-power.

    >>> from fedgm.server import GeneralMomentum
    >>> plan = Polynomial(power=0.5).plan(rounds=100, rule=GeneralMomentum(eta=2.0, beta=0.9, nu=0.9))
    >>> plan.at(4)
    (1, {'eta': 1.0, 'beta': 0.9, 'nu': 0.9})
    """

    power: float

    def __post_init__(self) -> None:
        require(0 <= self.power < inf, "schedule.power", self.power, "a number >= 0", "schedule.power=0.5")

    def factor(self, t: int, rounds: int) -> float:
        """t^-power."""
        return t**-self.power


@dataclass(frozen=True)
class Cosine(Curve):
    """Half a cosine from eta down to final * eta, which round T + 1 would reach.

    >>> [round(Cosine(final=0.0).factor(t, rounds=4), 3) for t in (1, 2, 3, 4)]
    [1.0, 0.854, 0.5, 0.146]
    """

    final: float

    def __post_init__(self) -> None:
        require(0 <= self.final <= 1, "schedule.final", self.final, "0 <= final <= 1", "schedule.final=0.0")

    def factor(self, t: int, rounds: int) -> float:
        """From 1 down to almost ``final``."""
        return self.final + (1 - self.final) * (1 + cos(pi * (t - 1) / rounds)) / 2


@dataclass(frozen=True)
class WarmupStep(Curve):
    """A linear rise, then drops by ``ratio``; places are fractions of the run, so any ``rounds`` will do.

    >>> schedule = WarmupStep(warmup=0.5, drops=[0.75], ratio=0.5)
    >>> [schedule.factor(t, rounds=4) for t in (1, 2, 3, 4)]
    [0.5, 1.0, 1.0, 0.5]
    """

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
    """Triangles between low * eta and eta (Smith 2017).

    >>> [Cyclic(cycles=1, low=0.5).factor(t, rounds=4) for t in (1, 2, 3, 4)]
    [0.5, 0.75, 1.0, 0.75]
    """

    cycles: int
    low: float

    def __post_init__(self) -> None:
        require(self.cycles >= 1, "schedule.cycles", self.cycles, "at least 1", "schedule.cycles=4")
        require(0 < self.low <= 1, "schedule.low", self.low, "0 < low <= 1", "schedule.low=0.1")

    def factor(self, t: int, rounds: int) -> float:
        """From ``low`` up to 1 and back, ``cycles`` times."""
        phase = (t - 1) * self.cycles / rounds % 1
        return self.low + (1 - self.low) * (1 - abs(2 * phase - 1))


@dataclass(frozen=True)
class MovingBeta(ABC):
    """beta_t is a function of the round; eta stays, and so does nu unless it is tied to beta (FedNAG)."""

    name: ClassVar[str]  # in conf/schedule
    made_for: ClassVar[str]  # an algorithm that has a beta

    @abstractmethod
    def beta(self, t: int) -> float:
        """beta of round ``t``, from 1."""

    def plan(self, rounds: int, rule: ServerRule) -> Plan:
        """A plan of one stage; the algorithm must have a beta."""
        allowed = "this algorithm has no beta to change"
        hint = f"schedule=constant, or algorithm={self.made_for}"
        require_fits("beta" in rule.hyper, "schedule", self.name, allowed, hint)
        return per_round(rounds, partial(self.hyper_at, rule))

    def hyper_at(self, rule: ServerRule, t: int) -> Hyper:
        """The algorithm's values with the beta of round ``t``."""
        beta = self.beta(t)
        tied = isinstance(rule, GeneralMomentum) and rule.nu_is_beta
        return {**rule.hyper, "beta": beta, **({"nu": beta} if tied else {})}


@dataclass(frozen=True)
class Sutskever(MovingBeta):
    """beta_t = min(1 - 2^(-1 - log2(floor(t/every) + 1)), beta_max), originally ``every`` 250.

    >>> [Sutskever(beta_max=0.8, every=10).beta(t) for t in (1, 10, 20)]
    [0.5, 0.75, 0.8]
    """

    beta_max: float
    every: int
    name = "sutskever"
    made_for = "fedgm"

    def __post_init__(self) -> None:
        legal = 0 <= self.beta_max < 1
        require(legal, "schedule.beta_max", self.beta_max, "0 <= beta_max < 1", "schedule.beta_max=0.99")
        require(self.every >= 1, "schedule.every", self.every, "at least 1 round", "schedule.every=250")

    def beta(self, t: int) -> float:
        """The power of two written out: 1/2, 3/4, 5/6, 7/8 ..."""
        return min(1 - 1 / (2 * (t // self.every + 1)), self.beta_max)


@dataclass(frozen=True)
class UniformAverage(MovingBeta):
    """Schedule-Free's beta_t = (t-1)/(t+1): d is then a mean of updates in which update s weighs s.

    The rule and its derivation are :func:`fedgm.server.schemes.schedule_free`.

    >>> [UniformAverage().beta(t) for t in (1, 3, 4)]
    [0.0, 0.5, 0.6]
    """

    name = "schedule_free"
    made_for = "schedule_free"

    def beta(self, t: int) -> float:
        """0, 1/3, 1/2, 3/5 ..."""
        return (t - 1) / (t + 1)


def require_its_schedule(rule: ServerRule, schedule: Schedule, name: str) -> None:
    """Refuse Schedule-Free under a schedule that is not its own."""
    ok = not isinstance(rule, ScheduleFree) or isinstance(schedule, UniformAverage)
    allowed = "algorithm=schedule_free takes its beta from schedule=schedule_free"
    require_fits(ok, "schedule", name, allowed, "schedule=schedule_free")
