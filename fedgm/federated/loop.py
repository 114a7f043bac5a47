"""FederatedLoop: Lightning's fit loop with a server round as its epoch and a client as its batch.

Lightning 2 has no public way to replace the fit loop, but ``trainer.fit_loop`` is a plain attribute. The
private names that this takes are listed in docs/decisions.md and watched by ``tests/federated/test_loop.py``.
"""

import math
import warnings
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, cast

import torch

from fedgm.client.rules import Came, State
from fedgm.client.store import MemoryStore
from fedgm.client.weights import (
    FlatWeights,
    History,
    Snapshot,
    UnsavedBuffers,
    is_finite,
    require_trainable,
)
from fedgm.clock import Stopwatch, rate
from fedgm.data.clients import ClientData, bring
from fedgm.errors import FedGMError
from fedgm.federated.cohort import ClientParts, Cohort, CohortTrainer, RoundSettings
from fedgm.federated.events import ServerUpdate, fire
from fedgm.federated.fitting import normalization, require_private, require_supported
from fedgm.federated.optional import OptionalParts
from fedgm.lightning import FitLoop, loop_states, pl, rank_zero_warn, unsent
from fedgm.participation import ClientTask, Participation
from fedgm.tasks import LOSS
from fedgm.tasks.metric import Row


