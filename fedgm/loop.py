"""FederatedLoop: Lightning's fit loop with a server round as its epoch and a client as its batch.

Lightning 2 has no public way to replace the fit loop, but ``trainer.fit_loop`` is a plain attribute.
Private names used, watched by ``tests/unit/test_loop.py``: ``pytorch_lightning.loops.fit_loop._FitLoop``
with ``epoch_loop``, ``epoch_progress``; of ``epoch_loop``: ``batch_progress``, ``val_loop``,
``automatic_optimization.optim_progress``, ``_batches_that_stepped``;
``trainer._logger_connector._first_loop_iter``; in ``fedgm/cohort.py`` also
``pytorch_lightning.trainer.call._call_callback_hooks``.
"""

import math
import time
from typing import Any, cast

import torch

from fedgm.callback import ServerUpdate
from fedgm.client.history import History
from fedgm.client.module import ClientModule
from fedgm.client.rule import ClientRule, Plain, State
from fedgm.client.store import ClientStore
from fedgm.client.weights import FlatWeights, Snapshot
from fedgm.cohort import Cohort, CohortTrainer, RoundSettings
from fedgm.data.federation import Federation
from fedgm.errors import FedGMError
from fedgm.lightning import FitLoop, pl, rank_zero_warn
from fedgm.participation import ClientTask, Participation

Row = dict[str, float | int | None]


