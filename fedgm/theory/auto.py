"""A schedule that finds FedAvg's edge inside the run, then takes the values that theory gives for it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import ceil
from typing import Any
from warnings import warn

from fedgm.errors import RefusedError, require
from fedgm.schedule.plan import Stage
from fedgm.server import GeneralMomentum, Momentum
from fedgm.server.plan import Decided
from fedgm.server.rule import ServerRule
from fedgm.theory.suggestion import Step, edge_of, is_past, suggest

RATIO = 2**0.5  # of eta, from step to step
BETA = 0.95  # of d while FedAvg runs (nu = 0): the memory with which FedGM goes on
WATCHED = "train/loss"


@dataclass(frozen=True)
class Searching(Decided):
    """FedAvg at a rising eta until its loss rises; then FedGM, and half of eta in the last fifth."""

    rule: GeneralMomentum = field(repr=False)
    auto: "Auto" = field(repr=False)
    steps: list[Step] = field(default_factory=list[Step])
    chosen: list[int] = field(default_factory=list[int])  # the round after which the values hold, once known

    @property
    def is_over(self) -> bool:
        """Whether the values are chosen."""
        return bool(self.chosen)

    def observe(self, row: Mapping[str, float | int | None]) -> None:
        """After the last round of a step: one more, or the values for the rest."""
        t, loss = int(row.get("round") or 0), row.get(WATCHED)
        if self.is_over or t % self.auto.length:
            return
        eta = self.stages[-1].hyper["eta"]
        if loss is not None:
            self.steps.append(Step(eta, loss))
            if not is_past(self.steps) and len(self.steps) < self.auto.steps(self.ends[-1]):
                self.next_stage(t, rising(eta * RATIO))
                return
        self.chosen.append(t)
        self._take(t, loss is not None)

    def _take(self, t: int, measured: bool) -> None:
        """What holds after round t; where the test says nothing, the algorithm's own, with a warning."""
        left = self.ends[-1] - t
        try:
            if not measured:
                raise RefusedError(f"round {t} has no {WATCHED}, and a step of its test ends there")
            values = suggest(edge_of(self.steps), left).momentum
        except RefusedError as error:
            own = Momentum(**self.rule.hyper)
            said = f"eta {own.eta:g}, beta {own.beta:g}, nu {own.nu:g}"
            hint = "Try a smaller schedule.start" if measured else f"Try eval.every={self.auto.length}"
            warn(f"schedule=auto goes on with the algorithm's own {said}: {error}. {hint}", stacklevel=3)
            self.next_stage(t, own._asdict())
            return
        self.next_stage(t, values._asdict())
        if late := int(left * self.auto.drop):
            rule = GeneralMomentum(**values._asdict())
            self.next_stage(t + left - late, rule.follow(values.eta / 2, values.eta))

    def state_dict(self) -> dict[str, Any]:
        """Stages so far, and the losses of the steps."""
        stages = [[s.rounds, dict(s.hyper)] for s in self.stages]
        return {"stages": stages, "steps": [list(step) for step in self.steps], "chosen": [*self.chosen]}

    def load_state_dict(self, content: Mapping[str, Any]) -> None:
        """Continue with the stages of a checkpoint."""
        object.__setattr__(self, "stages", tuple(Stage(n, dict(hyper)) for n, hyper in content["stages"]))
        self.steps[:] = [Step(*step) for step in content["steps"]]
        self.chosen[:] = content["chosen"]


def rising(eta: float) -> dict[str, float]:
    """A step of the test: FedAvg, whose updates d follows."""
    return {"eta": eta, "beta": BETA, "nu": 0.0}


@dataclass(frozen=True)
class Auto:
    """FedAvg from ``start`` on, ``each`` rounds a step; values for the rest: for FedGM and ideal clients.

    A step ends with an evaluation, so it has at least ``every`` rounds. The test has half of the run.

    >>> rule = GeneralMomentum(eta=2.0, beta=0.9, nu=0.9)
    >>> plan = Auto(start=1.0, each=4, every=5, drop=0.2).plan(100, rule)
    >>> for t, loss in ((5, 2.0), (10, 1.5), (15, 1.9)):
    ...     plan.observe({"round": t, "train/loss": loss})
    >>> plan.ends, plan.stages[3].hyper
    ([5, 10, 15, 83, 100], {'eta': 5.1, 'beta': 0.95, 'nu': 0.9})
    """

    start: float
    each: int
    every: int
    drop: float = 0.2

    def __post_init__(self) -> None:
        ok = 0 < self.start < 100
        require(ok, "schedule.start", self.start, "between 0 and 100", "schedule.start=0.35")
        for key, value in (("each", self.each), ("every", self.every)):
            require(value >= 1, f"schedule.{key}", value, "at least 1 round", f"schedule.{key}=4")
        require(0 <= self.drop < 1, "schedule.drop", self.drop, "0 up to below 1", "schedule.drop=0.2")

    @property
    def length(self) -> int:
        """Rounds of a step: whole evaluations."""
        return self.every * ceil(self.each / self.every)

    def steps(self, rounds: int) -> int:
        """How many the test may have."""
        return rounds // 2 // self.length

    def plan(self, rounds: int, rule: ServerRule) -> Searching:
        """The first step, as far as is known before it."""
        free = type(rule) is GeneralMomentum and not rule.nu_is_beta
        allowed = (
            "another schedule: auto chooses eta, beta and nu each by itself, which only FedGM leaves free"
        )
        require(free, "schedule", "auto", allowed, "algorithm=fedgm")
        allowed = f"at least {4 * self.length}: steps of {self.length} rounds, two of them in half of the run"
        hint = f"rounds={16 * self.length}, or a smaller eval.every or schedule.each"
        require(self.steps(rounds) >= 2, "rounds", rounds, allowed, hint)
        assert isinstance(rule, GeneralMomentum)
        return Searching((Stage(rounds, rising(self.start)),), rule, self)
