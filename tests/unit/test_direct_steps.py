"""A local step without Lightning's calls: only where nobody listens, and with the same bits."""

import pytest
import torch
from torch import nn

from fedgm.client.direct import is_direct
from fedgm.data import synthetic
from fedgm.data.federation import Batching, federation
from fedgm.draws import generator
from fedgm.federated.callback import FedGM
from fedgm.federated.cohort import RoundSettings
from fedgm.federated.loop import FederatedLoop
from fedgm.lightning import pl
from fedgm.participation import Ideal
from fedgm.server import Constant, GeneralMomentum
from fedgm.tasks.classification import Classification


class Listens(pl.Callback):
    def on_after_backward(self, trainer, pl_module):
        self.heard = getattr(self, "heard", 0) + 1


class Clips(Classification):
    def on_before_optimizer_step(self, optimizer):
        self.heard = getattr(self, "heard", 0) + 1


def fit(task=Classification, callbacks=(), **options):
    torch.manual_seed(0)
    data = federation(
        synthetic.load(train=200, test=20, resolution=8), clients=4, alpha=0.5, seed=0, min_samples=1,
        batching=Batching(batch_size=10),
    )  # fmt: skip
    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(144, 10))
    module = task(net, lambda params: torch.optim.SGD(params, lr=0.1))
    rule = GeneralMomentum(1.0, 0.9, 0.9)
    trainer = pl.Trainer(
        accelerator="cpu", devices=1, max_epochs=2, logger=False, enable_checkpointing=False,
        enable_progress_bar=False, enable_model_summary=False,
        callbacks=[FedGM(rule, Constant().plan(2, rule)), *callbacks], **options,
    )  # fmt: skip
    loop = FederatedLoop(trainer, data, Ideal(4, 2, epochs=2, seed=0), RoundSettings(2, seed=0))
    trainer.fit_loop = loop
    trainer.fit(module)
    row = {k: v for k, v in loop.row.items() if not k.startswith("time/") and k != "samples_per_s"}
    return loop, row, [p.detach().clone() for p in module.parameters()]


def test_the_bits_are_those_of_a_step_through_lightning():
    direct, row, weights = fit()
    listener = Listens()
    through, other_row, other = fit(callbacks=[listener])
    assert (direct.clients.client.direct, through.clients.client.direct) == (True, False)
    assert listener.heard > 0
    assert row == other_row
    assert all(torch.equal(a, b) for a, b in zip(weights, other, strict=True))


@pytest.mark.parametrize(
    "given", [{"task": Clips}, {"gradient_clip_val": 1.0}, {"precision": "64-true"}, {"profiler": "simple"}]
)
def test_whoever_listens_is_called(given):
    loop, _, _ = fit(**given)
    assert not loop.clients.client.direct
    if given.get("task") is Clips:
        assert loop.module.heard > 0


def test_another_strategy_is_not_known_to_do_nothing():
    loop, _, _ = fit()

    class Own(type(loop.trainer.strategy)):
        pass

    loop.trainer.strategy.__class__ = Own
    assert not is_direct(loop.trainer, ())


@pytest.mark.parametrize("channels_last", [False, True])
@pytest.mark.parametrize("partition", ["dirichlet", "virtual"])
def test_images_normalised_once_are_those_normalised_by_batch(partition, channels_last):
    dataset = synthetic.load(train=200, test=20, resolution=12)
    data = federation(dataset, clients=3, alpha=0.5, seed=1, min_samples=1, partition=partition)
    for client in range(3):
        own, rng, wanted = data.partition.indices(client), generator(5, "shuffle", 2, client), []
        while len(wanted) < 30:  # the recursion that version 0.1 had
            order = rng.permutation(own)
            wanted += [order[i : i + 7] for i in range(0, len(order), 7)]
        steps = data.client_steps(client, 7, 30, 5, 2, channels_last)
        for chosen, (x, y) in zip(wanted[:30], steps, strict=True):
            a, b = data.images.batch(chosen, train=False, channels_last=channels_last)
            assert torch.equal(a, x)
            assert torch.equal(b, y)
            assert a.stride() == x.stride()
