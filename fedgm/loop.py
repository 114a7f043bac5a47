"""FederatedLoop: Lightning's fit loop with a server round as its epoch and a client as its batch.

Lightning 2 has no public way to replace the fit loop, but ``trainer.fit_loop`` is a plain attribute.
Private names used, watched by ``tests/unit/test_loop.py``: ``pytorch_lightning.loops.fit_loop._FitLoop``
with ``epoch_loop``, ``epoch_progress``; of ``epoch_loop``: ``batch_progress``, ``val_loop``,
``automatic_optimization.optim_progress``, ``_batches_that_stepped``;
``trainer._logger_connector._first_loop_iter``; ``pytorch_lightning.trainer.call._call_callback_hooks``.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

from fedgm.lightning import pl  # first: it makes Lightning importable beside a CPU-only torch

# isort: split
import torch
from pytorch_lightning.loops.fit_loop import _FitLoop
from pytorch_lightning.trainer import call

from fedgm.aggregate import CohortMean, Mean, shares
from fedgm.callback import ServerUpdate
from fedgm.client.local import train_locally
from fedgm.client.module import ClientModule
from fedgm.client.weights import FlatWeights, Snapshot
from fedgm.data.federation import Federation
from fedgm.draws import derive
from fedgm.errors import FedGMError
from fedgm.participation import ClientTask, Participation
from fedgm.workers import share_out

Row = dict[str, float | int | None]


@dataclass(frozen=True)
class RoundSettings:
    """What a round needs to know besides its parts."""

    rounds: int
    seed: int
    batch_size: int
    unit: str = "epochs"
    weights: str = "uniform"
    eval_every: int = 1
    channels_last: bool = False


class Cohort(NamedTuple):
    """What came back from a round's clients."""

    mean: Mean
    table: torch.Tensor  # one line per client: see FederatedLoop._train


