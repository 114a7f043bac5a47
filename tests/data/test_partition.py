import math
import tracemalloc

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from fedgm.data.partition import Partition, VirtualPartition, dirichlet, label_counts
from fedgm.errors import ConfigError

TEN_EACH = np.repeat(np.arange(10), 100)
alphas = st.one_of(st.floats(0.01, 100), st.just(0.0), st.just(math.inf))


def split(labels, clients, alpha, seed):
    try:
        return dirichlet(labels, clients, alpha, seed, min_samples=1)
    except ConfigError:
        return None


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.integers(0, 4), min_size=1, max_size=300), st.integers(1, 12), alphas, st.integers(0, 2**40)
)
def test_every_sample_belongs_to_exactly_one_client(labels, clients, alpha, seed):
    found = split(np.array(labels), clients, alpha, seed)
    assume(found is not None)
    everything = np.concatenate([found.indices(client) for client in range(found.count)])
    assert found.count == clients
    assert sorted(everything) == list(range(len(labels)))
    assert [found.size(client) for client in range(clients)] == found.sizes.tolist()
    assert found.sizes.min() >= 1


@settings(deadline=None, max_examples=30)
@given(alphas, st.integers(0, 1000))
def test_the_seed_decides_the_split_and_another_seed_another(alpha, seed):
    first, again, other = (split(TEN_EACH, 10, alpha, s) for s in (seed, seed, seed + 1))
    assume(first is not None and other is not None)
    assert (first.order == again.order).all()
    assert (first.offsets == again.offsets).all()
    assert (first.order != other.order).any()


def test_csr_by_hand():
    partition = Partition(np.array([3, 0, 2, 1, 4]), np.array([0, 2, 2, 5]))
    assert (partition.count, [partition.size(c) for c in range(3)]) == (3, [2, 0, 3])
    assert partition.indices(2).tolist() == [2, 1, 4]
    assert np.shares_memory(partition.indices(2), partition.order)
    labels = np.array([0, 1, 1, 0, 2])
    assert label_counts(partition, labels, 3, 3).tolist() == [[2, 0, 0], [0, 0, 0], [0, 2, 1]]
    with pytest.raises(IndexError, match=r"client 3 does not exist: clients are 0\.\.2"):
        partition.indices(3)
    with pytest.raises(IndexError, match="client -1"):
        partition.size(-1)


def test_a_class_is_cut_at_the_cumulative_dirichlet_shares():
    """The law against a slow reference with the same draws, one class at a time."""
    from fedgm.draws import generator

    rng = generator(3, "partition", round=0)
    expected = {client: [] for client in range(4)}
    labels = np.tile([0, 1], 500)
    for label in (0, 1):
        members = rng.permutation(np.flatnonzero(labels == label))
        ends = [int(share * 500) for share in np.cumsum(rng.dirichlet([2.0] * 4))[:-1]]
        for client, (start, end) in enumerate(zip([0, *ends], [*ends, 500], strict=True)):
            expected[client] += members[start:end].tolist()
    found = dirichlet(labels, 4, alpha=2.0, seed=3, min_samples=1)
    assert [sorted(found.indices(c)) for c in range(4)] == [sorted(expected[c]) for c in range(4)]


def test_smaller_alpha_is_more_skewed():
    def dominant(alpha):
        split = dirichlet(np.repeat(np.arange(10), 1000), 20, alpha, 0, 1)
        counts = label_counts(split, np.repeat(np.arange(10), 1000), 10, 20)
        return float((counts.max(1) / counts.sum(1)).mean())

    shares = [dominant(alpha) for alpha in (0.0, 0.1, 1.0, math.inf)]
    assert shares == sorted(shares, reverse=True)
    assert shares[0] == 1.0
    assert shares[1] > 0.4
    assert shares[-1] < 0.2


def test_iid_sizes_differ_by_at_most_one():
    sizes = dirichlet(TEN_EACH, 7, math.inf, 0, 1).sizes
    assert sorted(sizes.tolist()) == [142, 143, 143, 143, 143, 143, 143]


def test_alpha_zero_gives_one_class_per_client_by_class_size():
    labels = np.repeat([0, 1, 2], [600, 300, 100])
    found = dirichlet(labels, 10, 0.0, 0, 1)
    counts = label_counts(found, labels, 3, 10)
    assert ((counts > 0).sum(1) == 1).all()
    assert (counts > 0).sum(0).tolist() == [6, 3, 1]
    assert found.sizes.tolist() == [100] * 10


