import time

import numpy as np
import pytest
import torch

from fedgm.data import synthetic
from fedgm.data.dataset import channel_statistics, pool, subset
from fedgm.data.federation import federation
from fedgm.errors import ConfigError


def test_shapes_balance_and_statistics():
    data = synthetic.load(train=105, test=30, resolution=12, classes=7, seed=1)
    assert data.train_images.shape == (105, 12, 12, 3)
    assert data.train_images.dtype == data.test_images.dtype == np.uint8
    assert np.bincount(data.train_labels).tolist() == [15] * 7
    assert data.train_labels.dtype == np.int64
    assert len(data.classes) == 7
    assert data.mean == pytest.approx(data.train_images.mean((0, 1, 2)) / 255)
    assert data.std == pytest.approx(data.train_images.std((0, 1, 2)) / 255)


def test_the_seed_decides_everything():
    one, two, other = (synthetic.load(50, 20, 8, 5, seed) for seed in (3, 3, 4))
    assert (one.train_images == two.train_images).all()
    assert (one.test_labels == two.test_labels).all()
    assert (one.train_images != other.train_images).any()
    assert (one.train_images[:20] != one.test_images).any()


def test_ten_thousand_images_take_less_than_a_second():
    started = time.process_time()
    synthetic.load(10_000, 1_000, 16, 10, 0)
    assert time.process_time() - started < 1.5


@pytest.mark.parametrize(
    ("arguments", "key"),
    [
        ({"classes": 1}, "data.source.classes"),
        ({"resolution": 4}, "data.resolution"),
        ({"train": 3}, "data.train_samples"),
    ],
)
def test_wrong_values_are_named(arguments, key):
    with pytest.raises(ConfigError) as caught:
        synthetic.load(**{"train": 100, "test": 100, "resolution": 16, "classes": 10, "seed": 0, **arguments})
    assert caught.value.key == key


@pytest.fixture
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def test_a_small_cnn_learns_what_a_linear_model_cannot(one_thread):
    everyone = federation(synthetic.load(3000, 1000, 16, 10, 0), clients=1, alpha=np.inf, seed=0)
    torch.manual_seed(0)
    linear = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(768, 10))
    cnn = torch.nn.Sequential(
        torch.nn.Conv2d(3, 16, 5, padding=2),
        torch.nn.ReLU(),
        torch.nn.MaxPool2d(2),
        torch.nn.Conv2d(16, 32, 3, padding=1),
        torch.nn.ReLU(),
        torch.nn.MaxPool2d(2),
        torch.nn.Flatten(),
        torch.nn.Linear(512, 10),
    )
    accuracies = [_train(model, everyone, rate) for model, rate in ((linear, 0.002), (cnn, 0.02))]
    assert accuracies[0] < 0.4
    assert accuracies[1] > 0.6


def _train(model, everyone, rate):
    optimizer = torch.optim.SGD(model.parameters(), lr=rate, momentum=0.9)
    for images, labels in everyone.client_steps(0, 50, everyone.steps_of(0, 50, 3), seed=0, round=0):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(images), labels).backward()
        optimizer.step()
    right = sum(
        int((model(images).argmax(1) == labels).sum())
        for images, labels in everyone.images.evaluation("test", 500)
    )
    return right / 1000


def test_pool_averages_blocks_by_hand():
    data = synthetic.load(20, 20, 8, 10, 0)
    block = np.zeros((20, 4, 4, 3), np.uint8)
    block[0, :2, :2, 0] = [[1, 2], [3, 4]]  # mean 2.5 rounds up to 3
    block[0, 2:, 2:, 1] = 255
    pooled = pool(data._replace(train_images=block, test_images=block), 2)
    assert pooled.train_images[0, :, :, 0].tolist() == [[3, 0], [0, 0]]
    assert pooled.train_images[0, :, :, 1].tolist() == [[0, 0], [0, 255]]
    assert pool(data, 8) is data
    with pytest.raises(ConfigError, match=r"data\.resolution=3.*1, 2, 4, 8"):
        pool(data, 3)


def test_subset_keeps_class_shares_and_pairs():
    data = synthetic.load(1000, 500, 8, 5, 0)
    skewed = data._replace(train_labels=np.repeat([0, 1, 2], [600, 300, 100]))
    some = subset(skewed, 100, None, seed=7)
    assert np.bincount(some.train_labels).tolist() == [60, 30, 10]
    assert np.array_equal(some.test_images, data.test_images)
    assert len(some.test_labels) == 500
    where = {
        image.tobytes(): label for image, label in zip(skewed.train_images, skewed.train_labels, strict=True)
    }
    assert all(where[i.tobytes()] == n for i, n in zip(some.train_images, some.train_labels, strict=True))
    assert (subset(skewed, 100, 50, 7).train_images == some.train_images).all()
    assert (subset(skewed, 100, 50, 8).train_images != some.train_images).any()
    with pytest.raises(ConfigError, match=r"data\.train_samples=1001.*1\.\.1000"):
        subset(data, 1001, None, 0)


def test_a_constant_channel_does_not_divide_by_zero():
    assert channel_statistics(np.full((2, 2, 2, 1), 51, np.uint8)) == ((pytest.approx(0.2),), (1 / 255,))
