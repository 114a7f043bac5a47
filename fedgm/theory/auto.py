"""A schedule that measures the noise of D, then chooses (eta, beta, nu) and when eta drops."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from fedgm.errors import RefusedError, require
from fedgm.schedule.plan import Stage
from fedgm.server import GeneralMomentum, Momentum
from fedgm.server.plan import Decided
from fedgm.server.rule import ServerRule
from fedgm.theory.quadratic import FEDAVG, Problem, Stretch, excess
from fedgm.theory.stability import IDEAL
from fedgm.theory.suggestion import PROBE_ETA, SETTLED, Measured, best_constant, fitted, share_of_noise

COLUMNS = ("update/norm", "client/drift", "cohort/clients")
TAILS = (0.0, 0.05, 0.1, 0.2, 0.3, 0.4)  # shares of the rounds after the last drop
HALVINGS = (1, 2, 3)


@dataclass(frozen=True)
class Measuring(Decided):
    """FedAvg until the probe ends; then the stages that the model finds best for the rounds that are left."""

    rule: GeneralMomentum = field(repr=False)
    auto: "Auto" = field(repr=False)
    seen: list[list[float]] = field(default_factory=list[list[float]])  # COLUMNS of the probe's rounds

    def observe(self, row: Mapping[str, float | int | None]) -> None:
        """Remember a round of the probe; choose after its last one."""
        t = int(row.get("round") or 0)
        values = [row.get(column) for column in COLUMNS]
        if SETTLED <= t <= self.auto.probe and None not in values:
            self.seen.append([float(value or 0.0) for value in values])
        if t == self.auto.probe:
            for stretch in self._chosen():
                self.next_stage(t, stretch.momentum._asdict())
                t += stretch.rounds

    def _chosen(self) -> list[Stretch]:
        """The rest of the run; the algorithm's own values where the model does not apply."""
        rounds = self.ends[-1] - self.auto.probe
        own = [Stretch(rounds, Momentum(**self.rule.hyper))]
        norms, drifts, cohort = (
            (list(column) for column in zip(*self.seen, strict=True)) if self.seen else 3 * ([],)
        )
        if len(norms) < 2 or min(cohort) < 2:
            return own
        share, error = share_of_noise(norms, drifts, [int(m) for m in cohort], self.auto.clients)
        measured = Measured(share, error, range(SETTLED, self.auto.probe + 1))
        try:
            problem = fitted(measured, IDEAL)
        except RefusedError:
            return own
        return with_drops(
            problem, best_constant(problem, rounds, self.auto.last(rounds)), rounds, self.auto.drops
        )

    def state_dict(self) -> dict[str, Any]:
        """Stages so far, and what the probe has measured."""
        return {"stages": [[s.rounds, dict(s.hyper)] for s in self.stages], "seen": [[*v] for v in self.seen]}

    def load_state_dict(self, content: Mapping[str, Any]) -> None:
        """Continue with the stages of a checkpoint."""
        object.__setattr__(self, "stages", tuple(Stage(n, dict(hyper)) for n, hyper in content["stages"]))
        self.seen[:] = content["seen"]


def with_drops(problem: Problem, first: Momentum, rounds: int, drops: int) -> list[Stretch]:
    """Halve eta up to ``drops`` times before the end, W1 kept, where the model reaches less at the end.

    Stages after a drop have equal lengths. Eq. 3 would also keep T_s eta_s (W2): it drops much earlier,
    while flat directions still gain from a large eta.
    """
    rule = GeneralMomentum(**first._asdict())
    plans = [[Stretch(rounds, first)]]
    for halvings in (h for h in HALVINGS if h <= drops):
        for tail in TAILS[1:]:
            each = int(rounds * tail / halvings)
            if each < 1 or rounds <= halvings * each:
                continue
            later = [Momentum(**rule.follow(first.eta * 0.5**k, first.eta)) for k in range(1, halvings + 1)]
            plans.append([Stretch(rounds - halvings * each, first), *(Stretch(each, m) for m in later)])
    return plans[int(excess(problem, plans, last=1).argmin())]


@dataclass(frozen=True)
class Auto:
    """``probe`` rounds of FedAvg, then values for the rest: for FedGM's family and ideal clients.

    >>> rule = GeneralMomentum(eta=2.0, beta=0.9, nu=0.9)
    >>> plan = Auto(probe=10, clients=100, per_round=5, every=5, participation="ideal").plan(60, rule)
    >>> for t in range(1, 11):
    ...     plan.observe({"round": t, "update/norm": 0.2, "client/drift": 0.3, "cohort/clients": 5})
    >>> plan.ends
    [10, 50, 60]
    """

    probe: int
    clients: int
    per_round: int
    every: int
    participation: str
    drops: int = 2

    def __post_init__(self) -> None:
        ok = self.probe > SETTLED + 1
        require(ok, "schedule.probe", self.probe, f"above {SETTLED + 1} rounds", "schedule.probe=25")
        require(0 <= self.drops <= 3, "schedule.drops", self.drops, "0 to 3", "schedule.drops=2")
        known = self.participation == "ideal"
        allowed = "ideal: a probe knows nothing of how stale clients will be"
        require(
            known,
            "participation",
            self.participation,
            allowed,
            "fedgm suggest, which takes a delay into account",
        )
        ok = 2 <= self.per_round < self.clients
        allowed = "at least 2 and fewer than clients.count: the noise of D is measured by how clients differ"
        require(ok, "clients.per_round", self.per_round, allowed, "clients.per_round=5")

    def last(self, rounds: int) -> int:
        """Rounds over which a plan is judged: those of the last ten evaluations."""
        return max(min(10 * self.every, rounds // 3), 1)

    def plan(self, rounds: int, rule: ServerRule) -> Measuring:
        """The probe, as far as is known before it."""
        family = isinstance(rule, GeneralMomentum)
        allowed = "another schedule: auto chooses eta, beta and nu, which this algorithm does not have"
        require(family, "schedule", "auto", allowed, "algorithm=fedgm")
        ok = rounds >= 2 * self.probe
        require(
            ok, "rounds", rounds, f"at least twice schedule.probe={self.probe}", f"rounds={2 * self.probe}"
        )
        assert isinstance(rule, GeneralMomentum)
        probing = Stage(rounds, Momentum(PROBE_ETA, *FEDAVG)._asdict())
        return Measuring((probing,), rule, self)
