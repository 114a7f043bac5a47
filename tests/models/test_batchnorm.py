"""Momentum acts on parameters alone: on BatchNorm's statistics it would make variances negative."""

import pytest
import torch

from fedgm.lightning import pl
from tests.federated.federated_run import configured, fit, flat

ETA, BETA, NU, ROUNDS = 3.0, 0.9, 0.9, 60
KEEP = 0.9  # torch's BatchNorm keeps 0.9 of its statistics in each step
SETTING = [
    "profile.norm=batch", f"rounds={ROUNDS}", f"eval.every={ROUNDS}", f"algorithm.eta={ETA}",
    f"algorithm.beta={BETA}", f"algorithm.nu={NU}", "local.unit=steps", "local.epochs=2", "local.lr=0.05",
]  # fmt: skip


def variances(module) -> torch.Tensor:
    return torch.cat(
        [b.detach().reshape(-1) for name, b in module.named_buffers() if name.endswith("running_var")]
    )


class Watch(pl.Callback):
    """The variances that every client ends with, and the global ones after every round."""

    def __init__(self):
        self.clients: list[list[torch.Tensor]] = []
        self.rounds: list[torch.Tensor] = []
        self.counters: list[int] = []

    def on_train_start(self, trainer, pl_module):
        self.rounds.append(variances(pl_module))

    def on_train_epoch_start(self, trainer, pl_module):
        self.clients.append([])

    def on_before_optimizer_step(self, trainer, pl_module, optimizer):
        self.own = variances(
            pl_module
        )  # after the step's forward pass; the last one is what a client ends with

    def on_client_end(self, trainer, pl_module, end):
        self.clients[-1].append(self.own)

    def on_train_epoch_end(self, trainer, pl_module):
        self.rounds.append(variances(pl_module))
        self.counters.append(pl_module.net.norm.num_batches_tracked.item())


@pytest.fixture(scope="module")
def watched():
    watch = Watch()
    fitted = fit(configured(*SETTING), callbacks=[watch])
    assert fitted.loop.diverged is None
    assert flat(fitted.module).isfinite().all()
    return watch


def test_the_statistics_are_the_clients_mean_in_every_round(watched):
    for own, clients in zip(watched.rounds[1:], watched.clients, strict=True):
        assert len(clients) == 3
        assert torch.allclose(own, torch.stack(clients).mean(0), rtol=1e-6)


def test_the_counter_is_the_mean_number_of_batches(watched):
    assert watched.counters == [2 * t for t in range(1, ROUNDS + 1)]


def test_all_variances_stay_positive_and_finite(watched):
    assert len(watched.rounds) == ROUNDS + 1
    assert all((v > 0).all() and v.isfinite().all() for v in watched.rounds)
    assert not torch.allclose(watched.rounds[0], watched.rounds[-1], rtol=0.1)  # they moved


def test_momentum_on_the_statistics_would_have_made_some_negative(watched):
    """What others do, worked out from the same run.

    While training, BatchNorm never reads its running statistics, so the parameters do not depend on them.
    K = 2 steps take a variance v to keep^2 v + c with the client's own c: known from the run, for any v.
    """
    v, d, negative = watched.rounds[0], torch.zeros_like(watched.rounds[0]), False
    for before, clients in zip(watched.rounds, watched.clients, strict=False):
        added = torch.stack(clients).mean(0) - KEEP**2 * before  # the mean of c
        delta = v - (KEEP**2 * v + added)
        d = (1 - BETA) * delta + BETA * d
        v = v - ETA * ((1 - NU) * delta + NU * d)
        negative = negative or bool((v < 0).any())
    assert negative
