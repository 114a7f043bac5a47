import random

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fedgm.client.weights import Snapshot
from fedgm.federated.aggregate import CohortMean, Mean, shares

NOTHING = torch.empty(0)
NO_COUNTERS = torch.empty(0, dtype=torch.int64)


def model(x, buffers=NOTHING, counters=NO_COUNTERS):
    return Snapshot(*map(torch.as_tensor, (x, buffers, counters)))


def mean_of(deltas, weights=None, parts=None) -> torch.Tensor:
    """The mean of bare deltas, without buffers."""
    cohort = CohortMean(model(deltas[0]), len(deltas))
    ones = [1.0] * len(deltas)
    for delta, weight, part in zip(deltas, weights or ones, parts or ones, strict=True):
        cohort.add(delta, model(delta), weight, part)
    return cohort.mean().delta


def test_mean_by_hand():
    deltas = [torch.tensor([1.0, -2.0]), torch.tensor([4.0, 0.5]), torch.tensor([1.0, 3.0])]
    mean = mean_of(deltas)
    assert mean.tolist() == [2.0, 0.5]
    assert mean.dtype == torch.float32


def test_shares_by_hand():
    assert shares([10, 30, 40], "uniform") == [1.0, 1.0, 1.0]
    assert shares([10, 30, 40], "samples") == pytest.approx([0.375, 1.125, 1.5])  # 3 * n_i / 80
    assert sum(shares([7, 11, 13], "samples")) == pytest.approx(3)


def test_mean_by_samples_by_hand():
    # (10*1 + 30*2 + 40*4) / 80 = 2.875
    deltas = [torch.tensor([1.0]), torch.tensor([2.0]), torch.tensor([4.0])]
    assert mean_of(deltas, parts=shares([10, 30, 40], "samples")).item() == 2.875


def test_batchnorm_buffers_of_two_clients_by_hand():
    # uniform: mean (1+3)/2 = 2, variance (.5+1.5)/2 = 1; counters (10+15)//2 = 12
    like = model([0.0], [0.0, 0.0], [0])
    cohort = CohortMean(like, 2)
    cohort.add(torch.tensor([1.0]), model([0.0], [1.0, 0.5], [10]), weight=1.0, share=1.0)
    cohort.add(torch.tensor([5.0]), model([0.0], [3.0, 1.5], [15]), weight=1.0, share=1.0)
    mean = cohort.mean()
    assert isinstance(mean, Mean)
    assert (mean.delta.tolist(), mean.buffers.tolist(), mean.counters.tolist()) == ([3.0], [2.0, 1.0], [12])
    assert mean.counters.dtype == torch.int64


def test_a_share_weighs_buffers_too_and_counters_never():
    # 1 and 3 samples: shares .5, 1.5; buffers (.5*2 + 1.5*4)/2 = 3.5; counters (4+8)/2 = 6
    like = model([0.0], [0.0], [0])
    cohort = CohortMean(like, 2)
    for delta, buffer, counter, share in ((2.0, 2.0, 4, 0.5), (4.0, 4.0, 8, 1.5)):
        cohort.add(torch.tensor([delta]), model([0.0], [buffer], [counter]), 1.0, share)
    mean = cohort.mean()
    assert (mean.delta.item(), mean.buffers.item(), mean.counters.item()) == (3.5, 3.5, 6)


def test_a_weight_scales_the_delta_and_never_the_buffers():
    like = model([0.0], [0.0], [0])
    cohort = CohortMean(like, 2)
    cohort.add(torch.tensor([3.0]), model([0.0], [10.0], [2]), weight=0.5, share=1.0)
    cohort.add(torch.tensor([1.0]), model([0.0], [20.0], [2]), weight=2.0, share=1.0)
    mean = cohort.mean()
    assert (mean.delta.item(), mean.buffers.item(), mean.counters.item()) == (1.75, 15.0, 2)


def test_what_is_added_is_left_untouched():
    delta = torch.tensor([1.0, 2.0])
    mean_of([delta, delta], weights=[3.0, 0.1])
    assert delta.tolist() == [1.0, 2.0]


def test_a_plain_float32_sum_would_depend_on_the_order():
    """The property below is not for free: float32 and even float64 of unrounded products lose it."""
    values = [torch.tensor([v], dtype=torch.float32) for v in (1.0, 2.0**-24, 2.0**-24)]
    forwards = values[0] + values[1] + values[2]
    backwards = values[2] + values[1] + values[0]
    assert not torch.equal(forwards, backwards)
    assert torch.equal(mean_of(values), mean_of(values[::-1]))


# Updates of one coordinate lie within a few orders of magnitude of each other.
number = st.floats(0.0009765625, 1024, width=32).flatmap(lambda v: st.sampled_from([v, -v]))


@st.composite
def cohorts(draw):
    clients, size = draw(st.integers(2, 10)), draw(st.integers(1, 4))
    rows = [draw(st.lists(number, min_size=size, max_size=size)) for _ in range(clients)]
    sizes = draw(st.lists(st.integers(1, 500), min_size=clients, max_size=clients))
    return [torch.tensor(row, dtype=torch.float32) for row in rows], shares(sizes, "samples")


@given(cohorts(), st.randoms(use_true_random=False))
def test_the_order_of_adding_does_not_matter_bit_for_bit(cohort, shuffler: random.Random):
    deltas, parts = cohort
    order = list(range(len(deltas)))
    shuffler.shuffle(order)
    straight = mean_of(deltas, parts=parts)
    shuffled = mean_of([deltas[i] for i in order], parts=[parts[i] for i in order])
    assert torch.equal(straight, shuffled)


@given(cohorts(), st.integers(1, 9))
def test_nor_does_the_way_clients_are_spread_over_two_workers(cohort, cut):
    deltas, parts = cohort
    like = model(deltas[0])
    whole, left, right = (CohortMean(like, len(deltas)) for _ in range(3))
    for i, (delta, part) in enumerate(zip(deltas, parts, strict=True)):
        for target in (whole, left if i < cut else right):
            target.add(delta, model(delta), 1.0, part)
    left.total += right.total
    assert torch.equal(whole.mean().delta, left.mean().delta)


def test_the_mean_is_exact_where_float32_is_not():
    # 16777216 + 1 - 16777216 is 0 in float32
    values = [torch.tensor([v], dtype=torch.float32) for v in (16777216.0, 1.0, -16777216.0)]
    assert mean_of(values).item() == pytest.approx(1 / 3, rel=1e-6)


def test_double_precision_stays_double():
    value = torch.tensor([1 / 3], dtype=torch.float64)
    cohort = CohortMean(model(value, value, [1]), 1)
    cohort.add(value, model(value, value, [1]), 1.0, 1.0)
    assert torch.equal(cohort.mean().delta, value)


def test_buffers_have_their_own_type():
    third = torch.tensor([1 / 3], dtype=torch.float64)
    cohort = CohortMean(model([0.0], third), 2)
    for _ in range(2):
        cohort.add(torch.tensor([1.0]), model([0.0], third), 1.0, 1.0)
    assert torch.equal(cohort.mean().buffers, third)
    assert cohort.mean().delta.dtype == torch.float32


@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=9))
def test_the_mean_of_counters_is_exact_and_rounded_towards_zero(values):
    cohort = CohortMean(model([0.0], counters=[0]), len(values))
    for value in values:
        cohort.add(torch.tensor([0.0]), model([0.0], counters=[value]), 1.0, 1.0)
    total = sum(values)
    assert cohort.mean().counters.item() == (abs(total) // len(values)) * (1 if total >= 0 else -1)
