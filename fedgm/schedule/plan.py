"""Eq. 3: how long stages are, and the schedules that make a plan of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import ceil, floor, inf
from typing import Protocol

from fedgm.errors import ClashError, require
from fedgm.server.momentum import GeneralMomentum
from fedgm.server.plan import Plan, Stage
from fedgm.server.rule import ServerRule


class Schedule(Protocol):
    """Makes the plan of a run; one small class and one yaml each."""

    def plan(self, rounds: int, rule: ServerRule) -> Plan:
        """The stages of ``rounds`` rounds for this rule."""
        ...


def stage_ends(rounds: int, etas: Sequence[float]) -> list[int]:
    """Ends of stages with T_s eta_s constant (Eq. 3).

    The *cumulative* length T (1/eta_1 + ... + 1/eta_s) / sum(1/eta) is rounded half up; only this
    gives the lines drawn in Figures 2 and 8 (rounding each stage, floor and ceil all miss them).

    >>> stage_ends(1000, [2.0, 1.0, 0.5])
    [143, 429, 1000]
    """
    inverse = [1 / eta for eta in etas]
    total = sum(inverse)
    return [*(floor(rounds * part / total + 0.5) for part in list(accumulate(inverse))[:-1]), rounds]


def stage_lengths(rounds: int, etas: Sequence[float]) -> list[int]:
    """Rounds of each stage (Eq. 3); an empty stage is an error that names a number of rounds that works.

    >>> stage_lengths(1000, [2.0, 1.0, 0.5])
    [143, 286, 571]
    """
    lengths = _differences(stage_ends(rounds, etas))
    if min(lengths) < 1:
        enough = ceil(max(etas) * sum(1 / eta for eta in etas))  # here the shortest stage has a whole round
        longer = range(rounds + 1, min(enough, rounds + 10_000))
        need = next((n for n in longer if min(_differences(stage_ends(n, etas))) > 0), enough)
        raise ClashError("rounds", rounds, f"stages {lengths} contain an empty one", f"rounds={need}")
    return lengths


@dataclass(frozen=True)
class Constant:
    """One stage: the rule's own values in every round.

    >>> Constant().plan(100, GeneralMomentum(eta=1.0, beta=0.9, nu=0.7)).ends
    [100]
    """

    def plan(self, rounds: int, rule: ServerRule) -> Plan:
        """A single stage of all rounds."""
        return Plan((Stage(rounds, rule.hyper),))


@dataclass(frozen=True)
class Multistage:
    """Stages at the given etas, for FedGM's family alone; lengths and betas follow from Eq. 3.

    >>> plan = Multistage([2.0, 1.0, 0.5]).plan(1000, GeneralMomentum(eta=2.0, beta=0.9, nu=0.9))
    >>> [round(stage.hyper["beta"], 6) for stage in plan.stages]
    [0.9, 0.947368, 0.972973]
    """

    etas: Sequence[float]

    def plan(self, rounds: int, rule: ServerRule) -> Plan:
        """Lengths from W2, betas from W1; an empty stage is an error."""
        etas = [float(eta) for eta in self.etas]
        ok = bool(etas) and all(0 < eta < inf for eta in etas) and etas == sorted(etas, reverse=True)
        hint = "schedule.etas=[2.0,1.0,0.5]"
        require(ok, "schedule.etas", etas, "positive numbers that never increase (Eq. 3)", hint)
        family = isinstance(rule, GeneralMomentum)
        allowed = "another schedule: Eq. 3 needs eta, beta and nu, which this algorithm does not have"
        require(family, "schedule", "multistage", allowed, "schedule=stages, or algorithm=fedgm")
        lengths = stage_lengths(rounds, etas)
        hypers = [rule.follow(eta, first=etas[0]) for eta in etas]
        return Plan(tuple(Stage(n, hyper) for n, hyper in zip(lengths, hypers, strict=True)))


def _differences(ends: Sequence[int]) -> list[int]:
    """From ends to lengths."""
    return [end - start for start, end in zip([0, *ends], ends, strict=False)]
