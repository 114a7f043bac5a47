"""A local step without Lightning's calls: only where nobody listens, and with the same bits."""

import pytest
import torch

from fedgm.client.hooks import is_direct
from fedgm.data import synthetic
from fedgm.data.federation import federation
from fedgm.draws import generator
from fedgm.lightning import pl
from fedgm.tasks.cross_entropy import Classification
from tests.federated.federated_run import configured, fit, flat, module_of


class Listens(pl.Callback):
    heard = 0

    def on_after_backward(self, trainer, pl_module):
        self.heard += 1


class Looks(Classification):
    heard = 0

    def on_before_optimizer_step(self, optimizer):
        self.heard += 1


def timeless(row):
    return {k: v for k, v in row.items() if not k.startswith("time/") and k != "samples_per_s"}


def test_the_bits_are_those_of_a_step_through_lightning():
    listener = Listens()
    direct, through = fit(configured()), fit(configured(), callbacks=[listener])
    assert (direct.loop.clients.client.direct, through.loop.clients.client.direct) == (True, False)
    assert listener.heard == through.loop.local_steps > 20
    assert timeless(direct.loop.row) == timeless(through.loop.row)
    assert torch.equal(flat(direct.module), flat(through.module))


def test_a_module_that_listens_is_called():
    plain = module_of(configured())
    found = fit(configured(), Looks(plain.net, plain._optimizer))
    assert found.module.heard == found.loop.local_steps
    assert not found.loop.clients.client.direct


@pytest.mark.parametrize("word", ["local.clip=1", "trainer.precision=64-true"])
def test_clipping_and_precision_are_lightnings(word):
    assert not fit(configured(word)).loop.clients.client.direct


def test_another_strategy_is_not_known_to_do_nothing():
    found = fit(configured())

    class Own(type(found.trainer.strategy)):
        pass

    found.trainer.strategy.__class__ = Own
    assert not is_direct(found.trainer, ())


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
