import math
import tracemalloc

import numpy as np
import pytest
import torch

from fedgm.data import synthetic
from fedgm.data.dataset import Dataset
from fedgm.data.federation import Federation, federation
from fedgm.data.images import Images
from fedgm.data.partition import Partition, dirichlet
from fedgm.draws import generator
from fedgm.errors import ConfigError

SIDE = 16


@pytest.fixture(scope="module")
def data():
    return synthetic.load(300, 70, SIDE, 5, seed=0)


def make(data, **options):
    return federation(data, **{"clients": 6, "alpha": 1.0, "seed": 0, "min_samples": 5, **options})


def numbered(count):
    """Images that carry their own number, so that a batch tells which samples it holds."""
    images = np.zeros((count, 8, 8, 3), np.uint8)
    images[:] = np.arange(count, dtype=np.uint8)[:, None, None, None]
    labels = np.arange(count) % 3
    return Dataset(images, labels, images, labels, ("a", "b", "c"), (0.0,) * 3, (1 / 255,) * 3)


def numbers(images):
    return images[:, 0, 4, 4].round().int().tolist()


def passes(clients, client, batch_size, epochs, seed, round):
    """Whole passes over a client's samples."""
    steps = clients.steps_of(client, batch_size, epochs)
    return clients.client_steps(client, batch_size, steps, seed, round)


def test_normalisation_by_hand():
    # value 51 is .2; (.2 - .5) / .25 = -1.2; channel 1: (.2 - .4) / .1 = -2; channel 2: (.2 - 0) / 1 = .2
    images = np.full((1, 8, 8, 3), 51, np.uint8)
    own = Dataset(
        images,
        np.zeros(1, np.int64),
        images,
        np.zeros(1, np.int64),
        ("a",),
        (0.5, 0.4, 0.0),
        (0.25, 0.1, 1.0),
    )
    batch, labels = Images(own).batch(np.array([0]), train=False)
    assert batch.dtype == torch.float32
    assert batch[0, :, 3, 5].tolist() == pytest.approx([-1.2, -2.0, 0.2], abs=1e-6)
    assert labels.tolist() == [0]


def test_both_layouts_hold_the_same_numbers(data):
    clients = make(data)
    for chosen in (np.array([3, 1, 4]), torch.tensor([3, 1, 4])):
        last, _ = clients.images.batch(chosen, train=False, channels_last=True)
        first, labels = clients.images.batch(chosen, train=False, channels_last=False)
        assert torch.equal(last, first)
        assert last.is_contiguous(memory_format=torch.channels_last)
        assert first.is_contiguous()
        assert labels.tolist() == data.train_labels[[3, 1, 4]].tolist()
        expected = (data.train_images[[3, 1, 4]] / 255 - data.mean) / data.std
        assert np.allclose(first.numpy(), expected.transpose(0, 3, 1, 2), atol=1e-5)


def test_images_are_shared_and_not_copied(data):
    clients = make(data)
    images = clients.images
    assert images.train_images.data_ptr() == data.train_images.ctypes.data
    assert (clients.count, images.classes, images.channels, images.resolution) == (6, 5, 3, SIDE)


@pytest.mark.parametrize("augment", ["flip", "crop_flip"])
def test_augmentation_equals_a_slow_reference(data, augment):
    clients = make(data, augment=augment)
    chosen = np.arange(40)
    found, _ = clients.images.batch(chosen, train=True, rng=generator(0, "test"), channels_last=True)
    rng, pad = generator(0, "test"), SIDE // 8 if augment == "crop_flip" else 0
    flips = rng.integers(2, size=40)
    down, across = (
        (rng.integers(2 * pad + 1, size=(40, 1))[:, 0] for _ in range(2)) if pad else np.zeros((2, 40), int)
    )
    for number in range(40):
        padded = np.pad(data.train_images[number], ((pad, pad), (pad, pad), (0, 0)))
        crop = padded[down[number] : down[number] + SIDE, across[number] : across[number] + SIDE]
        crop = crop[:, ::-1] if flips[number] else crop
        expected = (crop / 255 - data.mean) / data.std
        assert np.allclose(found[number].permute(1, 2, 0).numpy(), expected, atol=1e-5)
    assert 0 < flips.sum() < 40


def test_only_training_with_augmentation_on_is_augmented(data):
    plain, crops = make(data), make(data, augment="crop_flip")
    chosen = np.arange(30)
    reference = plain.images.batch(chosen, train=False)[0]
    assert torch.equal(plain.images.batch(chosen, train=True, rng=generator(0, "test"))[0], reference)
    assert torch.equal(crops.images.batch(chosen, train=False, rng=generator(0, "test"))[0], reference)
    assert not torch.equal(crops.images.batch(chosen, train=True, rng=generator(0, "test"))[0], reference)


