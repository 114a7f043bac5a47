"""The FedGM callback: fetches x and D, calls the server's engine, writes back."""

from functools import partial
from typing import Any, cast

from fedgm.client.weights import require_trainable
from fedgm.errors import ConfigError, require, require_fits
from fedgm.federated.events import FederatedCallback, ServerUpdate, StageEnd, fire
from fedgm.lightning import pl
from fedgm.schedule import Constant, Plan, Schedule
from fedgm.server import GeneralMomentum, Momentum, ServerRule
from fedgm.server.engine import Engine, RoundFacts
from fedgm.server.plan import Decided


class FedGM(FederatedCallback):
    """Applies server momentum with the parameters of the current stage.

    ``FedGM(eta=2, beta=0.9, nu=0.9)`` is Eq. 2; any other rule is ``FedGM(rule)``. ``schedule`` is a plan of
    stages, or a schedule that makes one of the trainer's ``max_epochs`` rounds. An engine that exists already
    is used as it is: ``FedGM(engine)``.

    >>> from fedgm.schedule import Multistage
    >>> callback = FedGM(eta=2, beta=0.9, nu=0.9, schedule=Multistage([2.0, 1.0, 0.5]))
    >>> from fedgm.server import GeneralMomentum
    >>> rule = GeneralMomentum(eta=2.0, beta=0.9, nu=0.9)
    >>> callback = FedGM(rule, Multistage([2.0, 1.0, 0.5]).plan(1000, rule))
    >>> callback.engine.plan.ends
    [143, 429, 1000]
    """

    def __init__(
        self,
        rule: ServerRule | Engine | None = None,
        schedule: Plan | Schedule | None = None,
        *,
        eta: float | None = None,
        beta: float | None = None,
        nu: float | None = None,
    ) -> None:
        self._engine: Engine | None = None
        chosen = _rule(rule, {"eta": eta, "beta": beta, "nu": nu})
        if isinstance(chosen, Engine):
            require(schedule is None, "schedule", schedule, "none: an engine has its plan", "FedGM(engine)")
            self._engine = chosen
        elif isinstance(schedule, Plan):
            self._engine = Engine(chosen, schedule)
        else:
            ok = schedule is None or hasattr(schedule, "plan")
            require(ok, "schedule", schedule, "a plan or a schedule", "schedule=Multistage([2.0, 1.0, 0.5])")
            etas = getattr(schedule, "etas", None)
            ok, reason = eta is None or not etas or eta == etas[0], "the schedule's first eta is used instead"
            require_fits(ok, "eta", eta, reason, f"eta={etas[0]:g}" if etas else "")
            self._pending = chosen, schedule or Constant()

    @property
    def engine(self) -> Engine:
        """Rule, plan and state."""
        assert self._engine is not None, "a schedule becomes a plan when training starts"
        return self._engine

    def setup(self, trainer: pl.Trainer, pl_module: pl.LightningModule, stage: str) -> None:
        """Refuse a module that cannot be federated, then make the plan for this number of rounds."""
        if stage == "fit":
            require_trainable(pl_module)
        if self._engine is None and stage == "fit":
            rounds, (rule, schedule) = trainer.max_epochs or -1, self._pending
            require(rounds > 0, "max_epochs", rounds, "the number of server rounds", "max_epochs=100")
            self._engine = Engine(rule, schedule.plan(rounds, rule))

    def on_server_update(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, update: ServerUpdate
    ) -> None:
        """Eq. 2 (or another rule) on the flat parameters."""
        update.x = self.engine.step(
            update.round, update.x, update.delta, RoundFacts(update.squared, update.ages)
        )
        if self.engine.averages is not None:
            update.average = partial(self.engine.average, update.x, update.round)
        update.log |= self.engine.row

    def on_train_epoch_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Tell everyone where a stage ends."""
        t, plan = trainer.global_step, self.engine.plan  # one global step a round
        self.engine.observe(getattr(trainer.fit_loop, "row", {}))
        if t in plan.ends[:-1]:
            (stage, before), (_, after) = plan.at(t), plan.at(t + 1)
            fire(trainer, "on_stage_end", StageEnd(stage, t, before, after))

    def state_dict(self) -> dict[str, Any]:
        """d (and whatever else the rule keeps) is part of every checkpoint."""
        return self.engine.state_dict()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continue with the momentum of the checkpoint."""
        self.engine.load_state_dict(state_dict)


class StopWhenDecided(pl.Callback):
    """Ends a run once its plan has decided all that it decides: what ``fedgm suggest`` wants of it.

    It has by round ``latest``, which the screen shows; what the plan decided for later rounds is not shown.
    """

    def __init__(self, latest: int) -> None:
        self.latest = latest

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """A run that was killed after its last round has nothing left to do."""
        self.on_train_epoch_end(trainer, pl_module)

    def on_train_epoch_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """One more round, which FedGM has shown to the plan before."""
        if self.is_over(trainer):
            trainer.should_stop = True

    def is_over(self, trainer: pl.Trainer) -> bool:
        """Whether the plan has nothing left to decide."""
        plans = (each.engine.plan for each in cast(Any, trainer).callbacks if isinstance(each, FedGM))
        return any(isinstance(plan, Decided) and plan.is_over for plan in plans)


def _rule(rule: ServerRule | Engine | None, rates: dict[str, float | None]) -> ServerRule | Engine:
    """The rule that was given, or FedGM's own with the given rates; what is neither is refused."""
    given = {name: value for name, value in rates.items() if value is not None}
    if rule is None:
        missing = [name for name in rates if name not in given]
        hint = "FedGM(eta=1, beta=0.9, nu=0.9)"
        require(not missing, "FedGM", given or "()", f"a rule, or eta, beta and nu ({missing} missing)", hint)
        try:
            return GeneralMomentum(given["eta"], given["beta"], given["nu"])
        except ConfigError as error:  # named as it was typed here, not as on a command line
            key, hint = (word.removeprefix("algorithm.") for word in (error.key, error.hint))
            raise ConfigError(key, error.value, error.allowed, hint) from None
    require(not given, "rule", rule, f"a rule alone: it has its own {', '.join(given)}", "FedGM(rule)")
    if isinstance(rule, Momentum):
        rates_of = ", ".join(f"{name}={value:g}" for name, value in rule._asdict().items())
        raise ConfigError("rule", rule, "a server rule; a Momentum is only its numbers", f"FedGM({rates_of})")
    ok = isinstance(rule, Engine) or all(hasattr(rule, name) for name in ("hyper", "follow", "init", "step"))
    allowed = "a server rule: an object with hyper, follow, gain, init and step (fedgm.server.rule)"
    require(ok and not isinstance(rule, type), "rule", rule, allowed, "FedGM(eta=1, beta=0.9, nu=0.9)")
    return rule
