"""The FedGM callback: fetches x, d and D, calls the server rule, writes back."""

from functools import partial
from typing import Any

from torch import Tensor

from fedgm.errors import require
from fedgm.federated.events import FederatedCallback, ServerUpdate, StageEnd, fire
from fedgm.lightning import pl
from fedgm.schedule import Constant, Plan, Schedule
from fedgm.server import Momentum, ServerRule, State, momentum_constant
from fedgm.server.rule import Averages, SeesNorms

TRIPLE = set(Momentum._fields)


class FedGM(FederatedCallback):
    """Applies server momentum with the parameters of the current stage; d is carried over stage ends.

    ``plan`` is a plan of stages, or a schedule that makes one of the trainer's ``max_epochs`` rounds.
    """

    def __init__(self, rule: ServerRule, plan: Plan | Schedule | None = None) -> None:
        self.rule = rule
        # Asked once: isinstance of a protocol is slow.
        self._sees_norms = rule if isinstance(rule, SeesNorms) else None
        self._averages = rule if isinstance(rule, Averages) else None
        self._given: Plan | Schedule = plan or Constant()
        self.state: State = {}
        self._plan = plan if isinstance(plan, Plan) else None

    @property
    def plan(self) -> Plan:
        """Which hyperparameters hold in which round."""
        assert self._plan is not None, "a schedule becomes a plan when training starts"
        return self._plan

    def setup(self, trainer: pl.Trainer, pl_module: pl.LightningModule, stage: str) -> None:
        """Make the plan, now that the number of rounds is known."""
        if not isinstance(self._given, Plan) and stage == "fit":
            rounds = trainer.max_epochs or -1
            require(rounds > 0, "max_epochs", rounds, "the number of server rounds", "max_epochs=100")
            self._plan = self._given.plan(rounds, self.rule)

    def on_server_update(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, update: ServerUpdate
    ) -> None:
        """Eq. 2 (or another rule) on the flat parameters."""
        stage, hyper = self.plan.at(update.round)
        state = {k: v.to(update.x.device) for k, v in self.state.items()} or self.rule.init(update.x)
        if self._sees_norms is not None:
            hyper = self._sees_norms.adapted(hyper, update.delta, update.squared)
        update.x, self.state = self.rule.step(update.x, state, update.delta, hyper)
        if self._averages is not None:
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
        if self._averages is None or not self.state:
            return x
        state = {k: v.to(x.device) for k, v in self.state.items()}
        return self._averages.average(x, state, self.plan.after(t))

    def on_train_epoch_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Tell everyone where a stage ends."""
        t = trainer.global_step  # one a round
        if t in self.plan.ends[:-1]:
            (stage, before), (_, after) = self.plan.at(t), self.plan.at(t + 1)
            fire(trainer, "on_stage_end", StageEnd(stage, t, before, after))

    def state_dict(self) -> dict[str, Any]:
        """d (and whatever else the rule keeps) is part of every checkpoint."""
        return {"state": dict(self.state)}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continue with the momentum of the checkpoint."""
        self.state = dict(state_dict["state"])
