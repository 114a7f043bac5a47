"""Data moves once to where clients train, no batch mixes devices; on torch's ``meta``: no GPU was there."""

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from fedgm.data import synthetic
from fedgm.data.clients import bring
from fedgm.data.federation import Batching, federation
from fedgm.federated import loop as loop_module
from tests.federated.federated_run import configured, fit

META = torch.device("meta")


class OneDevice(TorchDispatchMode):
    """Refuses what a GPU would refuse; on ``meta`` torch lets some of it pass."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        parts = tree_leaves((args, kwargs or {}))
        devices = {part.device for part in parts if isinstance(part, torch.Tensor) and part.dim()}
        assert len(devices) < 2, f"{func} on {devices}"
        return func(*args, **(kwargs or {}))


def clients(augment="none", channels_last=False):
    return federation(
        synthetic.load(train=60, test=20, resolution=8), clients=3, alpha=0.5, seed=0, min_samples=5,
        augment=augment, eval_train_samples=10, batching=Batching(4, 0, channels_last, eval_batch_size=6),
    )  # fmt: skip


def all_batches(data):
    """Of a client in one pass, in several (prepared), and of every evaluation."""
    for steps in (1, 40):
        yield from data.batches(0, 1, steps)
    for part in (*data.evaluations().values(), data.own_samples(1)):
        yield from (part.batch(i) for i in range(len(part)))


@pytest.mark.parametrize("channels_last", [False, True])
@pytest.mark.parametrize("augment", ["none", "crop_flip"])
def test_every_batch_is_on_the_device_with_the_shape_it_has_on_a_cpu(augment, channels_last):
    here, there = clients(augment, channels_last), clients(augment, channels_last)
    bring(there, META)
    with OneDevice():
        moved = list(all_batches(there))
    pairs = list(zip(all_batches(here), moved, strict=True))
    assert len(pairs) > 45
    for own, moved in pairs:
        assert [part.device for part in moved] == [META, META]
        assert [part.shape for part in moved] == [part.shape for part in own]
        assert moved[0].stride() == own[0].stride()


def test_on_a_cpu_nothing_moves():
    data = clients()
    images, labels = data.images.train_images, data.labels(0)
    bring(data, torch.device("cpu"))
    assert data.images.train_images is images
    assert np.array_equal(data.labels(0), labels)


def test_data_that_cannot_move_stays():
    bring(object(), META)  # pyright: ignore


def test_the_loop_asks_once_with_the_device_that_clients_train_on(monkeypatch):
    asked = []
    monkeypatch.setattr(loop_module, "bring", lambda data, device: asked.append((data, device)))
    fitted = fit(configured("rounds=2"))
    assert asked == [(fitted.loop.data, torch.device("cpu"))]
