"""Sutskever 2013: beta grows in steps, eta stays."""

from dataclasses import dataclass
from functools import partial

from fedgm.errors import require, require_fits
from fedgm.schedule.decay import per_round
from fedgm.schedule.plan import Plan
from fedgm.server.momentum import GeneralMomentum
from fedgm.server.rule import Hyper, ServerRule


@dataclass(frozen=True)
class Sutskever:
    """beta_t = min(1 - 2^(-1 - log2(floor(t/every) + 1)), beta_max), originally ``every`` 250."""

    beta_max: float
    every: int

    def __post_init__(self) -> None:
        require(
            0 <= self.beta_max < 1,
            "schedule.beta_max",
            self.beta_max,
            "0 <= beta_max < 1",
            "schedule.beta_max=0.99",
        )
        require(self.every >= 1, "schedule.every", self.every, "at least 1 round", "schedule.every=250")

    def beta(self, t: int) -> float:
        """The power of two written out: 1/2, 3/4, 5/6, 7/8 ..."""
        return min(1 - 1 / (2 * (t // self.every + 1)), self.beta_max)

    def plan(self, rounds: int, rule: ServerRule) -> Plan:
        """A plan of one stage; the algorithm must have a beta."""
        allowed = "this algorithm has no beta to change"
        require_fits(
            "beta" in rule.hyper, "schedule", "sutskever", allowed, "schedule=constant, or algorithm=fedgm"
        )
        return per_round(rounds, partial(self.hyper_at, rule))

    def hyper_at(self, rule: ServerRule, t: int) -> Hyper:
        """The algorithm's own values but for beta, and for nu where it is tied to beta (FedNAG)."""
        beta = self.beta(t)
        tied = isinstance(rule, GeneralMomentum) and rule.nu_is_beta
        return {**rule.hyper, "beta": beta, **({"nu": beta} if tied else {})}