class FederatedLoop(_FitLoop):
    """Algorithm 3 (and 4: a task says how stale and how long), one ``advance`` per server round."""

    def __init__(
        self,
        trainer: pl.Trainer,
        federation: Federation,
        participation: Participation,
        settings: RoundSettings,
    ) -> None:
        super().__init__(trainer, min_epochs=0, max_epochs=settings.rounds)
        self.epoch_loop = trainer.fit_loop.epoch_loop
        self.federation = federation
        self.participation = participation
        self.settings = settings
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
        if rounds_done(self.trainer) == 0:
            self._evaluate()
            self.initial = dict(self.module.measured)

    def advance(self) -> None:
        """Round t: draw the tasks, train each, mean, server step, evaluate."""
        started, t = time.perf_counter(), rounds_done(self.trainer) + 1
        tasks = self.participation.tasks(t)
        x_t = self.weights.read()
        try:
            cohort = self._train(tasks, t, x_t)
        finally:
            self.weights.write(x_t)  # a round is a transaction: until the server steps, x_t stands
        update = ServerUpdate(t, x_t.x, cohort.mean.delta)
        self._require_finite("update", update.delta, t)
        self._call_server_update(update)
        self._require_finite("model", update.x, t)
        self.weights.write(Snapshot(update.x, cohort.mean.buffers, cohort.mean.counters))
        trained = time.perf_counter()
        if due := t % self.settings.eval_every == 0 or t == self.max_epochs:
            self._evaluate()
        self._count_server_step()
        self.row = self._row(t, tasks, cohort, update, due)
        self.row |= _times(started, trained, time.perf_counter(), due, cohort.table[:, 1].sum().item())

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
                "automatic_optimization=False is not supported: the federated loop steps the local optimiser. "
                "Return the loss from training_step, and put all parameters into one optimiser "
                "(its parameter groups may differ)."
            )
        if (count := len(self.trainer.strategy.optimizers)) != 1:  # Lightning has already refused several
            raise FedGMError(
                f"configure_optimizers gave {count} optimisers, but a client trains with exactly one. "
                "Return one optimiser from it."
            )

    # What serves a round ---------------------------------------------------------------------------

    def _train(self, tasks: list[ClientTask], t: int, x_t: Snapshot) -> Cohort:
        """Alg. 2 for every task of this worker, and the mean over all workers.

        The table has a line per client, filled in by the worker that trained it (the others add
        zeros): steps, samples, loss, correct, measured, ||weighted delta||^2.
        """
        sizes = [self.federation.size(task.client) for task in tasks]
        parts = shares(sizes, self.settings.weights)
        mean = CohortMean(x_t, len(tasks))
        table = torch.zeros(len(tasks), 6, dtype=torch.float64, device=x_t.x.device)
        for slot in self._slots(tasks):
            if slot is None:
                continue
            task = tasks[slot]
            self.weights.write(x_t)
            result = train_locally(self.trainer, self._batches(task, t), first_epoch=sizes[slot])
            after = self.weights.read()
            delta = x_t.x - after.x
            mean.add(delta, after.buffers, after.counters, task.weight, parts[slot])
            squared = (task.weight * parts[slot] * delta).double().square().sum().item()
            table[slot] = torch.tensor([*result, squared], dtype=torch.float64)
        reduce = self.trainer.strategy.reduce
        mean.total, table = reduce(mean.total, reduce_op="sum"), reduce(table, reduce_op="sum")
        return Cohort(mean.mean(x_t.x.dtype), table.cpu())

    def _slots(self, tasks: list[ClientTask]) -> Iterator[int | None]:
        """This worker's tasks, each framed by Lightning's batch hooks; padded: all workers fire as many."""
        costs = [self._steps(task) for task in tasks]
        own = share_out(costs, self.trainer.world_size)[self.trainer.global_rank]
        progress = self.epoch_loop.batch_progress
        progress.reset_on_run()
        for i, slot in enumerate(own):
            progress.is_last_batch = i == len(own) - 1
            progress.increment_ready()
            batch = None if slot is None else tasks[slot]
            call._call_callback_hooks(self.trainer, "on_train_batch_start", batch, i)
            progress.increment_started()
            yield slot
            progress.increment_processed()
            call._call_callback_hooks(self.trainer, "on_train_batch_end", None, batch, i)
            progress.increment_completed()

    def _steps(self, task: ClientTask) -> int:
        """K_i: local steps of a task."""
        return self.federation.steps_of(
            task.client, self.settings.batch_size, task.epochs, self.settings.unit
        )

    def _batches(self, task: ClientTask, t: int) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        """A client's batches; layers that draw (dropout) start from (seed, round, client) too."""
        s = self.settings
        torch.manual_seed(derive(s.seed, "layers", t, task.client))
        return self.federation.client_steps(
            task.client, s.batch_size, self._steps(task), s.seed, t, s.channels_last
        )

    def _evaluate(self) -> None:
        """Lightning's own validation loop on the global model."""
        first = self.trainer._logger_connector._first_loop_iter
        self.trainer.validating = True
        self.epoch_loop.val_loop.run()
        self.trainer.training = True
        self.trainer._logger_connector._first_loop_iter = first
        for name, value in self.module.measured.items():
            if not torch.isfinite(torch.tensor(value)):
                self.diverged = f"{name} became {value} in round {rounds_done(self.trainer) + 1}"
                self.trainer.should_stop = True

    def _call_server_update(self, update: ServerUpdate) -> None:
        """The hook that the FedGM callback, and any callback of yours, can have."""
        for callback in self.trainer.callbacks:  # pyright: ignore[reportAttributeAccessIssue]
            if hook := getattr(callback, "on_server_update", None):
                hook(self.trainer, self.module, update)

    def _require_finite(self, what: str, tensor: torch.Tensor, t: int) -> None:
        """End the run as diverged; x_t stands, and every row so far is kept."""
        if not torch.isfinite(tensor).all():
            self.diverged = f"{what} became non-finite in round {t}"
            raise StopIteration

    def _count_server_step(self) -> None:
        """``global_step`` advances by one a round, whatever the clients did: callbacks count in it."""
        step = self.epoch_loop.automatic_optimization.optim_progress.optimizer.step
        step.increment_ready()
        step.increment_completed()
        self.epoch_loop._batches_that_stepped += 1

    def _row(self, t: int, tasks: list[ClientTask], cohort: Cohort, update: ServerUpdate, due: bool) -> Row:
        """The round's record; what was not measured is None."""
        steps, _, loss, correct, measured, squared = cohort.table.sum(0).tolist()
        self.local_steps += int(steps)
        delta = cohort.mean.delta
        spread = squared / len(tasks) - delta.double().square().sum().item()
        size = sum(part.numel() * part.element_size() for part in cohort.mean)
        names = ("train/loss", "train/acc", "test/loss", "test/acc")
        return {
            "round": t,
            **{name: self.module.measured[name] if due else None for name in names},
            "local/loss": loss / measured,
            "local/acc": correct / measured,
            **update.log,
            "update/norm": delta.norm().item(),
            "client/drift": max(spread, 0.0) ** 0.5,
            "cohort/clients": len(tasks),
            "cohort/steps": int(steps),
            "cohort/staleness": sum(task.staleness for task in tasks) / len(tasks),
            "bytes/up": size * len(tasks),
            "bytes/down": size * len(tasks),
        }

    def on_save_checkpoint(self) -> dict[str, Any]:
        """Rounds applied and local steps; there is no random state to save."""
        own = {"round": self.row["round"], "local_steps": self.local_steps, "initial": self.initial}
        return {**super().on_save_checkpoint(), "fedgm": own}

    def on_load_checkpoint(self, state_dict: dict[str, Any]) -> None:
        """Continue after the checkpoint's round."""
        super().on_load_checkpoint(state_dict)
        own = state_dict["fedgm"]
        self.local_steps, self.initial = own["local_steps"], own["initial"]


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