def test_alpha_zero_needs_a_client_per_class():
    with pytest.raises(ConfigError, match=r"data\.alpha=0.*at least 10 clients.*clients\.count=10"):
        dirichlet(TEN_EACH, 9, 0.0, 0, 1)


def test_min_samples_is_kept_or_refused_with_the_best_reached():
    assert dirichlet(TEN_EACH, 10, 0.5, 0, min_samples=25).sizes.min() >= 25
    labels = np.repeat(np.arange(10), 1000)  # design: 10,000 images and alpha .1 never meet 10 at 100 clients
    with pytest.raises(ConfigError) as caught:
        dirichlet(labels, 100, 0.1, 0, min_samples=10)
    assert caught.value.key == "data.min_samples"
    assert "100 draws gave the smallest client at most" in str(caught.value)
    assert "data.alpha" in caught.value.hint
    with pytest.raises(ConfigError, match=r"20 samples give 30 clients 0 each.*data\.partition=virtual"):
        dirichlet(np.zeros(20, int), 30, 0.5, 0, 1)


@pytest.mark.parametrize("alpha", [-0.1, math.nan, -math.inf])
def test_a_wrong_alpha_is_named(alpha):
    for make in (
        lambda: dirichlet(TEN_EACH, 4, alpha, 0, 1),
        lambda: VirtualPartition(TEN_EACH, 4, alpha, 0, 5),
    ):
        with pytest.raises(ConfigError, match=r"data\.alpha=.*inf for IID.*data\.alpha=0\.5"):
            make()


@settings(deadline=None, max_examples=60)
@given(st.one_of(alphas, st.sampled_from([1e-300, 1e-9])), st.integers(1, 100), st.integers(0, 10**6 - 1))
def test_a_virtual_client_is_the_same_each_time_and_never_repeats_a_sample(alpha, samples, client):
    one, two = (VirtualPartition(TEN_EACH, 10**6, alpha, 5, samples) for _ in range(2))
    own = one.indices(client)
    assert len(own) == len(set(own.tolist())) == one.size(client) == samples
    assert own.tolist() == two.indices(client).tolist()
    assert own.min() >= 0
    assert own.max() < len(TEN_EACH)
    if alpha == 0:
        assert len(set(TEN_EACH[own])) == 1


def test_a_virtual_client_repeats_samples_only_as_often_as_needed():
    own = VirtualPartition(np.repeat([0, 1], 10), 4, 0.0, 0, 25).indices(2)
    assert sorted(np.unique(own, return_counts=True)[1]) == [2] * 5 + [3] * 5


def test_virtual_mixes_have_the_dirichlet_moments():
    """Shares have mean prior and variance p(1-p)/(1 + alpha C), plus multinomial noise p(1-p)/samples-ish."""
    labels = np.repeat([0, 1, 2, 3], [4000, 2000, 1000, 1000])
    virtual = VirtualPartition(labels, 4000, 0.5, 1, 50)
    shares = label_counts(virtual, labels, 4, 4000) / 50
    prior = np.array([0.5, 0.25, 0.125, 0.125])
    rho = 1 / (1 + 0.5 * 4)
    variance = prior * (1 - prior) * (rho + (1 - rho) / 50)
    assert shares.mean(0) == pytest.approx(prior, abs=0.02)
    assert shares.var(0) == pytest.approx(variance, rel=0.1)


def test_neighbouring_virtual_clients_differ():
    virtual = VirtualPartition(TEN_EACH, 100, 0.5, 0, 20)
    assert len({tuple(virtual.indices(client)) for client in range(100)}) == 100


def test_a_million_virtual_clients_cost_no_more_than_a_hundred():
    labels = np.tile(np.arange(10), 5000)

    def memory(clients):
        """The most bytes that were held at once, from the split to a cohort of 100."""
        tracemalloc.start()
        virtual = VirtualPartition(labels, clients, 0.5, 0, 50)
        cohort = [virtual.indices(client) for client in range(0, clients, clients // 100)]
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert len(cohort) == 100
        return peak

    memory(100)  # what numpy imports at its first draw
    assert memory(1_000_000) < 1.05 * memory(100)