class FederatedLoop(FitLoop):
    """Algorithm 3 (and 4: a task says how stale and how long), one ``advance`` per server round."""

    def __init__(
        self,
        trainer: pl.Trainer,
        federation: Federation,
        participation: Participation,
        settings: RoundSettings,
        rule: ClientRule | None = None,
        store: ClientStore | None = None,
    ) -> None:
        super().__init__(trainer, min_epochs=0, max_epochs=settings.rounds)
        self.epoch_loop = trainer.fit_loop.epoch_loop
        self.federation = federation
        self.participation = participation
        self.settings = settings
        self.rule: ClientRule = rule or Plain()
        self.store = store
        self.shared: State = {}  # what the client rule keeps at the server
        self.history = History(participation.history)
        self.row: Row = {}  # of the last round; complete when `on_train_epoch_end` fires
        self.initial: dict[str, float] = {}  # x_0 as evaluated before the first round
        self.diverged: str | None = None  # what became non-finite, and in which round
        self.local_steps = 0

    @property
    def module(self) -> ClientModule:
        """The module that holds the global model."""
        return cast(ClientModule, self.trainer.lightning_module)

    def on_run_start(self) -> None:
        """Measure x_0 before the first round of a fresh run."""
        self._require_supported()
        super().on_run_start()
        self.weights = FlatWeights(self.module)
        self.history.push(self.weights.read(), self.shared)
        self.clients = CohortTrainer(
            self.trainer, self.federation, self.settings, self.rule, self.store, self.weights
        )
        if rounds_done(self.trainer) == 0:
            self._evaluate()
            self.initial = dict(self.module.measured)

    def advance(self) -> None:
        """Round t: draw the tasks, train each, mean, server step, evaluate."""
        started, t = time.perf_counter(), rounds_done(self.trainer) + 1
        tasks, x_t = self.participation.tasks(t), self.history[0]
        try:
            cohort = self.clients.train(tasks, t, self.history, self.participation.anchor)
        finally:
            self.weights.write(x_t)  # a round is a transaction: until the server steps, x_t stands
        self._require_returned(tasks, cohort, t)
        m, n = len(tasks) - len(cohort.nonfinite), self.federation.count
        shared, delta = self.rule.server(self.history.shared(0), cohort.mean.message, cohort.mean.delta, m, n)
        update = ServerUpdate(t, x_t.x, delta, cohort.squared)
        self._call_server_update(update)
        self._require_finite(update.x, t)
        self.shared, x_next = shared, Snapshot(update.x, cohort.mean.buffers, cohort.mean.counters)
        self.history.push(x_next, self.shared)
        self.weights.write(x_next)
        trained = time.perf_counter()
        if due := t % self.settings.eval_every == 0 or t == self.max_epochs:
            self._evaluate_at(x_next, update)
        self._count_server_step()
        self.row = self._row(t, tasks, cohort, update, due)
        self.row |= _times(started, trained, time.perf_counter(), due, cohort.total("samples"))

    def _require_supported(self) -> None:
        """Refuse what a client's local steps (Alg. 2) would silently leave out."""
        if self.trainer.accumulate_grad_batches != 1:
            every = self.trainer.accumulate_grad_batches
            raise FedGMError(
                f"accumulate_grad_batches={every} is not supported: every local batch is a step. "
                "Leave it at 1, and raise local.batch_size instead."
            )
        if not self.module.automatic_optimization:
            raise FedGMError(
                "automatic_optimization=False is not supported: the loop steps the local optimiser. "
                "Return the loss from training_step, and put all parameters into one optimiser "
                "(its parameter groups may differ)."
            )
        if (count := len(self.trainer.strategy.optimizers)) != 1:  # Lightning has already refused several
            raise FedGMError(
                f"configure_optimizers gave {count} optimisers, but a client trains with exactly one. "
                "Return one optimiser from it."
            )

    # What serves a round ---------------------------------------------------------------------------

    def _evaluate(self) -> None:
        """Lightning's own validation loop on the global model."""
        first = self.trainer._logger_connector._first_loop_iter
        self.trainer.validating = True
        self.epoch_loop.val_loop.run()
        self.trainer.training = True
        self.trainer._logger_connector._first_loop_iter = first
        for name, value in self.module.measured.items():
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

    def _call_server_update(self, update: ServerUpdate) -> None:
        """The hook that the FedGM callback, and any callback of yours, can have."""
        for callback in self.trainer.callbacks:  # pyright: ignore[reportAttributeAccessIssue]
            if hook := getattr(callback, "on_server_update", None):
                hook(self.trainer, self.module, update)

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
        if not torch.isfinite(x).all():
            self.diverged = f"the model became non-finite in round {t}"
            raise StopIteration

    def _count_server_step(self) -> None:
        """``global_step`` advances by one a round, whatever the clients did: callbacks count in it."""
        step = self.epoch_loop.automatic_optimization.optim_progress.optimizer.step
        step.increment_ready()
        step.increment_completed()
        self.epoch_loop._batches_that_stepped += 1

    def _row(self, t: int, tasks: list[ClientTask], cohort: Cohort, update: ServerUpdate, due: bool) -> Row:
        """The round's record; what was not measured is None."""
        steps, measured = int(cohort.total("steps")), cohort.total("measured")
        count = len(tasks) - len(cohort.nonfinite)
        self.local_steps += steps
        spread = cohort.total("squared") / count - cohort.mean.delta.double().square().sum().item()
        size = sum(part.numel() * part.element_size() for part in cohort.mean)
        names = ("train/loss", "train/acc", "test/loss", "test/acc")
        return {
            "round": t,
            **{name: self.module.measured[name] if due else None for name in names},
            "local/loss": cohort.total("loss") / measured,
            "local/acc": cohort.total("correct") / measured,
            **update.log,
            "update/norm": update.delta.norm().item(),
            "client/drift": max(spread, 0.0) ** 0.5,
            "cohort/clients": count,
            "cohort/nonfinite": len(cohort.nonfinite),
            "cohort/steps": steps,
            "cohort/staleness": sum(task.staleness for task in tasks) / len(tasks),
            "bytes/up": size * count,
            "bytes/down": size * count,
            **self.participation.log(t),
        }

    def on_save_checkpoint(self) -> dict[str, Any]:
        """Rounds applied and local steps; there is no random state to save."""
        own: dict[str, Any] = {"local_steps": self.local_steps, "initial": self.initial}
        own |= {"shared": dict(self.shared), "diverged": self.diverged}
        return {**super().on_save_checkpoint(), "fedgm": own}

    def on_load_checkpoint(self, state_dict: dict[str, Any]) -> None:
        """Continue after the checkpoint's round."""
        super().on_load_checkpoint(state_dict)
        own = state_dict["fedgm"]
        self.local_steps, self.initial = own["local_steps"], own["initial"]
        self.shared, self.diverged = dict(own["shared"]), own["diverged"]
        self.trainer.should_stop = self.diverged is not None


def rounds_done(trainer: pl.Trainer) -> int:
    """Server rounds behind the current weights."""
    return cast(Any, trainer.fit_loop.epoch_progress.current).processed


def _times(started: float, trained: float, ended: float, evaluated: bool, samples: float) -> Row:
    """Seconds of training and of evaluation, and the training throughput of the round."""
    seconds = trained - started
    return {
        "time/round": seconds,
        "time/eval": ended - trained if evaluated else None,
        "samples_per_s": samples / seconds,
    }
