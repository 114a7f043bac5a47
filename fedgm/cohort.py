"""A round's clients: each task trained from the model it starts from, and the mean of what comes back."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from fedgm.aggregate import CohortMean, Mean, shares
from fedgm.client.history import History
from fedgm.client.local import train_locally
from fedgm.client.rule import ClientRule, Local
from fedgm.client.store import ClientStore
from fedgm.client.weights import FlatWeights, Snapshot
from fedgm.data.federation import Federation
from fedgm.draws import derive
from fedgm.lightning import call_callback_hooks, pl
from fedgm.participation import ClientTask
from fedgm.workers import share_out

COLUMNS = ("steps", "samples", "loss", "correct", "measured", "squared", "finite", "share")


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
    lr: float = 0.01
    nonfinite: str = "stop"
    loss_limit: float = math.inf
    eval_point: str = "sent"


class Cohort(NamedTuple):
    """What came back from a round's clients."""

    mean: Mean
    table: dict[str, Tensor]  # of every column, one number per client

    def total(self, column: str) -> float:
        """Sum over the clients, in a fixed order."""
        return self.table[column].sum().item()

    @property
    def squared(self) -> float:
        """Mean of |D_i|^2, by the clients' shares; the table has (share_i |D_i|)^2."""
        good = self.table["finite"] > 0
        squared, share = self.table["squared"][good], self.table["share"][good]
        return (squared / share).sum().item() / share.sum().item()

    @property
    def nonfinite(self) -> list[int]:
        """Places of clients whose update was not finite."""
        return [i for i, ok in enumerate(self.table["finite"].tolist()) if not ok]


class CohortTrainer:
    """Trains the tasks of this worker, and takes the mean over all workers."""

    def __init__(
        self, trainer: pl.Trainer, federation: Federation, settings: RoundSettings, rule: ClientRule,
        store: ClientStore | None, weights: FlatWeights,
    ) -> None:  # fmt: skip
        self.trainer, self.federation, self.settings = trainer, federation, settings
        self.rule, self.store, self.weights = rule, store, weights

    def train(self, tasks: list[ClientTask], t: int, history: History, anchor: str) -> Cohort:
        """Alg. 2 for each task. The table has a line per client, filled in by the worker that trained it.

        The other workers leave zeros there, so that their sum is exact in any order.
        """
        x_t = history[0]
        sizes = [self.federation.size(task.client) for task in tasks]
        parts = shares(sizes, self.settings.weights)
        mean = CohortMean(x_t, len(tasks), message=x_t.x.numel() if self.rule.sends else 0)
        table = torch.zeros(len(tasks), len(COLUMNS), dtype=torch.float64, device=x_t.x.device)
        for slot in self._slots(tasks):
            if slot is None:
                continue
            task, start = tasks[slot], history[tasks[slot].staleness]
            self.weights.write(start)
            own = self.store.load(task.client, before=t) if self.store else {}
            own = {name: value.to(start.x.device) for name, value in own.items()}
            fetched = history.shared(task.staleness)
            local = Local(start.x, own, fetched, self.settings.lr, self.weights.split)
            result = train_locally(
                self.trainer,
                self._batches(task, t),
                sizes[slot],
                self.weights.parameters,
                self.rule.begin(local),
            )
            after = self.weights.read()
            moved = start.x - after.x
            delta = moved if anchor == "start" else x_t.x - after.x
            if not (torch.isfinite(delta).all() and torch.isfinite(after.buffers).all()):
                table[slot, -1] = parts[slot]  # takes part in nothing
                continue
            squared = (task.weight * parts[slot] * delta).double().square().sum().item()
            table[slot] = torch.tensor([*result, squared, 1, parts[slot]], dtype=torch.float64)
            mean.add(delta, after.buffers, after.counters, task.weight, parts[slot])
            if self.rule.sends:
                self._keep(task, t, local, moved, result.steps, mean)
        return self._reduce(mean, table, x_t)

    def _keep(
        self, task: ClientTask, t: int, local: Local, moved: Tensor, steps: int, mean: CohortMean
    ) -> None:
        """What a rule with states keeps of a client and sends besides its delta."""
        returned = self.rule.end(local, moved, steps, task.weight)
        mean.add_message(returned.message)
        assert self.store is not None
        self.store.save(task.client, t, returned.own)

    def _reduce(self, mean: CohortMean, table: Tensor, x_t: Snapshot) -> Cohort:
        """Over all workers; clients that returned nothing finite are left out of the mean."""
        reduce = self.trainer.strategy.reduce
        mean.total, table = reduce(mean.total, reduce_op="sum"), reduce(table, reduce_op="sum").cpu()
        columns: dict[str, Tensor] = dict(zip(COLUMNS, table.unbind(1), strict=True))
        good = columns["finite"] > 0
        if not good.all() and good.any():
            mean.clients, mean.shares = int(good.sum()), columns["share"][good].sum().item()
        return Cohort(mean.mean(x_t.x.dtype), columns)

    def _slots(self, tasks: list[ClientTask]) -> Iterator[int | None]:
        """This worker's tasks, each framed by Lightning's batch hooks; padded: all workers fire as many."""
        costs = [self._steps(task) for task in tasks]
        own = share_out(costs, self.trainer.world_size)[self.trainer.global_rank]
        progress = self.trainer.fit_loop.epoch_loop.batch_progress
        progress.reset_on_run()
        for i, slot in enumerate(own):
            progress.is_last_batch = i == len(own) - 1
            progress.increment_ready()
            batch = None if slot is None else tasks[slot]
            call_callback_hooks(self.trainer, "on_train_batch_start", batch, i)
            progress.increment_started()
            yield slot
            progress.increment_processed()
            call_callback_hooks(self.trainer, "on_train_batch_end", None, batch, i)
            progress.increment_completed()

    def _steps(self, task: ClientTask) -> int:
        """K_i: local steps of a task."""
        return self.federation.steps_of(
            task.client, self.settings.batch_size, task.epochs, self.settings.unit
        )

    def _batches(self, task: ClientTask, t: int) -> Iterator[tuple[Tensor, Tensor]]:
        """A client's batches; layers that draw (dropout) start from (seed, round, client) too."""
        s = self.settings
        torch.manual_seed(derive(s.seed, "layers", t, task.client))
        return self.federation.client_steps(
            task.client, s.batch_size, self._steps(task), s.seed, t, s.channels_last
        )
