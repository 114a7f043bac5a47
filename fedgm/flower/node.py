"""A node's side: one order, trained as the loop trains a client, with the states that it keeps in files."""

import sys
import warnings
from collections.abc import Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import torch

from fedgm.client.store import ClientStore
from fedgm.client.weights import History
from fedgm.config import RunConfig, compose, require_sound
from fedgm.config.identity import identity, setup_of
from fedgm.data.clients import ClientData
from fedgm.errors import FedGMError
from fedgm.federated.cohort import ClientUpdate, CohortTrainer
from fedgm.flower.parcel import Order, Return
from fedgm.lightning import pl
from fedgm.participation import ClientTask
from fedgm.running.parts import Parts, build_parts
from fedgm.running.trainer import build_module, build_trainer, put_loop
from fedgm.seals import name_of
from fedgm.starting import without_treespec_warning
from fedgm.upload.message import Plain as WholeDelta
from fedgm.upload.packing import pack

STATE = Path("~/.local/state/fedgm")  # where a node keeps its clients' states, unless told otherwise
ALONE = ("trainer.workers=1", "track=none")  # of every process of a deployment; neither changes a bit


class OneClient(CohortTrainer):
    """Does one order instead of a round."""

    returned: ClientUpdate | None = None
    message = b""

    def __init__(self, order: Order, *loop: Any) -> None:
        super().__init__(*loop)
        self.task = ClientTask(order.client, 0, order.epochs, order.weight, order.round)
        theirs, ours = order.start.x.numel(), self.weights.read().x.numel()
        if theirs != ours:
            raise FedGMError(f"the server's model has {theirs:,} parameters, that of this node {ours:,}")
        self.start = History(1)
        self.start.push(order.start, order.shared)
        for group, rate in zip(self.client.optimizer.param_groups, order.rates, strict=True):
            group["lr"] = rate

    def tasks(self, t: int, history: History) -> list[ClientTask]:
        """Train the client, and end the fit."""
        kept = self._kept(self.task, self.task.began or t, self.start[0].x.device)
        self.returned = self.update(self.task, t, self.start)
        if self.returned.finite and not isinstance(self.parts.upload, WholeDelta):
            delta = self.start[0].x - self.returned.after.x
            self.message = pack(self.parts.upload, delta, kept.upload, self.returned.sent)
        raise StopIteration


@without_treespec_warning()
def work(
    parcel: bytes,
    words: Sequence[str],
    state: Path = STATE,
    own: Sequence[str] = (),
    client: int | None = None,
) -> bytes:
    """Do one order of a run that ``words`` configure; ``own`` are words of this node: where its data are.

    A node that knows which ``client`` it is works for no other.
    """
    order = Order.opened(parcel)
    if client is not None and order.client != client:
        raise FedGMError(f"this node is client {client}, and was asked to be client {order.client}")
    if others := [word for word in own if not word.lstrip("+").startswith("data.")]:
        raise FedGMError(f"{others[0]}: words of a node say where its data are. Allowed: data.KEY=...")
    config, here, setup = _configured((*words, *own, *ALONE))
    if order.setup != setup or (not own and order.run != here):
        raise FedGMError(f"the server runs {order.run}, but this node's configuration is {here}")
    parts = build_parts(config)
    clients = parts.load(config)
    module = build_module(config, clients.facts)
    update, message = _train(config, parts, clients, module, order, state.expanduser())
    sent = torch.frombuffer(bytearray(message), dtype=torch.uint8) if message else update.after.x
    _, buffers, counters = update.after
    rest = update.message.clone()  # an empty one may be a view of another vector
    size = clients.size(order.client)
    return Return(order.client, order.round, size, update.result, sent, buffers, counters, rest).packed()


@lru_cache(maxsize=1)  # a process that does several orders reads its words once
def _configured(words: tuple[str, ...]) -> tuple[RunConfig, str, str]:
    """The configuration, the name of its run, and what it says outside data.*."""
    cfg = compose(words)
    config = require_sound(cfg)
    return config, name_of(identity(cfg), config.seed), setup_of(cfg)


def _train(
    config: RunConfig,
    parts: Parts,
    clients: ClientData,
    module: pl.LightningModule,
    order: Order,
    state: Path,
) -> tuple[ClientUpdate, bytes]:
    keep = config.checkpoint
    keeps = parts.client.keeps or parts.upload.keeps or config.local.state == "keep"
    store = ClientStore(state / order.run, keep.every, keep.keep, keep.sync, order.run) if keeps else None
    if store is not None:  # work that did not reach the server has not happened
        store.forget_beyond(store.newest(until=sys.maxsize) | {order.client: order.before - 1})
    parts.cohorts = partial(OneClient, order)
    trainer = build_trainer(config, [], workers=1)
    loop = put_loop(config, parts, trainer, module, clients, store)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*no `val_dataloader`.*")  # the server evaluates
        trainer.fit(module)
    done = loop.clients
    assert isinstance(done, OneClient) and done.returned is not None  # noqa: PT018
    return done.returned, done.message
