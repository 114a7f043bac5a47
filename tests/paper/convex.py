"""A convex problem in the real loop, and its pieces for reference recursions written in plain torch."""

from copy import deepcopy

import torch
from torch import nn
from torch.nn import functional as F

from fedgm.client.store import ClientStore
from fedgm.running.parts import build_parts
from fedgm.tasks.cross_entropy import Classification
from tests.federated import federated_run
from tests.federated.federated_run import flat

# Softmax regression: convex. 6 clients of one class each, 3 in a round, so that everyone comes back.
CONVEX = [
    "profile=tiny", "data.train_samples=240", "data.test_samples=60", "data.alpha=0.3", "clients.count=6",
    "clients.per_round=3", "local.batch_size=10", "local.epochs=2", "local.lr=0.02", "rounds=5",
    "eval.train_samples=240", "trainer.workers=1", "algorithm=fedavg",
]  # fmt: skip


def configured(*overrides):
    return federated_run.configured(*overrides, base=CONVEX)


def linear():
    torch.manual_seed(3)
    return nn.Sequential(nn.Flatten(), nn.Linear(3 * 8 * 8, 10))


def fit(run, tmp_path):
    module = Classification(
        linear(), lambda params: torch.optim.SGD(params, lr=run.local.lr, momentum=run.local.momentum)
    )
    fitted = federated_run.fit(run, module, store=ClientStore(tmp_path / "clients"))
    return fitted.module, fitted.loop


def local(run, clients, net, task, t, correct):
    """K plain steps from ``net``; ``correct(w, g)`` is the gradient that is used."""
    own = deepcopy(net)
    steps = clients.steps_of(task.client, run.local.batch_size, task.epochs, run.local.unit)
    for x, y in clients.client_steps(task.client, run.local.batch_size, steps, run.seed, t):
        own.zero_grad()
        F.cross_entropy(own(x), y).backward()
        w, g = flat(own), torch.cat([p.grad.reshape(-1) for p in own.parameters()])
        nn.utils.vector_to_parameters(w - run.local.lr * correct(w, g), own.parameters())
    return flat(own), steps


def rounds(run):
    parts = build_parts(run)
    clients = parts.load(run)
    return clients, [(t, parts.participation.tasks(t)) for t in range(1, run.rounds + 1)]
