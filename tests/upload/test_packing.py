"""Uploads on the wire: as many bytes as were counted, and the server decodes the very numbers."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fedgm.errors import FedGMError
from fedgm.upload.compression import Qsgd, Qsparse, TopK
from fedgm.upload.message import Plain, Sent
from fedgm.upload.packing import pack, unpack

RULES = [
    TopK(0.01), TopK(0.3), TopK(1.0), TopK(0.5, feedback=False), Qsgd(7, 512), Qsgd(1), Qsgd(127, 4),
    Qsgd(2**15, 64), Qsparse(0.01, 7, 512), Qsparse(0.5, 3, 8), Qsparse(1.0, 7),
]  # fmt: skip


@pytest.mark.parametrize("rule", RULES, ids=str)
@pytest.mark.parametrize("n", [1, 2, 5, 17, 1000, 4097])
def test_the_server_decodes_what_the_rule_has_sent(rule, n):
    rng, kept = np.random.default_rng(n), {}
    for _ in range(3):  # with what earlier rounds left out
        delta = torch.from_numpy(rng.standard_normal(n)).float()
        sent = rule.send(delta, kept, rng)
        message = pack(rule, delta, kept, sent)
        assert torch.equal(unpack(rule, message, delta), sent.delta)
        assert len(message) == sent.bytes
        kept = sent.kept


@settings(deadline=None)
@given(st.lists(st.floats(-1e6, 1e6, width=32), min_size=1, max_size=40), st.sampled_from(RULES))
def test_it_does_so_for_any_numbers(numbers, rule):
    delta = torch.tensor(numbers, dtype=torch.float32)
    sent = rule.send(delta, {}, np.random.default_rng(0))
    message = pack(rule, delta, {}, sent)
    assert torch.equal(unpack(rule, message, delta), sent.delta)
    assert len(message) <= sent.bytes  # zeros among the largest are not sent


def test_compressed_is_shorter_by_what_it_says():
    delta = torch.randn(100_000, generator=torch.manual_seed(0))
    rng = np.random.default_rng(0)
    sizes = [
        len(pack(rule, delta, {}, rule.send(delta, {}, rng))) for rule in (Plain(), TopK(0.01), Qsgd(7, 512))
    ]
    assert sizes[0] == 400_000
    assert sizes[1] < 400_000 / 60
    assert sizes[2] < 400_000 / 7


class Halves:
    """A rule of another package, which cannot write its own message."""

    keeps = draws = False

    def send(self, delta, kept, rng):
        return Sent(delta / 2, 1, {})


@pytest.mark.parametrize("rule", [Halves(), Plain()])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16])
def test_other_rules_send_every_entry_in_its_own_type(rule, dtype):
    delta = torch.arange(7, dtype=dtype)
    sent = rule.send(delta, {}, np.random.default_rng(0))
    message = pack(rule, delta, {}, sent)
    assert len(message) == 7 * delta.element_size()
    assert torch.equal(unpack(rule, message, delta), sent.delta)


@pytest.mark.parametrize("rule", [TopK(0.3), Qsgd(7, 4), Qsparse(0.5, 3, 8), Plain(), Halves()], ids=str)
@pytest.mark.parametrize("message", [b"", b"\xff", b"\xff" * 11, b"\xff" * 61, bytes(1000)], ids=len)
def test_what_is_not_a_message_is_refused_or_has_the_right_shape(rule, message):
    like = torch.zeros(50)
    try:
        delta = unpack(rule, message, like)
    except FedGMError:
        pass
    else:
        assert (delta.shape, delta.dtype) == (like.shape, like.dtype)


@pytest.mark.parametrize(("rule", "length"), [(TopK(0.3), 61), (Qsgd(7, 4), 52 + 25), (Qsgd(7, 4), 1000)])
def test_indices_and_levels_out_of_range_and_wrong_lengths_are_refused(rule, length):
    with pytest.raises(FedGMError, match="cannot be decoded"):
        unpack(rule, b"\xff" * length, torch.zeros(50))
