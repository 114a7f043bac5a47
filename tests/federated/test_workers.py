from itertools import product
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedgm.federated.workers import share_out
from fedgm.running.trainer import worker_count


def loads(costs, shares):
    return [sum(costs[i] for i in share if i is not None) for share in shares]


def test_tasks_are_shared_out_by_hand():
    # 7 + 3 and 5 + 4 + 1
    assert share_out([3, 5, 7, 1, 4], 2) == [[2, 0, None], [1, 4, 3]]


def test_shares_are_padded_to_equal_length():
    assert share_out([9, 1, 1], 2) == [[0, None], [1, 2]]
    assert share_out([5], 3) == [[0], [None], [None]]
    assert share_out([2, 2, 2], 1) == [[0, 1, 2]]


def test_equal_costs_keep_the_order_of_the_tasks():
    assert share_out([4, 4, 4, 4], 2) == [[0, 1], [2, 3]]
    assert share_out([4] * 10, 2) == [[0, 2, 4, 6, 8], [1, 3, 5, 7, 9]]  # too many ways to try them all


@given(st.lists(st.integers(1, 50), min_size=1, max_size=40), st.integers(1, 8))
def test_every_task_exactly_once_in_equally_many_slots(costs, workers):
    shares = share_out(costs, workers)
    assert len(shares) == workers
    assert len({len(share) for share in shares}) == 1
    assert sorted(i for share in shares for i in share if i is not None) == list(range(len(costs)))
    for share in shares:  # padding comes last: hooks fire for real clients first
        assert None not in share[: sum(i is not None for i in share)]


@given(st.lists(st.integers(1, 50), min_size=1, max_size=7), st.integers(1, 3))
def test_loads_keep_grahams_bound(costs, workers):
    """Graham 1969: largest first needs at most 4/3 - 1/(3m) times the optimum, found here by trying all."""
    optimum = min(
        max(sum(c for c, w in zip(costs, chosen, strict=True) if w == worker) for worker in range(workers))
        for chosen in product(range(workers), repeat=len(costs))
    )
    assert max(loads(costs, share_out(costs, workers))) <= (4 / 3 - 1 / (3 * workers)) * optimum + 1e-9


def test_a_small_cohort_is_shared_out_in_the_best_way():
    # Graham's worst case for 2 workers: 3 3 2 2 2 has optimum 6, largest first gives 7 = (4/3 - 1/6) * 6
    assert max(loads([3, 3, 2, 2, 2], share_out([3, 3, 2, 2, 2], 2))) == 6
    many = [3, 3, 2, 2, 2, 0, 0, 0, 0]
    assert max(loads(many, share_out(many, 2))) == 7  # too many ways to try them all


def asked(workers, per_round=5, accelerator="cpu"):
    return SimpleNamespace(
        trainer=SimpleNamespace(workers=workers, accelerator=accelerator),
        clients=SimpleNamespace(per_round=per_round),
    )


@pytest.mark.parametrize(
    ("config", "alone", "cores", "expected"),
    [
        (asked("auto"), True, 4, 4),
        (asked("auto"), True, 16, 5),  # never more than clients
        (asked("auto"), False, 4, 1),  # runs stand side by side
        (asked("auto", accelerator="gpu"), True, 4, 1),
        (asked(3), True, 2, 3),  # a number is taken as it is ...
        (asked(3), False, 2, 3),
        (asked(9), True, 2, 5),  # ... but no worker is idle
        (asked(2, per_round=1), True, 2, 1),
    ],
)
def test_worker_count(monkeypatch, config, alone, cores, expected):
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(cores)))
    assert worker_count(config, alone) == expected
