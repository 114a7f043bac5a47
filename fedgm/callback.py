"""The FedGM callback: fetches x, d and D, calls the server rule, writes back."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from math import nan
from typing import Any

from torch import Tensor

from fedgm.lightning import pl
from fedgm.server import Momentum, Plan, ServerRule, State, momentum_constant
from fedgm.server.rule import Averages, SeesNorms

TRIPLE = set(Momentum._fields)


@dataclass
class ServerUpdate:
    """One server round, handed to every callback that has an ``on_server_update`` hook."""

    round: int  # t, from 1
    x: Tensor  # x_t before the hook, x_{t+1} after it
    delta: Tensor  # D, the cohort's mean delta
    squared: float = nan  # the mean of |D_i|^2 over the cohort
    average: Callable[[], Tensor] | None = None  # after the hook: the averaged point, where the rule has one
    log: dict[str, float | int | None] = field(default_factory=dict[str, float | int | None])


class FedGM(pl.Callback):
    """Applies server momentum with the parameters of the current stage; d is carried over stage ends."""

    def __init__(self, rule: ServerRule, plan: Plan) -> None:
        self.rule = rule
        self.plan = plan
        self.state: State = {}

    def on_server_update(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, update: ServerUpdate
    ) -> None:
        """Eq. 2 (or another rule) on the flat parameters."""
        stage, hyper = self.plan.at(update.round)
        state = {k: v.to(update.x.device) for k, v in self.state.items()} or self.rule.init(update.x)
        if isinstance(self.rule, SeesNorms):
            hyper = self.rule.adapted(hyper, update.delta, update.squared)
        update.x, self.state = self.rule.step(update.x, state, update.delta, hyper)
        if isinstance(self.rule, Averages):
            update.average = partial(self.average, update.x, update.round)
        update.log["server/stage"] = stage
        update.log["server/gain"] = self.rule.gain(hyper)
        update.log["server/W1"] = momentum_constant(Momentum(**hyper)) if set(hyper) == TRIPLE else None
        whole = self.plan.stages[stage - 1]  # a schedule that changes every round has no W2
        update.log["server/W2"] = whole.rounds * hyper["eta"] if whole.hyper == hyper else None
        update.log |= {f"server/{name}": hyper.get(name) for name in ("eta", "beta", "nu")}
        update.log["momentum/norm"] = self.state["d"].norm().item() if "d" in self.state else None

    def average(self, x: Tensor, t: int) -> Tensor:
        """The averaged point behind x, the model after round ``t``; x itself before the first step."""
        if not (isinstance(self.rule, Averages) and self.state):
            return x
        state = {k: v.to(x.device) for k, v in self.state.items()}
        return self.rule.average(x, state, self.plan.after(t))

    def state_dict(self) -> dict[str, Any]:
        """d (and whatever else the rule keeps) is part of every checkpoint."""
        return {"state": dict(self.state)}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continue with the momentum of the checkpoint."""
        self.state = dict(state_dict["state"])
