"""Shards, classes, sizes and the capped Dirichlet split: what each promises, and against its own recipe."""

import math

import numpy as np
import pytest
from click.testing import CliRunner

from fedgm import commands as cli
from fedgm import config
from fedgm.config.options import options
from fedgm.data.partition import label_counts
from fedgm.data.skew import capped, classes, quantity, shards
from fedgm.draws import generator
from fedgm.errors import ConfigError
from fedgm.running.parts import load_clients

LABELS = np.random.default_rng(0).permutation(np.repeat(np.arange(10), 200))
MAKE = {
    "shards": lambda labels, n, seed: shards(labels, n, 2, seed, 1),
    "classes": lambda labels, n, seed: classes(labels, n, 3, seed, 1),
    "quantity": lambda labels, n, seed: quantity(labels, n, 5.0, seed, 1),
    "capped": lambda labels, n, seed: capped(labels, n, 0.5, seed, 1),
}


@pytest.mark.parametrize("name", MAKE)
def test_every_sample_goes_to_one_client_and_the_seed_decides(name):
    one, two, other = (MAKE[name](LABELS, 20, seed) for seed in (3, 3, 4))
    assert sorted(one.order.tolist()) == list(range(len(LABELS)))
    assert (one.count, one.sizes.sum()) == (20, len(LABELS))
    assert np.array_equal(one.order, two.order)
    assert np.array_equal(one.offsets, two.offsets)
    assert not np.array_equal(one.order, other.order)


def test_shards_are_equal_pieces_of_the_data_sorted_by_label():
    split = shards(LABELS, 20, 2, 0, 1)
    assert split.sizes.tolist() == [100] * 20  # 40 pieces of 50, four to a class
    counts = label_counts(split, LABELS, 10, 20)
    assert set(np.unique(counts)) == {0, 50, 100}
    assert ((counts > 0).sum(1) <= 2).all()
    assert (counts == 50).any()
    uneven = shards(LABELS[:1995], 7, 3, 0, 1)  # 21 pieces of 95: a piece may straddle two classes
    assert uneven.sizes.tolist() == [285] * 7
    assert (label_counts(uneven, LABELS[:1995], 10, 7) > 0).sum(1).max() <= 6


@pytest.mark.parametrize(("clients", "k"), [(20, 3), (10, 1), (5, 2), (4, 10), (33, 2)])
def test_classes_are_k_each_and_every_class_is_held_alike_often(clients, k):
    counts = label_counts(classes(LABELS, clients, k, 0, 1), LABELS, 10, clients)
    assert ((counts > 0).sum(1) == k).all()
    held = (counts > 0).sum(0)
    assert held.max() - held.min() <= 1
    for column in counts.T:  # a class is dealt out evenly
        assert np.ptp(column[column > 0]) <= 1


def test_quantity_has_sizes_from_a_dirichlet_and_labels_alike():
    split = quantity(LABELS, 10, 2.0, 1, 1)
    rng = generator(1, "partition-quantity", round=0)
    ends = (np.cumsum(rng.dirichlet([2.0] * 10))[:-1] * 2000).astype(int)
    assert split.sizes.tolist() == np.diff([0, *ends, 2000]).tolist()
    counts = label_counts(split, LABELS, 10, 10)
    shares = counts / counts.sum(1, keepdims=True)
    assert np.abs(shares[split.sizes > 100] - 0.1).max() < 0.1
    flat = quantity(LABELS, 10, 1e6, 1, 1).sizes
    assert flat.max() - flat.min() < 20 < split.sizes.max() - split.sizes.min()


def test_capped_follows_niid_bench_class_by_class():
    rng, n, N = generator(2, "partition-capped", round=0), 8, len(LABELS)
    own = [[] for _ in range(n)]
    for label in range(10):
        members = rng.permutation(np.flatnonzero(label == LABELS))
        p = rng.dirichlet([0.5] * n)
        p = np.array([share * (len(mine) < N / n) for share, mine in zip(p, own, strict=True)])
        cuts = (np.cumsum(p / p.sum()) * len(members)).astype(int)[:-1]
        own = [[*mine, *piece] for mine, piece in zip(own, np.split(members, cuts), strict=True)]
    split = capped(LABELS, n, 0.5, 2, 1)
    assert [sorted(split.indices(c).tolist()) for c in range(n)] == [sorted(map(int, mine)) for mine in own]


