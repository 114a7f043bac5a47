"""A run without folder and W&B, through the real assembly, and the same run written in plain torch."""

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional as F

from fedgm import config
from fedgm.client.store import ClientStore
from fedgm.config import RunConfig
from fedgm.config.parts import build
from fedgm.data.federation import Federation
from fedgm.draws import derive
from fedgm.federated.callback import FedGM
from fedgm.federated.loop import FederatedLoop
from fedgm.lightning import pl
from fedgm.running.parts import build_parts, load_clients
from fedgm.running.trainer import build_module, build_trainer
from fedgm.running.trainer import fit as fit_parts
from fedgm.tasks.cross_entropy import Classification

# 5 clients of unequal size, 3 in a round, 2 rounds, batches of 16: 60 local steps in half a second
SMALL = [
    "profile=tiny", "data.train_samples=120", "data.test_samples=40", "clients.count=5",
    "clients.per_round=3", "local.batch_size=16", "local.epochs=2", "rounds=2", "trainer.workers=1",
    "eval.train_samples=40", "algorithm.eta=2", "algorithm.beta=0.8", "algorithm.nu=0.7", "local.lr=0.05",
]  # fmt: skip


@dataclass
class Fitted:
    config: RunConfig
    clients: Federation
    trainer: pl.Trainer
    module: Classification
    loop: FederatedLoop


def configured(*overrides: str, base: Sequence[str] = SMALL) -> RunConfig:
    return config.validate(config.compose([*base, *overrides]))


def module_of(run: RunConfig, net: nn.Module | None = None) -> Classification:
    module = build_module(run, {"num_classes": 10})
    return module if net is None else Classification(net, module._optimizer)


def fit(
    run: RunConfig,
    module: Classification | None = None,
    callbacks: list[pl.Callback] | None = None,
    store: ClientStore | None = None,
) -> Fitted:
    """Train without a folder; ``callbacks`` come after the FedGM callback, ``store`` keeps states."""
    parts = build_parts(run)
    clients, module = parts.load(run), module or module_of(run)
    trainer = build_trainer(run, [FedGM(parts.engine), *(callbacks or [])], 1)
    loop = fit_parts(run, parts, trainer, module, clients, None, store)
    return Fitted(run, clients, trainer, module, loop)


def flat(net: nn.Module) -> torch.Tensor:
    return torch.cat([p.detach().reshape(-1) for p in net.parameters()])


def statistics(net: nn.Module) -> list[torch.Tensor]:
    return [b.detach().clone() for b in net.buffers()]


def mean(vectors, parts=None) -> torch.Tensor:
    """In float64, where few float32 numbers add up without rounding."""
    if parts is None:
        return sum(v.double() for v in vectors) / len(vectors)
    return sum(v.double() * part for v, part in zip(vectors, parts, strict=True))


def plain_torch(run: RunConfig, net: nn.Module, optimizer=None, weights=None) -> nn.Module:
    """Algorithm 3 with nothing of fedgm but the draws of the cohort and the batches.

    ``optimizer`` makes a client's optimiser from its parameters; ``weights`` each client's part of the mean.
    """
    clients, net = load_clients(run), deepcopy(net)
    local, server = run.local, run.algorithm
    x, d = flat(net), torch.zeros_like(flat(net))
    for t in range(1, run.rounds + 1):
        cohort = [task.client for task in build(run.participation, "participation").tasks(t)]
        updates, buffers = [], []
        for client in cohort:
            own = deepcopy(net).train()
            torch.manual_seed(derive(run.seed, "layers", t, client))
            sgd = optimizer(own.parameters()) if optimizer else torch.optim.SGD(own.parameters(), lr=local.lr)
            steps = clients.steps_of(client, local.batch_size, local.epochs, local.unit)
            layout = bool(run.model["channels_last"])
            for images, labels in clients.client_steps(client, local.batch_size, steps, run.seed, t, layout):
                sgd.zero_grad()
                F.cross_entropy(own(images), labels).backward()
                if local.clip:
                    nn.utils.clip_grad_norm_(own.parameters(), local.clip)
                sgd.step()
            updates.append(x - flat(own))
            buffers.append(statistics(own))
        parts = weights([clients.size(c) for c in cohort]) if weights else None
        delta = mean(updates, parts).float()
        d = (1 - server["beta"]) * delta + server["beta"] * d
        x = x - server["eta"] * ((1 - server["nu"]) * delta + server["nu"] * d)
        nn.utils.vector_to_parameters(x, net.parameters())
        for place, values in zip(net.buffers(), zip(*buffers, strict=True), strict=True):
            place.copy_(mean(values, parts) if place.is_floating_point() else sum(values) // len(values))
    return net
