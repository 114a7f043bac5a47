"""A round's clients on nodes: each gets its order, and the loop gets what they return.

Everything else is the loop's own: who takes part, the mean, the server step, rows, checkpoints.
"""

import math
import time
from dataclasses import dataclass, field
from typing import Any

from fedgm.client.controls import FedDyn, ScaffoldM
from fedgm.client.momenta import FedAvgM, FedCM, MimeLite, Stem
from fedgm.client.personal import PerFedAvg
from fedgm.client.rules import FedProx, LastUpdates, Plain, Scaffold
from fedgm.client.weights import History, Snapshot, is_finite, stays_finite
from fedgm.clock import steady
from fedgm.errors import FedGMError, require_fits
from fedgm.federated.cohort import ClientUpdate, CohortTrainer
from fedgm.federated.events import ClientEnd, fire
from fedgm.flower.parcel import BadParcelError, Order, Return
from fedgm.flower.post import Directory, Post, Terms
from fedgm.lightning import rank_zero_warn
from fedgm.participation import ClientTask
from fedgm.upload.message import Plain as WholeDelta
from fedgm.upload.message import Sent
from fedgm.upload.packing import unpack

# Client rules that nodes run: all that a client needs is its model, what the server sends and what it keeps.
DEPLOYED = (
    Plain, FedProx, Scaffold, LastUpdates, FedCM, FedAvgM, MimeLite, Stem, ScaffoldM, FedDyn, PerFedAvg,
)  # fmt: skip


@dataclass
class Arrived:
    """What came back in a round, and what did not."""

    returns: dict[int, Return] = field(default_factory=dict[int, Return])  # by client
    reasons: dict[int, str] = field(default_factory=dict[int, str])  # of those that count as missing


