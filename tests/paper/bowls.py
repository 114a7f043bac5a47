"""The bowls of ``recursions_problem`` in the real loop, in float64: client rules against their recursions."""

from typing import NamedTuple

import numpy as np
import torch
from torch import nn

import fedgm
from fedgm.client.rules import Plain
from fedgm.federated.events import FederatedCallback
from fedgm.federated.loop import FederatedLoop
from fedgm.lightning import pl
from fedgm.participation import ClientTask
from fedgm.server import GeneralMomentum
from tests.paper.recursions_problem import COHORTS, CURVATURE, DIM, MINIMA, START, N, gradient

RATE = 0.05
ERROR = 1e-10


def K_of(client):
    """Local steps: not the same for all."""
    return 2 + client % 2


class Bowls:
    """A batch is a line that says whose it is, in which round, and which one; batch k has 1 + k samples."""

    facts = {}  # noqa: RUF012

    def __init__(self, steps):
        self.count, self.steps = N, steps

    def size(self, client):
        return sum(1 + k for k in range(self.steps(client)))

    def epoch(self, client):
        return self.steps(client)

    def batches(self, client, t, steps):
        for k in range(steps):
            yield torch.tensor([[client, t, k]] * (1 + k))

    def evaluations(self):
        return {}


class Bowl(pl.LightningModule):
    def __init__(self, rate):
        super().__init__()
        self.rate = rate
        self.first, self.rest = (nn.Parameter(torch.tensor(part)) for part in (START[:1], START[1:]))

    def training_step(self, batch, batch_idx):
        i, t, k = batch[0].tolist()
        x, (a, b) = torch.cat([self.first, self.rest]), torch.tensor(np.array([CURVATURE[i], MINIMA[i]]))
        wave = torch.sin(1.0 + 7 * t + 3 * i + 2 * k + torch.arange(DIM, dtype=torch.float64))
        return (0.5 * a * (x - b) ** 2 + 0.2 * wave * x - 0.1 * wave * torch.cos(x)).sum()

    def configure_optimizers(self):
        sgd = torch.optim.SGD(self.parameters(), lr=self.rate(1))
        factors = torch.optim.lr_scheduler.LambdaLR(sgd, lambda done: self.rate(done + 1) / self.rate(1))
        return {"optimizer": sgd, "lr_scheduler": {"scheduler": factors, "interval": "epoch"}}


class Given(NamedTuple):
    """The cohorts of a recursion; ``ages`` says how stale each of their clients is."""

    cohorts: list
    ages: list | None = None
    anchor: str = "start"
    history: int = 4

    def tasks(self, t):
        cohort = self.cohorts[t - 1]
        ages = self.ages[t - 1] if self.ages else [0] * len(cohort)
        return [ClientTask(i, age, 1, 1.0) for i, age in zip(cohort, ages, strict=True)]

    def log(self, t):
        return {}


class Past(FederatedCallback):
    def __init__(self):
        self.models = [START]

    def on_server_update(self, trainer, pl_module, update):
        self.models.append(update.x.numpy().copy())


class Listens(pl.Callback):
    """Somebody listens, so that steps go through Lightning."""

    def on_after_backward(self, trainer, pl_module):
        pass


class Fitted(NamedTuple):
    past: list
    loop: FederatedLoop


def fit(
    rule=None,
    cohorts=COHORTS,
    steps=K_of,
    rate=RATE,
    server=(1.0, 0.0, 0.0),
    direct=True,
    ages=None,
    anchor="start",
    upload=None,
):
    """The real loop over the rounds of ``cohorts``; ``rate`` is a number, or a function of the round."""
    past = Past()
    engine = fedgm.FedGM(GeneralMomentum(*server) if isinstance(server, tuple) else server)
    callbacks = [engine, past, *([] if direct else [Listens()])]
    off = ("logger", "enable_checkpointing", "enable_progress_bar", "enable_model_summary")
    trainer = pl.Trainer(
        max_epochs=len(cohorts),
        accelerator="cpu",
        devices=1,
        callbacks=callbacks,
        **dict.fromkeys(off, False),
    )
    data = Bowls(steps if callable(steps) else lambda client: steps)
    scheme = Given(cohorts, ages, anchor, history=4 if ages else 1)
    loop = fedgm.federate(trainer, data, participation=scheme, client=rule or Plain(), upload=upload)
    trainer.fit(Bowl(rate if callable(rate) else lambda t: rate))
    assert loop.clients.client.direct is direct
    return Fitted(past.models, loop)


def keys(steps=K_of):
    """The batches of ``Bowls``, for a recursion."""
    return lambda t, i: [(t, k) for k in range(steps(i) if callable(steps) else steps)]


def error(got, wanted):
    """The largest difference in any round."""
    assert len(got) == len(wanted) > 1
    return max(np.abs(a - b).max() for a, b in zip(got, wanted, strict=True))


def full(i, x, t, steps=K_of):
    """The gradient over all samples of a client: batch k counts 1 + k times."""
    sizes = [1 + k for k in range(steps(i) if callable(steps) else steps)]
    return sum(size * gradient(i, x, (t, k)) for k, size in enumerate(sizes)) / sum(sizes)
