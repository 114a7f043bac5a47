"""The server without Lightning: a rule, its plan and its state.

The loop, a deployment and a notebook call it alike.

>>> import torch
>>> from fedgm.schedule import Constant
>>> from fedgm.server import GeneralMomentum
>>> rule = GeneralMomentum(eta=1.0, beta=0.5, nu=1.0)
>>> engine = Engine(rule, Constant().plan(2, rule))
>>> x = engine.step(1, torch.tensor([1.0]), torch.tensor([0.4]))  # d = 0.5 * 0.4, x -= d
>>> round(x.item(), 6), engine.row["server/stage"]
(0.8, 1)
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import nan
from typing import Any, NamedTuple

from torch import Tensor

from fedgm.server.momentum import Momentum, momentum_constant
from fedgm.server.plan import Decided, Plan
from fedgm.server.rule import Averages, Hyper, Logs, SeesAges, SeesNorms, ServerRule, State

Columns = dict[str, float | int | None]
TRIPLE = set(Momentum._fields)


class RoundFacts(NamedTuple):
    """What a rule may see of a round besides the mean update D."""

    squared: float = nan  # the mean of |D_i|^2 over the cohort
    ages: Callable[[], Mapping[int, float]] | None = None  # by age in rounds: how much D has of such updates


NOTHING_MORE = RoundFacts()


@dataclass
class Engine:
    """Steps the global model (Eq. 2, or another rule); ``row`` is what the last step logs."""

    rule: ServerRule
    plan: Plan

    def __post_init__(self) -> None:
        self.state: State = {}
        self.row: Columns = {}
        # Asked once: isinstance of a protocol is slow.
        self._sees_norms = self.rule if isinstance(self.rule, SeesNorms) else None
        self._sees_ages = self.rule if isinstance(self.rule, SeesAges) else None
        self._logs = self.rule if isinstance(self.rule, Logs) else None
        self.averages = self.rule if isinstance(self.rule, Averages) else None

    def step(self, t: int, x: Tensor, delta: Tensor, facts: RoundFacts = NOTHING_MORE) -> Tensor:
        """x_{t+1} of round ``t`` (from 1); d and whatever else the rule keeps is carried over stage ends."""
        stage, hyper = self.plan.at(t)
        state = {k: v.to(x.device) for k, v in self.state.items()} or self.rule.init(x)
        if self._sees_norms is not None:
            hyper = self._sees_norms.adapted(hyper, delta, facts.squared)
        if self._sees_ages is not None and facts.ages is not None:
            state = self._sees_ages.aged(state, facts.ages())
        x_next, self.state = self.rule.step(x, state, delta, hyper)
        self.row = self._columns(stage, hyper)
        return x_next

    def average(self, x: Tensor, t: int) -> Tensor:
        """The averaged point behind x, the model after round ``t``; x itself before the first step."""
        if self.averages is None or not self.state:
            return x
        state = {k: v.to(x.device) for k, v in self.state.items()}
        return self.averages.average(x, state, self.plan.after(t))

    def _columns(self, stage: int, hyper: Hyper) -> Columns:
        """Columns ``server/*`` and ``momentum/*`` of the round, and those of the rule itself."""
        whole = self.plan.stages[stage - 1]  # a schedule that changes every round has no W2
        row: Columns = {
            "server/stage": stage,
            "server/gain": self.rule.gain(hyper),
            "server/W1": momentum_constant(Momentum(**hyper)) if set(hyper) == TRIPLE else None,
            "server/W2": whole.rounds * hyper["eta"] if whole.hyper == hyper else None,
            **{f"server/{name}": hyper.get(name) for name in ("eta", "beta", "nu")},
            "momentum/norm": self.state["d"].norm().item() if "d" in self.state else None,
        }
        if self._logs is not None:
            row |= {f"server/{name}": value for name, value in self._logs.log(self.state, hyper).items()}
        return row

    def observe(self, row: Mapping[str, float | int | None]) -> None:
        """A round's row, for a plan that is decided during the run."""
        if isinstance(self.plan, Decided):
            self.plan.observe(row)

    def state_dict(self) -> dict[str, Any]:
        """What a checkpoint keeps: d, whatever else the rule remembers, and what a plan has decided."""
        decided = {"plan": self.plan.state_dict()} if isinstance(self.plan, Decided) else {}
        return {"state": dict(self.state), **decided}

    def load_state_dict(self, content: Mapping[str, Any]) -> None:
        """Continue with the momentum of a checkpoint."""
        self.state = dict(content["state"])
        if isinstance(self.plan, Decided):
            self.plan.load_state_dict(content["plan"])