class RemoteCohort(CohortTrainer):
    """Trains nobody: asks the nodes of a round's clients, and waits for them."""

    def __init__(self, post: Post, terms: Terms, run: str, setup: str, *loop: Any) -> None:
        super().__init__(*loop)
        self.post, self.terms, self.run, self.setup = post, terms, run, setup
        self.directory = Directory(post, terms, self.data.count)
        self.arrived = Arrived()
        reason = "it needs models that a node has not got, counts another update than it sends, or is new"
        rule = type(self.parts.rule)
        require_fits(rule in DEPLOYED, "client", rule.__name__, reason, "client=plain, or scaffold")
        whole = isinstance(self.parts.upload, WholeDelta)
        reason = "deltas measured from x_t are computed by the server, so clients send all of their model"
        ok = whole or self.participation.anchor == "start"
        require_fits(ok, "participation.anchor", self.participation.anchor, reason, "upload=plain")

    def tasks(self, t: int, history: History) -> list[ClientTask]:
        """The cohort of round ``t``, as far as it has returned something that counts."""
        asked = self.participation.tasks(t)
        self.arrived = self._exchange(asked, t, history)
        self._drop_nonfinite(asked, history)
        self._require_enough(asked, t)
        return [task for task in asked if task.client in self.arrived.returns]

    def update(self, task: ClientTask, t: int, history: History) -> ClientUpdate:
        """What a node has sent, as if this process had trained the client."""
        update = self.decoded(task, self.arrived.returns[task.client], history)
        end = ClientEnd(t, task, update.sent.delta, update.result.steps, update.finite)
        fire(self.trainer, "on_client_end", end)
        return update

    def size(self, client: int) -> int:
        """As its node says: the server need not know the data."""
        known = self.arrived.returns.get(client)
        return known.size if known else self.data.size(client)

    def order(self, task: ClientTask, t: int, history: History, before: int | None = None) -> bytes:
        """The parcel for one client; ``before`` is later than the last work of it that counts."""
        rates = [float(group["lr"]) for group in self.client.optimizer.param_groups]
        start, shared = history[task.staleness], history.shared(task.staleness)
        began = task.began or t
        facts = (self.run, self.setup, task.client, began, task.epochs, task.weight, rates, before or began)
        return Order(*facts, start, shared).packed()

    def opened(self, parcel: bytes, client: int, t: int, like: Snapshot) -> Return:
        """A return, verified: it is of that client and that round, and fits the model."""
        came = Return.opened(parcel, like, len(self.metrics), self.parts.rule.sends)
        if (came.client, came.round) != (client, t):
            raise BadParcelError(f"it is of client {came.client} in round {came.round}")
        if came.update.dtype != like.x.dtype:
            unpack(self.parts.upload, came.update.numpy().tobytes(), like.x)  # or it is refused now
        return came

    def decoded(self, task: ClientTask, came: Return, history: History) -> ClientUpdate:
        """The delta as the server sees it, from the model that the client started from or from x_t."""
        start, x_t = history[task.staleness], history[0]
        if came.update.dtype == start.x.dtype:
            x = came.update
            delta = (start if self.participation.anchor == "start" else x_t).x - x
            sent = Sent(delta, delta.numel() * delta.element_size(), {})
        else:
            message = came.update.numpy().tobytes()
            delta = unpack(self.parts.upload, message, start.x)
            sent, x = Sent(delta, len(message), {}), start.x - delta
        after = Snapshot(x, came.buffers, came.counters)
        finite = is_finite(delta) and stays_finite(start.buffers, after.buffers) and is_finite(came.message)
        finite = finite and all(map(math.isfinite, (came.result.measured, *came.result.sums)))
        return ClientUpdate(came.result, after, sent, came.message, finite)

    def _exchange(self, tasks: list[ClientTask], t: int, history: History) -> Arrived:
        """Order all of it, and wait until everybody has answered or counts as missing."""
        arrived, started = Arrived(), steady()
        waiting = {task.client: started for task in tasks}  # since when the node has not been there
        tasks_of, tries = {task.client: task for task in tasks}, dict.fromkeys(waiting, 0)
        open_: dict[str, int] = {}
        while waiting or open_:
            now, online = steady(), self.directory.online()
            for client in list(waiting):
                if client in online:
                    del waiting[client]
                    parcel = self.order(tasks_of[client], t, history)
                    open_[self.post.push(online[client], "train", parcel, self.terms.timeout)] = client
                elif now - waiting[client] > self.terms.wait and not self.directory.asking:
                    del waiting[client]
                    arrived.reasons[client] = f"its node is not online (waited {self.terms.wait:g} s)"
            for answer in self.post.pull(list(open_)) if open_ else ():
                client = open_.pop(answer.id)
                tries[client] += 1
                if answer.error and answer.lost and tries[client] < self.terms.tries:
                    waiting[client] = now  # the same work: draws depend on the round and the client alone
                    continue
                task = tasks_of[client]
                try:
                    if answer.error:
                        raise BadParcelError(answer.error)
                    like = history[task.staleness]
                    arrived.returns[client] = self.opened(answer.parcel, client, task.began or t, like)
                except FedGMError as error:
                    arrived.reasons[client] = str(error)
            if now - started > self.terms.timeout:
                late = f"no answer after {self.terms.timeout:g} s"
                arrived.reasons |= dict.fromkeys((*waiting, *open_.values()), late)
                break
            if waiting or open_:
                time.sleep(self.terms.poll)
        return arrived

    def _drop_nonfinite(self, asked: list[ClientTask], history: History) -> None:
        """One node's NaN is that node's fault; where all are, the run has diverged, which the loop says."""
        returns, came = self.arrived.returns, [task for task in asked if task.client in self.arrived.returns]
        bad = [task.client for task in came if not self.decoded(task, returns[task.client], history).finite]
        if len(bad) == len(came):
            return
        for client in bad:
            del returns[client]
            self.arrived.reasons[client] = "its update is not finite"

    def _require_enough(self, asked: list[ClientTask], t: int) -> None:
        """No silent round: who is missing is named, and too many end the run."""
        if not self.arrived.reasons:
            return
        who = "; ".join(f"client {client}: {why}" for client, why in sorted(self.arrived.reasons.items()))
        came, least = len(self.arrived.returns), min(self.terms.min_replies or len(asked), len(asked))
        if came < max(1, least):
            nobody = [f"node {node}: {why}" for node, why in self.directory.refused.items()]
            raise FedGMError(
                f"round {t}: {came} of {len(asked)} clients returned, {max(1, least)} are needed "
                f"(min-replies). {'; '.join([who, *nobody])}. The same command continues after round {t - 1}"
            )
        rank_zero_warn(f"round {t} goes on without {who}")
