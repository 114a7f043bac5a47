"""A client's steps ask the device for nothing: seen on a CPU in what torch dispatches; no GPU was there."""

from collections import Counter

import pytest
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from fedgm.client.local import Client
from fedgm.data import synthetic
from fedgm.data.federation import Batching, federation
from fedgm.federated.callback import FedGM
from fedgm.federated.cohort import RoundSettings
from fedgm.federated.loop import FederatedLoop
from fedgm.lightning import pl
from fedgm.participation import Ideal
from fedgm.server import Constant, GeneralMomentum
from fedgm.tasks.classification import Classification

WAITS = ("aten::_local_scalar_dense", "aten::is_nonzero", "aten::equal", "aten::nonzero")


class Watch(TorchDispatchMode):
    """Counts what would make a GPU's queue run empty: numbers fetched, copies between devices."""

    def __init__(self):
        super().__init__()
        self.found = Counter()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        name = func._schema.name
        if name in WAITS:
            self.found[name] += 1
        devices = {a.device for a in args if isinstance(a, torch.Tensor) and a.dim()}
        if len(devices) > 1 or (name == "aten::_to_copy" and kwargs.get("device") not in (None, *devices)):
            self.found["between devices"] += 1
        return func(*args, **kwargs)


class FetchesNumbers(Classification):
    def training_step(self, batch, batch_idx):
        output = super().training_step(batch, batch_idx)
        output["loss"].item()
        return output


def watched(monkeypatch, task, **options):
    watch, train, steps = Watch(), Client.train, []

    def under_watch(self, *args, **kwargs):
        with watch:
            result = train(self, *args, **kwargs)
        steps.append(result.steps)
        return result

    monkeypatch.setattr(Client, "train", under_watch)
    data = federation(
        synthetic.load(train=200, test=20, resolution=8), clients=4, alpha=0.5, seed=0, min_samples=1,
        batching=Batching(batch_size=10),
    )  # fmt: skip
    net = nn.Sequential(nn.Flatten(), nn.Linear(192, 10))
    module = task(net, lambda params: torch.optim.SGD(params, lr=0.1, momentum=0.5))
    rule = GeneralMomentum(1.0, 0.9, 0.9)
    trainer = pl.Trainer(
        accelerator="cpu", devices=1, max_epochs=1, logger=False, enable_checkpointing=False,
        enable_progress_bar=False, enable_model_summary=False,
        callbacks=[FedGM(rule, Constant().plan(1, rule))], **options,
    )  # fmt: skip
    trainer.fit_loop = FederatedLoop(trainer, data, Ideal(4, 2, epochs=2, seed=0), RoundSettings(1, seed=0))
    trainer.fit(module)
    return watch.found, sum(steps)


@pytest.mark.parametrize("options", [{}, {"gradient_clip_val": 1.0}], ids=["direct", "through Lightning"])
def test_no_number_is_fetched_while_a_client_trains(monkeypatch, options):
    found, steps = watched(monkeypatch, Classification, **options)
    assert steps > 10
    assert found == {}


def test_the_watch_sees_one_that_is(monkeypatch):
    found, steps = watched(monkeypatch, FetchesNumbers)
    assert found["aten::_local_scalar_dense"] == steps