def test_the_cap_evens_out_sizes():
    from fedgm.data.partition import dirichlet

    with_cap, without = (
        np.mean([make(LABELS, 20, 0.3, seed, 1).sizes.std() for seed in range(10)])
        for make in (capped, dirichlet)
    )
    assert with_cap < 0.8 * without


def test_min_samples_is_kept_or_refused_with_the_best_reached():
    assert capped(LABELS, 20, 0.3, 0, min_samples=30).sizes.min() >= 30
    with pytest.raises(
        ConfigError, match=r"data\.min_samples=10.*partition=quantity.*100 draws.*larger data\.alpha"
    ):
        quantity(LABELS, 100, 0.1, 0, 10)
    rare = np.repeat([0, 1], [190, 10])  # five clients share the ten of class 1
    with pytest.raises(ConfigError, match=r"data\.min_samples=5.*of 1 draw has 2.*Try data\.min_samples=2"):
        classes(rare, 10, 1, 0, min_samples=5)


@pytest.mark.parametrize(
    ("make", "key"),
    [
        (lambda: shards(LABELS, 20, 0, 0, 1), "data.shards"),
        (lambda: shards(LABELS, 20, 101, 0, 1), "data.shards"),
        (lambda: classes(LABELS, 20, 0, 0, 1), "data.classes_per_client"),
        (lambda: classes(LABELS, 20, 11, 0, 1), "data.classes_per_client"),
        (lambda: classes(LABELS, 4, 2, 0, 1), "data.classes_per_client"),  # 8 places for 10 classes
        (lambda: quantity(LABELS, 20, 0.0, 0, 1), "data.alpha"),
        (lambda: capped(LABELS, 20, math.inf, 0, 1), "data.alpha"),
        (lambda: capped(LABELS, 3000, 0.5, 0, 1), "data.min_samples"),
    ],
)
def test_what_cannot_be_split_is_refused_by_key(make, key):
    with pytest.raises(ConfigError) as caught:
        make()
    assert caught.value.key == key


# As a user types it ----------------------------------------------------------------------------------------

TINY = ["profile=tiny", "data.train_samples=300", "clients.count=12", "data.alpha=5"]


@pytest.mark.parametrize("name", options("data/partition"))
def test_show_draws_the_split_that_the_run_trains_on(name, tmp_path, monkeypatch):
    from fedgm.figures import partition as picture

    drawn = {}
    real = picture.draw_partition

    def watched(partition, labels, names, path, title):
        drawn.update(partition=partition, title=title)
        return real(partition, labels, names, path, title)

    monkeypatch.setattr(picture, "draw_partition", watched)
    out = tmp_path / "split.png"
    words = [*TINY, f"data.partition={name}", "seed=3"]
    result = CliRunner().invoke(cli.main, ["data", "--show", *words, "--out", str(out)])
    assert result.exit_code == 0, result.output
    assert out.read_bytes()[:4] == b"\x89PNG"
    clients = load_clients(config.validate(config.compose(words)))
    assert drawn["partition"].count == clients.count == 12
    for client in range(12):
        assert np.array_equal(drawn["partition"].indices(client), clients.partition.indices(client))
    assert drawn["title"].startswith("synthetic over 12 clients")
    assert drawn["title"].endswith("seed 3")


def test_show_says_what_is_wrong_in_a_line(tmp_path):
    for words, message in [
        (["data.partition=stars"], "data.partition=stars: expected"),
        (["data.alpha=-1"], "data.alpha=-1.0: expected"),
        (["data=moon"], "one of chitchat, cifar10"),
    ]:
        result = CliRunner().invoke(
            cli.main, ["data", "--show", *TINY, *words, "--out", str(tmp_path / "x.png")]
        )
        assert result.exit_code == 2
        assert message in result.output
    assert list(tmp_path.iterdir()) == []