def test_an_epoch_is_every_own_sample_once_in_a_new_order():
    own = numbered(50)
    split = dirichlet(own.train_labels, 3, 1.0, 0, 5)
    clients = Federation(Images(own), split)
    size = clients.size(1)
    batches = list(passes(clients, 1, 4, 3, seed=9, round=2))
    per_epoch = math.ceil(size / 4)
    assert len(batches) == 3 * per_epoch == clients.steps_of(1, 4, 3, "epochs")
    seen = [[n for x, _ in batches[e * per_epoch :][:per_epoch] for n in numbers(x)] for e in range(3)]
    assert all(sorted(epoch) == sorted(split.indices(1).tolist()) for epoch in seen)
    assert seen[0] != seen[1] != seen[2]
    assert len(batches[per_epoch - 1][1]) == (size % 4 or 4)
    assert all((y.numpy() == own.train_labels[numbers(x)]).all() for x, y in batches)


def test_steps_cycle_through_the_same_batches(data):
    clients = make(data, augment="crop_flip")
    size = clients.steps_of(2, 7, 2)
    epochs = list(passes(clients, 2, 7, 2, seed=1, round=3))
    steps = list(clients.client_steps(2, 7, size + 5, seed=1, round=3))
    assert len(steps) == size + 5
    assert all(torch.equal(a[0], b[0]) for a, b in zip(epochs, steps, strict=False))
    assert clients.steps_of(2, 7, 11, "steps") == 11
    with pytest.raises(ConfigError, match=r"local\.unit=hours"):
        clients.steps_of(2, 7, 1, "hours")


def test_batches_depend_on_seed_round_and_client_alone(data):
    clients = make(data, augment="crop_flip")

    def first(client, seed, round):
        return next(passes(clients, client, 5, 1, seed, round))[0]

    reference = first(0, 1, 1)
    list(passes(clients, 3, 5, 1, 1, 1))  # other work in between changes nothing
    assert torch.equal(first(0, 1, 1), reference)
    assert not any(torch.equal(first(*other), reference) for other in [(1, 1, 1), (0, 2, 1), (0, 1, 2)])


def test_evaluation_batches_cover_the_split_in_order(data):
    clients = make(data, eval_train_samples=31, augment="crop_flip")
    test = clients.images.evaluation("test", 32)
    assert (len(test), test.samples) == (3, 70)
    assert torch.cat([y for _, y in test]).tolist() == data.test_labels.tolist()
    assert len(test.batch(2)[1]) == 6
    with pytest.raises(IndexError):
        test.batch(3)
    train = clients.images.evaluation("train", 10, channels_last=True)
    again = make(data, eval_train_samples=31).images.evaluation("train", 31).batch(0)
    assert (len(train), train.samples) == (4, 31)
    assert torch.equal(torch.cat([x for x, _ in train]), again[0])
    assert len(np.unique(again[0].numpy().reshape(31, -1), axis=0)) == 31
    assert make(data).images.evaluation("train", 10).samples == 300


def test_wrong_options_are_named(data):
    for options, key in [
        ({"augment": "cutout"}, "data.augment"),
        ({"partition": "stars"}, "data.partition"),
        ({"client_samples": 5}, "data.client_samples"),
        ({"eval_train_samples": 0}, "eval.train_samples"),
    ]:
        with pytest.raises(ConfigError) as caught:
            make(data, **options)
        assert caught.value.key == key


def test_a_client_without_samples_is_named(data):
    split = Partition.of_owners(np.zeros(300, np.int64), clients=2)
    empty = Federation(Images(data), split)
    assert len(list(empty.client_steps(0, 10, 3, seed=0, round=1))) == 3
    with pytest.raises(ConfigError, match="client=1: this split gives it no samples"):
        next(empty.client_steps(1, 10, 3, seed=0, round=1))


def test_a_million_clients_train_without_being_listed(data):
    tracemalloc.start()
    clients = make(data, clients=1_000_000, partition="virtual", min_samples=10)
    batches = [list(passes(clients, c, 5, 1, 0, 0)) for c in (0, 999_999, 123_456)]
    held = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert held < 1_000_000  # not even a byte for each client
    assert clients.count == 1_000_000
    assert [len(b) for b in batches] == [2, 2, 2]
    assert make(data, clients=3, partition="virtual").size(0) == 100
    assert make(data, clients=3, partition="virtual", client_samples=7).size(0) == 7
