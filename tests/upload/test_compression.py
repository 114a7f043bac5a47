"""Compressed updates against recursions written here, their bytes by hand, and the laws they must obey."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fedgm.draws import generator
from fedgm.errors import ConfigError
from fedgm.upload.compression import (
    Qsgd,
    entries,
    level_bits,
    plain_bytes,
    qsgd_bytes,
    qsparse,
    qsparse_bytes,
    quantize,
    require_levels,
    top_k,
    top_k_bytes,
    variance_factor,
)
from fedgm.upload.message import with_feedback

NUMBERS = st.lists(st.floats(-1e6, 1e6, width=32), min_size=1, max_size=40)


def vector(numbers):
    return torch.tensor(numbers, dtype=torch.float32)


def random_deltas(rounds, n):
    return torch.from_numpy(np.random.default_rng(5).standard_normal((rounds, n))).float()


def fed_back(compress, delta, residual):
    sent = with_feedback(compress, delta, {} if residual is None else {"residual": residual})
    return sent.delta, sent.kept["residual"], sent.bytes


def top_k_with_feedback(delta, residual, k):
    return fed_back(lambda x: top_k(x, k), delta, residual)


# Top-k ----------------------------------------------------------------------------------------------------


def test_top_k_by_hand():
    sent, size = top_k(vector([0.5, -3.0, 1.0, 2.0, 0.0]), 2)
    assert sent.tolist() == [0.0, -3.0, 0.0, 2.0, 0.0]
    assert size == 9  # 2 x (32 + 3) bits = 70 bits, in whole bytes


@given(NUMBERS, st.integers(1, 40))
def test_what_is_sent_and_what_is_kept_are_the_delta_exactly(numbers, k):
    delta = vector(numbers)
    sent, residual, _ = top_k_with_feedback(delta, None, k)
    assert torch.equal(sent + residual, delta)
    assert torch.equal(sent * residual, torch.zeros_like(delta))  # no entry is in both
    assert int((sent != 0).sum()) <= k


@given(NUMBERS, st.integers(1, 40))
def test_top_k_contracts(numbers, k):
    x = vector(numbers).double()
    k = min(k, len(x))
    left = (x - top_k(x, k)[0]).square().sum()
    assert left <= (1 - k / len(x)) * x.square().sum() * (1 + 1e-12)


def test_error_feedback_against_a_recursion_of_plain_lists():
    rounds, n, k = 12, 9, 2
    deltas = random_deltas(rounds, n)
    residual, kept = None, [np.float32(0)] * n
    for delta in deltas:
        sent, residual, _ = top_k_with_feedback(delta, residual, k)
        owed = [np.float32(d) + e for d, e in zip(delta.tolist(), kept, strict=True)]
        order = sorted(range(n), key=lambda i: -abs(owed[i]))[:k]
        kept = [np.float32(0) if i in order else owed[i] for i in range(n)]
        assert sent.tolist() == [float(owed[i]) if i in order else 0.0 for i in range(n)]
        assert residual.tolist() == [float(e) for e in kept]


def test_with_feedback_everything_arrives_in_the_end():
    deltas = random_deltas(30, 50).double()
    residual, arrived = None, torch.zeros(50, dtype=torch.float64)
    for delta in deltas:
        sent, residual, _ = top_k_with_feedback(delta, residual, 5)
        arrived += sent
    assert torch.allclose(arrived + residual, deltas.sum(0), rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("n", "k", "size"),
    [
        (1000, 10, 53),  # 10 x (32 + 10) = 420 bits
        (1024, 10, 53),  # 1,024 places need 10 bits
        (1025, 10, 54),  # one more place needs 11: 430 bits
        (803_968, 8040, 52_260),  # 8,040 x (32 + 20) bits
        (1000, 900, 4000),  # indices would cost more than sending all
        (1, 1, 4),
    ],
)
def test_bytes_of_top_k_by_hand(n, k, size):
    assert top_k_bytes(n, k) == size


def test_all_entries_are_a_plain_delta():
    x = vector([1.0, -2.0])
    sent, size = top_k(x, 5)
    assert torch.equal(sent, x)
    assert sent is not x
    assert size == plain_bytes(2) == 8


@pytest.mark.parametrize(("share", "n", "k"), [(0.1, 30, 3), (0.01, 50, 1), (1.0, 7, 7), (0.5, 3, 2)])
def test_share_of_entries(share, n, k):
    assert entries(share, n) == k


@pytest.mark.parametrize("share", [0.0, -0.1, 1.5])
def test_a_share_outside_its_range_is_refused(share):
    with pytest.raises(ConfigError, match=r"upload\.share"):
        entries(share, 10)


def test_a_delta_that_is_not_finite_stays_so():
    for bad in (math.nan, math.inf):
        x = vector([1.0, bad, 2.0])
        assert not top_k(x, 1)[0].isfinite().all()
        assert not quantize(x, 4, None, generator(0, "t"))[0].isfinite().all()


# QSGD -----------------------------------------------------------------------------------------------------


def by_entry(x, s, bucket, rng):
    """Alistarh 2017, Section 3.1, an entry at a time in float64."""
    n = len(x)
    draws = rng.random(n)
    out = []
    for i, value in enumerate(x):
        first = i // (bucket or n) * (bucket or n)
        norm = math.sqrt(sum(v * v for v in x[first : first + (bucket or n)]))
        if norm == 0:
            out.append(0.0)
            continue
        place = s * abs(value) / norm
        level = math.floor(place) + (draws[i] < place - math.floor(place))
        out.append(float(np.float32(norm)) * math.copysign(1, value) * level / s)
    return out


@pytest.mark.parametrize("bucket", [None, 4, 5, 100])
@pytest.mark.parametrize("levels", [1, 4, 127])
def test_quantisation_against_an_entry_at_a_time(levels, bucket):
    x = random_deltas(1, 13)[0].double()
    x[4] = 0
    x[8:12] = 0  # a bucket of zeros
    sent, _ = quantize(x, levels, bucket, generator(1, "upload", 2, 3))
    expected = by_entry(x.tolist(), levels, bucket, generator(1, "upload", 2, 3))
    assert sent.tolist() == pytest.approx(expected, abs=1e-12)


def test_levels_by_hand():
    # |x| = 5; at s = 5 the entries sit on levels 3 and 4, and nothing is left to chance
    sent, size = quantize(vector([3.0, -4.0]), 5, None, generator(0, "t"))
    assert sent.tolist() == pytest.approx([3.0, -4.0], abs=1e-6)
    assert size == 5  # 4 of the norm, and 2 x 4 bits for -5..5


@pytest.mark.parametrize("bucket", [None, 8])
def test_quantisation_has_no_bias_and_the_variance_of_lemma_31(bucket):
    x = random_deltas(1, 32)[0].double()
    draws = torch.stack([quantize(x, 3, bucket, generator(0, "t", r))[0] for r in range(4000)])
    spread = draws.std(0) / math.sqrt(len(draws))
    assert ((draws.mean(0) - x).abs() <= 5 * spread + 1e-7).all()
    measured = (draws - x).square().sum(1).mean()
    assert measured <= variance_factor(32, 3, bucket) * x.square().sum()
    assert draws.std(0).max() > 0.01  # it did round at random


@settings(deadline=None)
@given(NUMBERS, st.integers(1, 20), st.one_of(st.none(), st.integers(1, 50)))
def test_no_entry_moves_by_more_than_a_level_or_changes_its_sign(numbers, levels, bucket):
    x = vector(numbers).double()
    sent, _ = quantize(x, levels, bucket, generator(0, "t"))
    assert (sent * x >= 0).all()
    least = 2.0**-149  # of float32, in which a norm is sent
    assert ((sent - x).abs() <= x.norm() / levels * (1 + 1e-6) + least).all()


@pytest.mark.parametrize(
    ("n", "levels", "bucket", "size"),
    [
        (1000, 1, None, 254),  # 4 + 1,000 x 2 bits for -1, 0, 1
        (1000, 127, None, 1004),  # 4 + 1,000 x 8 bits
        (1000, 127, 100, 1040),  # ten norms
        (1001, 127, 100, 1045),  # eleven
        (8, 2**15, None, 21),  # 4 + 8 x 17 bits
        (1, 127, None, 4),  # the number itself is smaller than a norm and a level
    ],
)
def test_bytes_of_qsgd_by_hand(n, levels, bucket, size):
    assert qsgd_bytes(n, levels, bucket) == size


def test_bits_number_every_level():
    assert [level_bits(s) for s in (1, 3, 4, 127, 128)] == [2, 3, 4, 8, 9]  # 3, 7, 9, 255, 257 levels
    assert all(2 ** level_bits(s) >= 2 * s + 1 for s in range(1, 600))


def test_qsgd_keeps_no_residual():
    sent, size, kept = Qsgd(7).send(random_deltas(1, 100)[0], {}, generator(0, "t"))
    assert kept == {}
    assert size == 54  # 4 + 100 x 4 bits
    assert sent.dtype == torch.float32


# Qsparse-local-SGD ----------------------------------------------------------------------------------------


def test_qsparse_against_a_recursion_of_plain_lists():
    rounds, n, k, s = 10, 20, 6, 4
    residual, kept = None, [0.0] * n
    omega = min(k / s**2, math.sqrt(k) / s)
    for r, delta in enumerate(random_deltas(rounds, n).double()):
        rng = generator(0, "upload", r)
        sent, residual, size = fed_back(lambda x, rng=rng: qsparse(x, k, s, None, rng), delta, residual)
        owed = [d + e for d, e in zip(delta.tolist(), kept, strict=True)]
        order = sorted(sorted(range(n), key=lambda i: -abs(owed[i]))[:k])
        values = by_entry([owed[i] for i in order], s, None, generator(0, "upload", r))
        expected = [0.0] * n
        for i, value in zip(order, values, strict=True):
            expected[i] = value / (1 + omega)
        kept = [o - e for o, e in zip(owed, expected, strict=True)]
        assert sent.tolist() == pytest.approx(expected, abs=1e-12)
        assert residual.tolist() == pytest.approx(kept, abs=1e-12)
        assert size == 11  # 4 + 6 x (4 + 5) bits = 54 bits in 7 bytes


def test_qsparse_contracts_in_the_mean():
    n, k, s = 40, 10, 2
    x = random_deltas(1, n)[0].double()
    left = [(x - qsparse(x, k, s, None, generator(0, "t", r))[0]).square().sum() for r in range(2000)]
    factor = 1 - k / (n * (1 + variance_factor(k, s)))  # Basu 2019, Lemma 2
    assert float(torch.stack(left).mean()) <= factor * float(x.square().sum())


def test_bytes_of_qsparse_by_hand():
    assert qsparse_bytes(1000, 10, 127) == 27  # 4 + 10 x (8 + 10) bits = 180 bits in 23 bytes
    assert qsparse_bytes(1000, 10, 127, 5) == 31  # two norms
    assert qsparse_bytes(1000, 1000, 127) == 1004  # no index where all are sent


def test_levels_and_buckets_that_cannot_be_encoded_are_refused():
    require_levels(127, None)
    with pytest.raises(ConfigError, match=r"upload\.levels=0"):
        require_levels(0, None)
    with pytest.raises(ConfigError, match=r"upload\.bucket=0"):
        require_levels(4, 0)
