"""A round's clients: each task trained from the model it starts from, and the mean of what comes back."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor

from fedgm.client.local import Client
from fedgm.client.rules import ClientRule, Local, Plain
from fedgm.client.store import Kept, Store
from fedgm.client.weights import FlatWeights, History, Snapshot, is_finite, stays_finite
from fedgm.client.work import AtWork
from fedgm.data.clients import ClientData, local_steps
from fedgm.draws import derive, generator
from fedgm.errors import FedGMError
from fedgm.federated.aggregate import CohortMean, Mean, scaled, shares
from fedgm.federated.arrivals import Arrived, ClientUpdate, Cohort
from fedgm.federated.events import ClientEnd, fire
from fedgm.federated.workers import FederatedDDP, share_out
from fedgm.lightning import call_callback_hooks, is_overridden, pl
from fedgm.participation import ClientTask, Participation
from fedgm.schedule.work import Work
from fedgm.upload.message import Plain as WholeDelta
from fedgm.upload.message import Sent, UploadRule
from fedgm.upload.privacy import Privacy
from fedgm.upload.sending import Senders, SendRule

COLUMNS = ("steps", "samples", "measured", "bytes", "squared", "finite", "share")
SQUARED = COLUMNS.index("squared")
AROUND_A_CLIENT = ("on_train_batch_start", "on_train_batch_end")  # a client is Lightning's batch


@dataclass(frozen=True)
class RoundSettings:
    """What a round needs to know besides its parts."""

    rounds: int
    seed: int
    unit: str = "epochs"
    weights: str = "uniform"
    eval_every: int = 1
    nonfinite: str = "stop"
    loss_limit: float = math.inf
    eval_point: str = "sent"
    keep: bool = False  # local.state=keep
    work: Sequence[tuple[int, Work]] = ()  # the last round of each stage and its local work; empty: local.*


@dataclass(frozen=True)
class ClientParts:
    """What a client does besides plain training, and where it keeps what it must remember."""

    rule: ClientRule = field(default_factory=Plain)
    upload: UploadRule = field(default_factory=WholeDelta)
    store: Store | None = None
    sending: SendRule | None = None  # None: everyone who has trained sends
    privacy: Privacy | None = None  # None: updates are neither clipped nor noised


class CohortTrainer:
    """Trains the tasks of this worker, and takes the mean over all workers."""

    def __init__(
        self,
        trainer: pl.Trainer,
        data: ClientData,
        participation: Participation,
        settings: RoundSettings,
        parts: ClientParts,
        weights: FlatWeights,
        metrics: Sequence[str],
    ) -> None:
        self.trainer, self.data, self.settings, self.parts = trainer, data, settings, parts
        self.participation, self.weights, self.metrics = participation, weights, metrics
        self.client = Client(trainer, weights, metrics, settings.keep, direct=(FederatedDDP,))
        listeners: list[pl.Callback] = trainer.callbacks  # pyright: ignore[reportAttributeAccessIssue]
        self._called = {hook for hook in AROUND_A_CLIENT if any(is_overridden(hook, c) for c in listeners)}

    def tasks(self, t: int, history: History) -> list[ClientTask]:
        """The cohort of round ``t``; whoever trains clients elsewhere asks them now."""
        return self.participation.tasks(t)

    def train(self, tasks: list[ClientTask], t: int, history: History) -> Cohort:
        """Alg. 2 for each task. The table has a line per client, filled in by the worker that trained it.

        The other workers leave zeros there, so that their sum is exact in any order.
        """
        x_t = history[0]
        shares_ = shares([self.size(task.client) for task in tasks], self.settings.weights)
        mean = self._mean(x_t, len(tasks))
        ordered, parts = self._depends_on_order(x_t), dict[int, Tensor]()
        sending, privacy, held = self.parts.sending, self.parts.privacy, dict[int, Arrived]()
        width = len(self.metrics) + len(COLUMNS)
        table = torch.zeros(len(tasks), width, dtype=torch.float64, device=x_t.x.device)
        norms = None if privacy is None else torch.zeros_like(table[:, 0])
        for slot in self._slots(tasks):
            task, share = tasks[slot], shares_[slot]
            result, after, sent, message, finite = self.update(task, t, history)
            if not finite:
                table[slot, -1] = share  # takes part in nothing
                continue
            delta = sent.delta
            if privacy is not None and norms is not None:
                delta, norms[slot] = privacy.clipped(delta)
            squared = scaled(delta, task.weight * share).double().square().sum().item()
            line = (result.steps, result.samples, result.measured, sent.bytes, squared, 1, share)  # COLUMNS
            table[slot] = torch.tensor([*result.sums, *line], dtype=torch.float64)
            arrived = Arrived(delta, history[task.staleness], after, task.weight, share, message)
            if sending is not None:
                held[slot] = arrived  # who sends depends on the norms of all
            else:
                self._add(mean, arrived)
            if ordered:
                parts[slot] = mean.take()
        senders = None
        if sending is not None:
            senders = self._let_send(sending, tasks, t, table)
            for slot, arrived in held.items():
                if factor := senders.factors[slot]:
                    self._add(mean, arrived._replace(share=factor * arrived.share))
                if ordered:
                    parts[slot] = mean.take()
        if ordered:
            mean.total = self._sum_in_order(parts, tasks, mean.total)
        else:
            mean.total = self.trainer.strategy.reduce(mean.total, reduce_op="sum")
        if norms is not None:
            norms = self.trainer.strategy.reduce(norms, reduce_op="sum")
        return self._close(mean, table, x_t, senders)._replace(norms=norms)

    def _add(self, mean: CohortMean, arrived: Arrived) -> None:
        """One update into the mean."""
        unchanged = self.weights.unchanged(arrived.start, arrived.after, mean.unchanged)
        mean.add(arrived.delta, arrived.after, arrived.weight, arrived.share, unchanged)
        if self.parts.rule.sends:
            mean.add_message(arrived.message)

    def _let_send(self, rule: SendRule, tasks: list[ClientTask], t: int, table: Tensor) -> Senders:
        """Who sends, by the norms of all workers' clients; the same draws in every worker."""
        squared = self.trainer.strategy.reduce(table[:, len(self.metrics) + SQUARED].clone(), reduce_op="sum")
        uniform = [generator(self.settings.seed, "send", t, task.client).random() for task in tasks]
        return rule.senders(squared.sqrt().cpu().numpy(), np.array(uniform))

    def update(self, task: ClientTask, t: int, history: History) -> ClientUpdate:
        """One client's work: local steps, what it sends, what it keeps."""
        x_t, start, rule = history[0], history[task.staleness], self.parts.rule
        began = task.began or t
        kept = self._kept(task, began, x_t.x.device)
        local = self._local(task, began, history, kept)
        with self.client.at_work(start, x_t, kept.optimizer):
            batches, epoch = self._batches(task, began), self.data.epoch(task.client)
            result = self.client.train(batches, epoch, rule.begin(local), rule.needs_second_gradient)
            after, optimizer = self.weights.read(), self.client.optimizer_state()
        moved = start.x - after.x
        delta = moved if self.participation.anchor == "start" else x_t.x - after.x
        finite = is_finite(delta) and stays_finite(start.buffers, after.buffers)
        fire(self.trainer, "on_client_end", ClientEnd(t, task, delta, result.steps, finite))
        if not finite:
            return ClientUpdate(result, after, Sent(delta, 0, {}), delta[:0], finite)
        sent = self.parts.upload.send(delta, kept.upload, self._draws(task, began))
        returned = rule.end(local, moved, result.steps, task.weight)
        self._keep(task, began, Kept(returned.kept, sent.kept, optimizer))
        counted = sent if returned.delta is None else sent._replace(delta=returned.delta)
        return ClientUpdate(result, after, counted, returned.message, finite)

    def size(self, client: int) -> int:
        """Samples of a client, its weight where ``clients.weights=samples``."""
        return self.data.size(client)

    def _local(self, task: ClientTask, t: int, history: History, kept: Kept) -> Local:
        """What the client rule knows when a client starts."""
        start, fetched = history[task.staleness], history.shared(task.staleness)
        work = AtWork(self.client, history, partial(self._one_pass, task, t))
        lr, split, steps = self.client.lr, self.weights.split, self._steps(task)
        return Local(start.x, kept.rule, fetched, lr, split, task.client, t, steps, task.staleness, work)

    def _draws(self, task: ClientTask, t: int) -> np.random.Generator:
        """The upload's own generator; a rule that says it draws nothing gets none, and fails if it does."""
        if not getattr(self.parts.upload, "draws", True):
            return cast(np.random.Generator, None)
        return generator(self.settings.seed, "upload", t, task.client)

    def _kept(self, task: ClientTask, t: int, device: torch.device) -> Kept:
        """What the client kept from the last time it took part."""
        state = self.parts.store.load(task.client, before=t) if self.parts.store else {}
        return Kept.split({name: value.to(device) for name, value in state.items()})

    def _keep(self, task: ClientTask, t: int, kept: Kept) -> None:
        """For the next time."""
        if self.parts.store is not None:
            self.parts.store.save(task.client, t, kept.joined())
        elif kept.rule:
            name = type(self.parts.rule).__name__
            raise FedGMError(
                f"{name} keeps a state for each client, but its `keeps` is 0. Set keeps = 1 in it"
            )

    def _depends_on_order(self, x_t: Snapshot) -> bool:
        """Whether a sum of workers' sums is not the sum of one worker: float64 numbers do not add exactly."""
        return self.trainer.world_size > 1 and torch.float64 in (x_t.x.dtype, x_t.buffers.dtype)

    def _sum_in_order(self, parts: dict[int, Tensor], tasks: list[ClientTask], total: Tensor) -> Tensor:
        """The sum in which one worker adds the clients; each sends its ``parts``, one client at a time."""
        shares_ = self._shares(tasks, self.trainer.world_size)
        sender = {slot: rank for rank, slots in enumerate(shares_) for slot in slots if slot is not None}
        for slot in self._shares(tasks, 1)[0]:
            assert slot is not None
            part = parts.get(slot, torch.zeros_like(total))  # of another worker, or without a finite update
            torch.distributed.broadcast(part, src=sender[slot])
            total += part
        return total

    def _close(self, mean: CohortMean, table: Tensor, x_t: Snapshot, senders: Senders | None) -> Cohort:
        """Over all workers; clients that returned nothing finite are left out of the mean."""
        table = self.trainer.strategy.reduce(table, reduce_op="sum").cpu()
        columns: dict[str, Tensor] = dict(zip((*self.metrics, *COLUMNS), table.unbind(1), strict=True))
        good = columns["finite"] > 0
        if not good.all() and good.any():
            mean.clients, mean.shares = int(good.sum()), columns["share"][good].sum().item()
        if senders is not None:
            factors = torch.tensor(senders.factors, dtype=torch.float64)
            columns["bytes"] = columns["bytes"] * (factors > 0)
            mean.whole, mean.shares = mean.shares, (factors * columns["share"]).sum().item()
            mean.clients = senders.number
            if not senders.number:  # nobody sends: D is 0, and buffers stay
                return Cohort(Mean(torch.zeros_like(x_t.x), *x_t[1:], x_t.x[:0]), columns, senders)
        result = mean.mean()
        if mean.unchanged:
            before, after = self.weights.buffer_parts(x_t), self.weights.buffer_parts(result.over(x_t.x))
            for number in mean.unchanged:  # not even rounded
                after[number].copy_(before[number])
        return Cohort(result, columns, senders)

    def _mean(self, x_t: Snapshot, clients: int) -> CohortMean:
        message = x_t.x.numel() if self.parts.rule.sends else 0
        return CohortMean(x_t, clients, message, buffers=len(self.weights.buffer_parts(x_t)))

    def _slots(self, tasks: list[ClientTask]) -> Iterator[int]:
        """This worker's tasks, each framed by Lightning's batch hooks and our client hooks."""
        slots = self._shares(tasks, self.trainer.world_size)[self.trainer.global_rank]
        progress = self.trainer.fit_loop.epoch_loop.batch_progress
        progress.reset_on_run()
        for i, slot in enumerate(slots):
            progress.is_last_batch = i == len(slots) - 1
            progress.increment_ready()
            progress.increment_started()
            if slot is not None:  # None: other workers have one client more
                self._call_hook("on_train_batch_start", tasks[slot], i)
                fire(self.trainer, "on_client_start", tasks[slot])
                yield slot
                self._call_hook("on_train_batch_end", None, tasks[slot], i)
            progress.increment_processed()
            progress.increment_completed()

    def _shares(self, tasks: list[ClientTask], workers: int) -> list[list[int | None]]:
        return share_out([self._cost(task) for task in tasks], workers)

    def _call_hook(self, hook: str, *arguments: Any) -> None:
        """Lightning's way to call callbacks costs as much as a small client: only where one has the hook."""
        if hook in self._called:
            call_callback_hooks(self.trainer, hook, *arguments)

    def _steps(self, task: ClientTask) -> int:
        """K_i: local steps of a task."""
        return local_steps(self.data, task.client, task.epochs, self.settings.unit)

    def _cost(self, task: ClientTask) -> int:
        """What a task takes, in samples: a client's last batch may be small."""
        return task.epochs * (1 if self.settings.unit == "steps" else self.size(task.client))

    def _one_pass(self, task: ClientTask, t: int) -> Iterator[Any]:
        """Every sample of the client once, in the order of its first local epoch."""
        return self.data.batches(task.client, t, self.data.epoch(task.client))

    def _batches(self, task: ClientTask, t: int) -> Iterator[Any]:
        """A client's batches; layers that draw (dropout) start from (seed, round, client) too."""
        _seed_layers(derive(self.settings.seed, "layers", t, task.client), self.trainer.strategy.root_device)
        return self.data.batches(task.client, t, self._steps(task))


def _seed_layers(seed: int, device: torch.device) -> None:
    """Seed what layers draw from.

    ``torch.manual_seed`` also formats a stack trace for each kind of device that is absent: 1.5 ms a client.
    """
    if device.type == "cpu":
        torch.default_generator.manual_seed(seed)
    else:
        torch.manual_seed(seed)
