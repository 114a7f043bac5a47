"""Data sharing: one balanced set that every client has besides its own samples."""

import numpy as np
import pytest

from fedgm.data.sharing import common_samples
from fedgm.errors import ConfigError
from fedgm.running.parts import build_parts, load_clients
from tests.federated.federated_run import configured, fit

WORDS = ["profile=tiny", "data.train_samples=1050", "data.alpha=0", "clients.count=10"]


def test_the_common_set_is_balanced_and_nobodys_own():
    clients = load_clients(configured("data.shared=0.05", base=WORDS))
    common = clients.partition.common
    assert len(common) == 50  # 5 % of the other 1,000
    assert np.bincount(clients.images.train_labels.numpy()[common]).tolist() == [5] * 10
    owned = [clients.partition.indices(i) for i in range(10)]
    for indices in owned:
        assert set(common) <= set(indices.tolist())
    alone = [set(indices.tolist()) - set(common.tolist()) for indices in owned]
    assert sum(map(len, alone)) == len(set().union(*alone)) == 1000
    assert [clients.size(i) for i in range(10)] == [len(indices) for indices in owned]
    assert all(len(set(clients.labels(i).tolist())) == 10 for i in range(10))  # one class each without it


def test_without_it_the_split_is_what_it_was():
    plain, off = (load_clients(configured(*word, base=WORDS)) for word in ([], ["data.shared=0"]))
    assert all(np.array_equal(plain.partition.indices(i), off.partition.indices(i)) for i in range(10))


@pytest.mark.parametrize("partition", ["dirichlet", "shards", "virtual"])
def test_it_goes_with_every_split_and_trains(partition):
    run = configured("data.shared=0.2", f"data.partition={partition}", "rounds=1", "data.min_samples=1")
    assert fit(run).loop.row["cohort/clients"] == 3


def test_sizes_that_cannot_be_are_refused():
    with pytest.raises(ConfigError, match=r"data\.shared=-0\.1"):
        configured("data.shared=-0.1")
    with pytest.raises(ConfigError, match=r"data\.shared=0\.001: that is 0 of each of the 10 classes"):
        load_clients(configured("data.shared=0.001", base=WORDS))
    with pytest.raises(ConfigError, match="of which the smallest has 2"):
        common_samples(np.array([0] * 50 + [1, 1]), 0.2, seed=0)
    assert build_parts(configured("data.shared=0.05", base=WORDS))
