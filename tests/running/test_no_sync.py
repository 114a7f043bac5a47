"""A client's steps ask the device for nothing: seen on a CPU in what torch dispatches; no GPU was there."""

from collections import Counter

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from fedgm.client.local import Client
from fedgm.tasks.cross_entropy import Classification
from tests.federated.federated_run import configured, fit, module_of

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


def watched(monkeypatch, task, *words):
    watch, train, steps = Watch(), Client.train, []

    def under_watch(self, *args, **kwargs):
        with watch:
            result = train(self, *args, **kwargs)
        steps.append(result.steps)
        return result

    monkeypatch.setattr(Client, "train", under_watch)
    run = configured("local.momentum=0.5", *words)
    plain = module_of(run)
    fit(run, task(plain.net, plain._optimizer))
    return watch.found, sum(steps)


@pytest.mark.parametrize("words", [(), ("local.clip=1",)], ids=["direct", "through Lightning"])
def test_no_number_is_fetched_while_a_client_trains(monkeypatch, words):
    found, steps = watched(monkeypatch, Classification, *words)
    assert steps > 10
    assert found == {}


def test_the_watch_sees_one_that_is(monkeypatch):
    found, steps = watched(monkeypatch, FetchesNumbers)
    assert found["aten::_local_scalar_dense"] == steps
