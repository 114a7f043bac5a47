"""BatchNorm cannot train on one image at 1x1: such models get no batch of one, all others keep their bits."""

import numpy as np
import pytest
import torch
from torch import nn

import fedgm
from fedgm.config import compose, validate
from fedgm.data.federation import Batching, Federation
from fedgm.errors import ConfigError
from fedgm.models.build import fit_batches
from fedgm.models.convolutional import resnet
from tests.conftest import quick

SMALL = (
    "profile=tiny", "track.mode=disabled", "trainer.workers=1", "rounds=1", "data.train_samples=33",
    "data.test_samples=10", "eval.train_samples=10", "clients.count=1", "clients.per_round=1",
    "local.epochs=1", "local.batch_size=4", "profile.tint=0.25", "profile.jitter=0.5",
)  # fmt: skip


def federation(**batching) -> Federation:
    from fedgm.running.parts import load_clients

    config = validate(compose(SMALL))
    own = load_clients(config)
    assert isinstance(own, Federation)
    return Federation(own.images, own.partition, own.batching._replace(**batching))


def sizes(data: Federation) -> list[int]:
    return [len(y) for _, y in data.batches(0, 1, 2 * data.epoch(0))]


def seen(data: Federation) -> torch.Tensor:
    return torch.cat([x for x, _ in data.batches(0, 1, data.epoch(0))])


def test_a_last_batch_of_one_takes_an_image_from_the_batch_before():
    plain, pairs = federation(), federation(pairs=True)
    assert sizes(plain) == [4] * 8 + [1] + [4] * 8 + [1]
    assert sizes(pairs) == [4] * 7 + [3, 2] + [4] * 7 + [3, 2]
    assert torch.equal(seen(plain), seen(pairs))  # the same images in the same order
    assert sizes(federation(pairs=True, batch_size=5)) == sizes(federation(batch_size=5))  # 33 = 6*5 + 3


@pytest.mark.parametrize(
    ("net", "changed"),
    [
        (resnet(18, 8, "batch"), True),  # 8 pixels, halved three times: 1x1
        (resnet(8, 8, "batch"), False),  # 2x2
        (resnet(18, 8, "group"), False),
        (nn.Sequential(nn.Flatten(), nn.LazyLinear(4), nn.BatchNorm1d(4)), True),
    ],
)
def test_only_models_that_would_raise_are_changed(net, changed):
    data = federation()
    before = torch.random.get_rng_state()
    assert (fit_batches(net, data, None, 1) is not data) == changed
    assert torch.equal(torch.random.get_rng_state(), before)
    assert net.training


@pytest.mark.parametrize(
    ("batch", "key", "hint"),
    [(1, "local.batch_size", "local.batch_size=3"), (2, "local.batch_size", "local.batch_size=3")],
)
def test_sizes_that_leave_one_image_alone_are_refused(batch, key, hint):
    with pytest.raises(ConfigError, match="no variance") as caught:
        fit_batches(resnet(18, 8, "batch"), federation(batch_size=batch), "batch", 1)
    assert (caught.value.key, caught.value.hint) == (key, f"{hint}, or model.norm=group")


def test_a_client_with_one_image_is_refused():
    data = federation()
    one = Federation(data.images, type("One", (), {"count": 1, "size": lambda self, c: 1})(), Batching(4))
    with pytest.raises(ConfigError, match=r"data\.min_samples=1") as caught:
        fit_batches(resnet(18, 8, "batch"), one, None, 1)
    assert caught.value.hint == "data.min_samples=2"


@pytest.mark.parametrize("model", quick(["mobilenet", "resnet18"], "mobilenet"))
def test_listed_models_train_on_a_last_batch_of_one(model, tmp_path):
    words = [
        *SMALL,
        "local.lr=0.0001",
        f"model={model}",
        f"output_dir={tmp_path}",
    ]  # BatchNorm of two jumps at 0.01
    done = fedgm.run(words)
    assert done.status == "finished"
    assert np.isfinite(done.summary["final"]["test/loss"])
