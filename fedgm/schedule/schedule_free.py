"""Schedule-Free SGD (Defazio 2024) as a member of the family: beta_t = (t-1)/(t+1), eta and nu stay.

Its recursion is z -= a D; x = (1-c) x + c z with c = 1/(t+1), the mean of all z; y = (1-b) z + b x is sent.
With e = x - z = a (t-1)/2 d the steps of y are those of Eq. 2 at eta = a (1 - b/2), nu = b/(2-b) and
beta_t = (t-1)/(t+1), t from 1. W1 grows with t, so Eq. 3 does not hold.
"""

from dataclasses import dataclass
from functools import partial

from fedgm.errors import require_fits
from fedgm.schedule.decay import per_round
from fedgm.schedule.plan import Plan, Schedule
from fedgm.server.momentum import GeneralMomentum
from fedgm.server.rule import Hyper, ServerRule
from fedgm.server.schedule_free import ScheduleFree


@dataclass(frozen=True)
class UniformAverage:
    """beta_t = (t-1)/(t+1) = 0, 1/3, 1/2, 3/5 ...: d is then a mean of updates in which update s weighs s."""

    def plan(self, rounds: int, rule: ServerRule) -> Plan:
        """A plan of one stage; the algorithm must have a beta."""
        allowed = "this algorithm has no beta to change"
        hint = "schedule=constant, or algorithm=schedule_free"
        require_fits("beta" in rule.hyper, "schedule", "schedule_free", allowed, hint)
        return per_round(rounds, partial(self.hyper_at, rule))

    def hyper_at(self, rule: ServerRule, t: int) -> Hyper:
        """The algorithm's own values but for beta, and for nu where it is tied to beta (FedNAG)."""
        beta = (t - 1) / (t + 1)
        tied = isinstance(rule, GeneralMomentum) and rule.nu_is_beta
        return {**rule.hyper, "beta": beta, **({"nu": beta} if tied else {})}


def require_its_schedule(rule: ServerRule, schedule: Schedule, name: str) -> None:
    """Refuse Schedule-Free under a schedule that is not its own."""
    ok = not isinstance(rule, ScheduleFree) or isinstance(schedule, UniformAverage)
    allowed = "algorithm=schedule_free has its beta from schedule=schedule_free"
    require_fits(ok, "schedule", name, allowed, "schedule=schedule_free")