class FederatedLoop(FitLoop):
    """Algorithm 3 (and 4: a task says how stale and how long), one ``advance`` per server round."""

    def __init__(
        self,
        trainer: pl.Trainer,
        data: ClientData,
        participation: Participation,
        settings: RoundSettings,
        parts: ClientParts | None = None,
        whole_checkpoints: bool = False,
        cohorts: Callable[..., CohortTrainer] = CohortTrainer,
    ) -> None:
        super().__init__(trainer, min_epochs=0, max_epochs=settings.rounds)
        self.epoch_loop = trainer.fit_loop.epoch_loop
        self.data = data
        self.participation = participation
        self.settings = settings
        self.parts = parts or ClientParts()
        self.whole_checkpoints = whole_checkpoints  # else past models and client states are files of the run
        self.cohorts = cohorts  # who trains clients: this process and its workers, or nodes of a deployment
        self.shared: State = {}  # what the client rule keeps at the server
        self.history = History(participation.history + self.parts.rule.lookback)
        self._past: list[tuple[Snapshot, State]] = []  # before x_t, from a checkpoint
        self._unsaved: UnsavedBuffers | None = None
        self._restored: dict[str, torch.Tensor] = {}  # of them, from a checkpoint
        self.row: Row = {}  # of the last round; complete when `on_train_epoch_end` fires
        self._logged: dict[str, float] = {}  # what a module that is not a TaskModule logged in an evaluation
        self.initial: dict[str, float] = {}  # x_0 as evaluated before the first round
        self.diverged: str | None = None  # what became non-finite, and in which round
        self.local_steps = 0
        self.optional = OptionalParts(trainer, data, participation, settings, self.parts)

    @property
    def module(self) -> pl.LightningModule:
        """The module that holds the global model."""
        return self.trainer.lightning_module

    @property
    def metrics(self) -> list[str]:
        """What is measured while clients train: a task's metrics, of any other module the loss."""
        return [metric.name for metric in getattr(self.module, "metrics", (LOSS,))]

    @property
    def measured(self) -> dict[str, float]:
        """The last evaluation, by column: a task's own sums, or what any other module has logged in it."""
        return getattr(self.module, "measured", self._logged)

    def setup_data(self) -> None:
        """A "batch" is a client: the loop asks its own data, and needs no loader."""
        if not isinstance(self._data_source.instance, range):  # Lightning asks in every round
            self._data_source.instance = range(self.optional.clients_at_first())
        with warnings.catch_warnings():  # a row is sent in every round, whatever the interval for steps is
            warnings.filterwarnings("ignore", "The number of training batches")
            super().setup_data()

    def on_run_start(self) -> None:
        """Measure x_0 before the first round of a fresh run."""
        require_trainable(self.module)
        require_supported(
            self.trainer, self.parts.rule, normalization(self.participation), self.settings.keep
        )
        super().on_run_start()
        bring(self.data, self.trainer.strategy.root_device)
        self.weights, self._unsaved = FlatWeights(self.module), UnsavedBuffers(self.module)
        require_private(self.parts.privacy, self.weights.buffers)
        self._unsaved.restore(self._restored)
        for model, shared in self._past:
            self.history.push(model, shared)
        self.history.push(self.weights.read(), self.shared)
        known = self.trainer, self.data, self.participation, self.settings, self.parts
        self.clients = self.cohorts(*known, self.weights, self.metrics)
        if rounds_done(self.trainer) == 0:
            self._evaluate()
            self.initial = dict(self.measured)
            self._send({"round": 0, **self.initial} if self.initial else {}, 0)

    def advance(self) -> None:
        """Round t: draw the tasks, train each, mean, server step, evaluate."""
        watch, t = Stopwatch(), rounds_done(self.trainer) + 1
        ask = partial(self.clients.tasks, t, self.history)
        tasks, self.clients.data = self.optional.begin(t, self.history[0], ask)
        x_t = self.history[0]
        cohort = self.clients.train(tasks, t, self.history)
        self._require_returned(tasks, cohort, t)
        m, n = len(tasks) - len(cohort.nonfinite), self.data.count
        steps, lr = cohort.total("steps") / m, self.clients.client.lr
        came = Came(cohort.mean.message, self.optional.mean(cohort, t), m, n, steps, lr)
        shared, delta = self.parts.rule.server(self.history.shared(0), came)
        update = ServerUpdate(t, x_t.x, delta, cohort.squared, partial(cohort.ages, tasks))
        fire(self.trainer, "on_server_update", update)
        self._require_moved(update, x_t)
        self._require_finite(update.x, t)
        self.shared, x_next = shared, self.weights.settle(cohort.mean.over(update.x))
        self.history.push(x_next, self.shared)
        trained = watch.seconds()
        if due := t % self.settings.eval_every == 0 or t == self.max_epochs:
            self._evaluate_at(x_next, update)
        self._count_server_step()
        self.epoch_loop.update_lr_schedulers("epoch", update_plateau_schedulers=False)  # once a round
        self.row = self._row(t, tasks, cohort, update, due)
        self.row |= _times(trained, watch.seconds(), due, cohort.total("samples"))
        self._publish()
        self.optional.end(self.row, tasks, cohort)

    def on_advance_end(self) -> None:
        """After the hooks: what the module logged with ``on_epoch=True``, at its round."""
        with unsent(self.trainer._logger_connector) as logged:
            super().on_advance_end()
        self._send({name: float(value) for name, value in logged.items()}, rounds_done(self.trainer))

    # What serves a round ---------------------------------------------------------------------------

    def _evaluate(self) -> None:
        """Lightning's own validation loop on the global model."""
        if not self.trainer.enable_validation:  # nothing to measure it on
            return
        first = self.trainer._logger_connector._first_loop_iter
        self.trainer.validating = True
        with unsent(self.trainer._logger_connector):  # the row has it, at its round
            logged = self.epoch_loop.val_loop.run()
        self._logged = {name: float(value) for part in logged for name, value in part.items()}
        self.trainer.training = True
        self.trainer._logger_connector._first_loop_iter = first
        for name, value in self.measured.items():
            if name.endswith("loss") and not (math.isfinite(value) and value <= self.settings.loss_limit):
                self.diverged = self._above(name, value, rounds_done(self.trainer) + 1)
                self.trainer.should_stop = True

    def _evaluate_at(self, x_next: Snapshot, update: ServerUpdate) -> None:
        """Evaluate what is sent or, with eval.point=average, the averaged point behind it."""
        if self.settings.eval_point == "sent" or update.average is None:
            return self._evaluate()
        self.weights.write(x_next._replace(x=update.average()))
        try:
            return self._evaluate()
        finally:
            self.weights.write(x_next)

    def _require_moved(self, update: ServerUpdate, x_t: Snapshot) -> None:
        """Rounds in which no callback steps would look like training without being any."""
        if update.x is x_t.x:
            raise FedGMError(
                "no callback moves the global model: on_server_update has left x_t as it was. "
                "Add fedgm.FedGM(rule) to the trainer's callbacks"
            )

    def _require_returned(self, tasks: list[ClientTask], cohort: Cohort, t: int) -> None:
        """A client without a finite update ends the run, or (clients.nonfinite=drop) is left out."""
        if lost := cohort.nonfinite:
            names = ", ".join(str(tasks[i].client) for i in lost)
            if self.settings.nonfinite != "drop" or len(lost) == len(tasks):
                self.diverged = f"the update of client {names} became non-finite in round {t}"
                raise StopIteration
            rank_zero_warn(f"round {t}: the update of client {names} is not finite and is left out")
        loss = cohort.total("loss") / cohort.total("measured")
        if not (math.isfinite(loss) and loss <= self.settings.loss_limit):
            self.diverged = self._above("local/loss", loss, t)
            raise StopIteration

    def _above(self, name: str, value: float, t: int) -> str:
        """Why a loss ends the run."""
        if not math.isfinite(value):
            return f"{name} became {value} in round {t}"
        return f"{name} is {value:.3g} in round {t}, above eval.loss_limit={self.settings.loss_limit:g}"

    def _require_finite(self, x: torch.Tensor, t: int) -> None:
        """End the run as diverged; x_t stands, and every row so far is kept."""
        if not is_finite(x):
            self.diverged = f"the model became non-finite in round {t}"
            raise StopIteration

    def _count_server_step(self) -> None:
        """``global_step`` advances by one a round, whatever the clients did: callbacks count in it."""
        step = self.epoch_loop.automatic_optimization.optim_progress.optimizer.step
        step.increment_ready()
        step.increment_completed()
        self.epoch_loop._batches_that_stepped += 1

    def _publish(self) -> None:
        """The row where Lightning's callbacks and loggers look."""
        measured = {name: value for name, value in self.row.items() if value is not None}
        values = torch.tensor([float(value) for value in measured.values()]).unbind()
        self.trainer.callback_metrics.update(zip(measured, values, strict=True))
        self._send(self.clients.client.hooks.taken() | measured, int(measured["round"]))

    def _send(self, measured: Mapping[str, float], t: int) -> None:
        """Values to the trainer's loggers, at their round; round 0 is the untrained model."""
        for logger in self.trainer.loggers if measured and self.trainer.is_global_zero else ():
            logger.log_metrics(dict(measured), step=t)

    def _row(self, t: int, tasks: list[ClientTask], cohort: Cohort, update: ServerUpdate, due: bool) -> Row:
        """The round's record; what was not measured is None."""
        steps, measured = int(cohort.total("steps")), cohort.total("measured")
        count, senders = len(tasks) - len(cohort.nonfinite), cohort.senders
        self.local_steps += steps
        spread = cohort.total("squared") / count - cohort.mean.delta.double().square().sum().item()
        beside = sum(part.numel() * part.element_size() for part in cohort.mean[1:])  # what no rule shortens
        size = cohort.mean.delta.numel() * cohort.mean.delta.element_size()
        message = cohort.mean.message.numel() * cohort.mean.message.element_size()
        fetched = size * (1 + self.parts.rule.fetches) + beside - message
        return {
            "round": t,
            # The columns of x_0 too: a run that has just been continued has measured nothing yet.
            **{c: self.measured[c] if due else None for c in self.initial | self.measured},
            **{f"local/{name}": cohort.total(name) / measured for name in self.metrics},
            **update.log,
            "update/norm": update.delta.norm().item(),
            "client/drift": max(spread, 0.0) ** 0.5 if senders is None else None,  # D is then drawn
            "cohort/clients": count,
            "cohort/nonfinite": len(cohort.nonfinite),
            "cohort/steps": steps,
            "cohort/staleness": sum(task.staleness for task in tasks) / len(tasks),
            "bytes/up": int(cohort.total("bytes")) + beside * (count if senders is None else senders.number),
            "bytes/down": fetched * count,
            **self.participation.log(t),
            **self.optional.columns(cohort),
        }

    def state_dict(self, destination: dict[str, Any] | None = None, prefix: str = "") -> dict[str, Any]:
        """What Lightning makes of its loops, without deep copies."""
        return loop_states(self, {} if destination is None else destination, prefix)

    def on_save_checkpoint(self) -> dict[str, Any]:
        """Rounds applied and local steps; there is no random state to save."""
        state: dict[str, Any] = {"local_steps": self.local_steps, "initial": self.initial}
        state |= {"shared": dict(self.shared), "diverged": self.diverged}
        state["buffers"] = self._unsaved.changed() if self._unsaved else {}
        state |= self.optional.state_dict()
        if self.whole_checkpoints:
            past = range(len(self.history) - 1, 0, -1)
            state["past"] = [self.history[tau]._asdict() for tau in past]
            state["past_shared"] = [dict(self.history.shared(tau)) for tau in past]
            state["clients"] = self.parts.store.states if isinstance(self.parts.store, MemoryStore) else {}
        return {**super().on_save_checkpoint(), "fedgm": state}

    def on_load_checkpoint(self, state_dict: dict[str, Any]) -> None:
        """Continue after the checkpoint's round."""
        super().on_load_checkpoint(state_dict)
        state = state_dict["fedgm"]
        self.local_steps, self.initial = state["local_steps"], state["initial"]
        self.shared, self.diverged = dict(state["shared"]), state["diverged"]
        self._restored = state.get("buffers", {})
        self.optional.load_state_dict(state)
        models = [Snapshot(**model) for model in state.get("past", [])]
        self._past = list(zip(models, state.get("past_shared", []), strict=True))
        if isinstance(self.parts.store, MemoryStore):
            self.parts.store.states = dict(state.get("clients", {}))
        self.trainer.should_stop = self.diverged is not None


def rounds_done(trainer: pl.Trainer) -> int:
    """Server rounds behind the current weights."""
    return cast(Any, trainer.fit_loop.epoch_progress.current).processed


def _times(trained: float, ended: float, evaluated: bool, samples: float) -> Row:
    """Seconds of training and of evaluation, and the training throughput of the round."""
    return {
        "time/round": trained,
        "time/eval": max(0.0, ended - trained) if evaluated else None,
        "samples_per_s": rate(samples, trained),
    }
