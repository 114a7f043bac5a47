"""The bowls of the reference recursions in the real loop: a module, its clients, and every model of a run."""

from dataclasses import dataclass, field

import numpy as np
import torch

from fedgm.federated.callback import FedGM
from fedgm.federated.federate import federate
from fedgm.lightning import pl
from tests.paper.recursions_problem import CURVATURE, DIM, MINIMA, START, N, gradient

LR = 0.05
K = 3
OFF = ("logger", "enable_checkpointing", "enable_progress_bar", "enable_model_summary")
ALL_DATA = -1.0  # in the place of a batch's number: the loss on all of a client's data


def value(i, x, key):
    """The loss whose gradient is that of the recursions; of ``None`` the one on all data."""
    full = 0.5 * (CURVATURE[i] * (x - MINIMA[i]) ** 2).sum()
    if key is None:
        return float(full)
    t, k = key
    wave = np.sin(1.0 + 7 * t + 3 * i + 2 * k + np.arange(DIM))
    return float(full + (0.2 * wave * x).sum() - (0.1 * wave * np.cos(x)).sum())


class Bowl(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.x = torch.nn.Parameter(torch.from_numpy(START.copy()))

    def training_step(self, batch, batch_idx):
        i, t, k = (float(part) for part in batch[0])
        curvature, minimum = (torch.from_numpy(table[int(i)]) for table in (CURVATURE, MINIMA))
        full = 0.5 * (curvature * (self.x - minimum) ** 2).sum()
        if t == k == ALL_DATA:
            return full
        wave = torch.from_numpy(np.sin(1.0 + 7 * t + 3 * i + 2 * k + np.arange(DIM)))
        return full + (0.2 * wave * self.x).sum() - (0.1 * wave * torch.cos(self.x)).sum()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=LR)


class Own:
    def __init__(self, client):
        self.client = client

    def __len__(self):
        return 1

    def batch(self, number):
        return torch.tensor([[self.client, ALL_DATA, ALL_DATA]], dtype=torch.float64)


@dataclass
class Bowls:
    """Client i's batch k of round t is the key (t, k) of the recursions."""

    steps: int = K
    sizes: tuple[int, ...] = (1,) * N
    count: int = N
    facts: dict = field(default_factory=dict)
    asked: list = field(default_factory=list)  # (batch size, client, round), where batches have a size
    batch_size: int = 1

    def size(self, client):
        return self.sizes[client]

    def epoch(self, client):
        return self.steps

    def batches(self, client, t, steps):
        self.asked.append((self.batch_size, client, t))
        return iter([torch.tensor([[client, t, k]], dtype=torch.float64) for k in range(steps)])

    def evaluations(self):
        return {}

    def own_samples(self, client):
        return Own(client)

    def rebatched(self, batch_size):
        return Bowls(self.steps, self.sizes, self.count, self.facts, self.asked, batch_size)


@dataclass(frozen=True)
class Listed:
    """Cohorts as they are listed; (client, staleness) where clients are stale."""

    cohorts: list
    history: int = 1
    anchor: str = "start"

    def tasks(self, t):
        from fedgm.participation import ClientTask

        who = [entry if isinstance(entry, tuple) else (entry, 0) for entry in self.cohorts[t - 1]]
        return [ClientTask(client, tau, 1, 1.0) for client, tau in who]

    def log(self, t):
        return {}


class Watch(pl.Callback):
    def __init__(self):
        self.past, self.rows = [START.copy()], []

    def on_train_epoch_end(self, trainer, pl_module):
        self.past.append(pl_module.x.detach().numpy().copy())
        self.rows.append(dict(trainer.fit_loop.row))


class Stop(pl.Callback):
    def __init__(self, after):
        self.after = after

    def on_train_epoch_end(self, trainer, pl_module):
        trainer.should_stop = len(trainer.callbacks[1].rows) == self.after


def trained(rule, participation=None, rounds=30, data=None, plan=None, checkpoint=None, **parts):
    """Models x_0 ... x_T and rows of the real loop; it may end early, and ``checkpoint`` continues it."""
    watch = Watch()
    server = FedGM(rule, plan) if plan is not None else FedGM(rule)
    trainer = pl.Trainer(
        max_epochs=30, callbacks=[server, watch, Stop(rounds)], accelerator="cpu", **dict.fromkeys(OFF, False)
    )
    module = Bowl()
    loop = federate(trainer, data or Bowls(), participation=participation, **parts)
    trainer.fit(module, ckpt_path=checkpoint)
    assert loop.diverged is None
    return Trained(watch.past, watch.rows, trainer, loop)


@dataclass
class Trained:
    past: list
    rows: list
    trainer: pl.Trainer
    loop: object


def continued(make, at=13, folder=None):
    """A run that is broken off after ``at`` rounds and continued; ``make(rounds, checkpoint)`` trains."""
    first = make(at, None)
    assert len(first.rows) == at
    path = folder / "half.ckpt"
    first.trainer.save_checkpoint(path)
    rest = make(30, str(path))
    return first.past + rest.past[1:], first.rows + rest.rows


def error(left, right):
    assert len(left) == len(right)
    return float(np.max(np.abs(np.stack(left) - np.stack(right))))


__all__ = ["LR", "Bowls", "K", "Listed", "continued", "error", "gradient", "trained", "value"]
