"""A schedule that measures the noise of D, then chooses (eta, beta, nu) and when eta drops."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from warnings import warn

from fedgm.errors import RefusedError, require
from fedgm.schedule.plan import Stage
from fedgm.server import GeneralMomentum, Momentum
from fedgm.server.plan import Decided
from fedgm.server.rule import ServerRule
from fedgm.theory.quadratic import FEDAVG, Problem, Stretch, excess
from fedgm.theory.stability import IDEAL
from fedgm.theory.suggestion import COLUMNS, PROBE_ETA, SETTLED, best_constant, fitted, measure

PROBING = Momentum(PROBE_ETA, *FEDAVG)
TAILS = (0.05, 0.1, 0.2, 0.3, 0.4)  # shares of the rounds after the first drop
HALVINGS = (1, 2, 3)
Values = dict[str, float | int | None]


@dataclass(frozen=True)
class Measuring(Decided):
    """FedAvg until the probe ends; then the stages that the model finds best for the rounds that are left."""

    rule: GeneralMomentum = field(repr=False)
    auto: "Auto" = field(repr=False)
    seen: list[Values] = field(default_factory=list[Values])  # what a choice needs of the probe's rows

    def observe(self, row: Mapping[str, float | int | None]) -> None:
        """Remember a round of the probe; choose after its last one."""
        t = int(row.get("round") or 0)
        if t <= self.auto.probe:
            self.seen.append({column: row.get(column) for column in ("round", *COLUMNS)})
        if t == self.auto.probe:
            for stretch in self._chosen():
                self.next_stage(t, stretch.momentum._asdict())
                t += stretch.rounds

    def _chosen(self) -> list[Stretch]:
        """The rest of the run; the algorithm's own values, with a warning, where the model does not apply."""
        auto, rounds = self.auto, self.ends[-1] - self.auto.probe
        try:
            problem = fitted(measure(self.seen, auto.clients), IDEAL)
        except RefusedError as error:
            own = Momentum(**self.rule.hyper)
            values = f"eta {own.eta:g}, beta {own.beta:g}, nu {own.nu:g}"
            warn(f"schedule=auto goes on with the algorithm's own {values}: {error}", stacklevel=2)
            return [Stretch(rounds, own)]
        probe = [Stretch(auto.probe, PROBING)]
        first = best_constant(problem, rounds, auto.last(rounds), probe)
        return with_drops(problem, first, rounds, auto.drops, probe)

    def state_dict(self) -> dict[str, Any]:
        """Stages so far, and what the probe has measured."""
        return {
            "stages": [[s.rounds, dict(s.hyper)] for s in self.stages],
            "seen": [{**values} for values in self.seen],
        }

    def load_state_dict(self, content: Mapping[str, Any]) -> None:
        """Continue with the stages of a checkpoint."""
        object.__setattr__(self, "stages", tuple(Stage(n, dict(hyper)) for n, hyper in content["stages"]))
        self.seen[:] = content["seen"]


def with_drops(
    problem: Problem, first: Momentum, rounds: int, drops: int, before: Sequence[Stretch] = ()
) -> list[Stretch]:
    """Halve eta up to ``drops`` times before the end, W1 kept, where the model reaches less at the end.

    ``rounds`` are those after ``before``.

    Stages after a drop have equal lengths. Eq. 3 would also keep T_s eta_s (W2): it drops much earlier,
    while flat directions still gain from a large eta.
    """
    rule = GeneralMomentum(**first._asdict())
    plans = [[Stretch(rounds, first)]]
    for halvings in (h for h in HALVINGS if h <= drops):
        for tail in TAILS:
            each = int(rounds * tail / halvings)
            if each < 1 or rounds <= halvings * each:
                continue
            later = [Momentum(**rule.follow(first.eta * 0.5**k, first.eta)) for k in range(1, halvings + 1)]
            plans.append([Stretch(rounds - halvings * each, first), *(Stretch(each, m) for m in later)])
    return plans[int(excess(problem, [[*before, *plan] for plan in plans], last=1).argmin())]


@dataclass(frozen=True)
class Auto:
    """``probe`` rounds of FedAvg, then values for the rest: for FedGM itself and ideal clients.

    >>> rule = GeneralMomentum(eta=2.0, beta=0.9, nu=0.9)
    >>> plan = Auto(probe=10, clients=100, every=5).plan(60, rule)
    >>> for t in range(1, 11):
    ...     plan.observe({"round": t, "update/norm": 0.2, "client/drift": 0.3, "cohort/clients": 5})
    >>> plan.ends
    [10, 50, 60]
    """

    probe: int
    clients: int
    every: int
    drops: int = 2

    def __post_init__(self) -> None:
        ok = self.probe > SETTLED + 1
        require(ok, "schedule.probe", self.probe, f"above {SETTLED + 1} rounds", "schedule.probe=25")
        require(0 <= self.drops <= 3, "schedule.drops", self.drops, "0 to 3", "schedule.drops=2")

    def last(self, rounds: int) -> int:
        """Rounds over which a plan is judged: those of the last ten evaluations."""
        return max(min(10 * self.every, rounds // 3), 1)

    def plan(self, rounds: int, rule: ServerRule) -> Measuring:
        """The probe, as far as is known before it."""
        free = type(rule) is GeneralMomentum and not rule.nu_is_beta
        allowed = (
            "another schedule: auto chooses eta, beta and nu each by itself, which only FedGM leaves free"
        )
        require(free, "schedule", "auto", allowed, "algorithm=fedgm")
        shorter = f", or schedule.probe={rounds // 2}" if rounds // 2 > SETTLED + 1 else ""
        ok, hint = rounds >= 2 * self.probe, f"rounds={2 * self.probe}{shorter}"
        require(ok, "rounds", rounds, f"at least twice schedule.probe={self.probe}", hint)
        assert isinstance(rule, GeneralMomentum)
        return Measuring((Stage(rounds, PROBING._asdict()),), rule, self)
