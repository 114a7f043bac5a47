"""The small GPT: shape, causality, nanoGPT's draws, and that it learns."""

import math

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from fedgm.data.text import TextFederation
from fedgm.data.tokens import tokenize
from fedgm.errors import ConfigError
from fedgm.models.gpt import gpt


def parameter_count(net):
    return sum(p.numel() for p in net.parameters())


def next_token_loss(scores, targets):
    return F.cross_entropy(scores.flatten(0, 1), targets.flatten())


@pytest.fixture
def net():
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return gpt(vocabulary=11, block=8, layers=2, heads=2, width=16)


def test_parameters_by_hand():
    # 64*128 + 64*128 embeddings, a layer has 12*128^2 + 2*128, and 128 of the last norm; the head is tied
    assert parameter_count(gpt(vocabulary=64)) == 2 * 8192 + 4 * (12 * 16384 + 256) + 128 == 803_968
    assert parameter_count(gpt(64, width=64, layers=2, heads=2, block=32)) == 6144 + 2 * (49_152 + 128) + 64


def test_no_place_sees_what_comes_after_it(net):
    tokens = torch.arange(8).unsqueeze(0)
    before = net(tokens)
    tokens[0, 5] = 10
    after = net(tokens)
    assert torch.equal(before[0, :5], after[0, :5])
    assert not torch.allclose(before[0, 5:], after[0, 5:])


def test_a_layer_against_its_formula(net):
    """Attention written out with a mask and a softmax, instead of torch's fused function."""
    layer = net.layers[0]
    x = torch.randn(3, 8, 16, generator=torch.Generator().manual_seed(1))
    normed = F.layer_norm(x, (16,), layer.attention_norm.weight)
    query, key, value = (normed @ layer.attention.query_key_value.weight.T).split(16, dim=2)
    heads = []
    for head in range(2):
        own = slice(8 * head, 8 * head + 8)
        scores = query[..., own] @ key[..., own].transpose(1, 2) / math.sqrt(8)
        hidden = torch.ones(8, 8).triu(1).bool()
        heads.append(scores.masked_fill(hidden, -math.inf).softmax(2) @ value[..., own])
    y = x + torch.cat(heads, 2) @ layer.attention.out.weight.T
    normed = F.layer_norm(y, (16,), layer.mlp_norm.weight)
    expected = y + F.gelu(normed @ layer.mlp.inner.weight.T) @ layer.mlp.out.weight.T
    assert torch.allclose(layer(x), expected, atol=1e-6)


def test_weights_are_drawn_as_nanogpts():
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        net = gpt(vocabulary=65)
    for name, weight in net.named_parameters():
        if weight.dim() == 1:
            assert torch.equal(weight, torch.ones_like(weight))
            continue
        std = 0.02 / math.sqrt(8) if name.endswith("out.weight") else 0.02
        assert weight.std().item() == pytest.approx(std, rel=0.05), name
    x = torch.randint(65, (4, 64), generator=torch.Generator().manual_seed(0))
    assert next_token_loss(net(x), x.roll(-1, 1)).item() == pytest.approx(math.log(65), abs=0.1)


def test_it_learns_a_text_whose_next_character_is_known():
    """Counting to ten in a circle: far below ln 10 after 60 steps, and it can go on counting."""
    texts = tokenize({"c": "0123456789" * 40})
    federation = TextFederation(texts, block=16, batch_size=8)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        net = gpt(**federation.facts, layers=1, heads=2, width=32)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-2)
    for x, y in federation.batches(0, 1, 60):
        optimizer.zero_grad()
        next_token_loss(net(x), y).backward()
        optimizer.step()
    evaluation = federation.evaluations()["test"]
    losses = [
        float(next_token_loss(net(x), y).detach()) for x, y in map(evaluation.batch, range(len(evaluation)))
    ]
    assert np.mean(losses) < 0.1
    start = torch.from_numpy(texts.vocabulary.encode("789").astype(np.int64))
    for _ in range(20):
        start = torch.cat([start, net(start[-16:].unsqueeze(0))[0, -1].argmax().view(1)])
    assert texts.vocabulary.decode(start.numpy()) == "78901234567890123456789"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"width": 30}, r"model\.width=30: expected a multiple of model\.heads=4"),
        ({"layers": 0}, r"model\.layers=0: expected"),
        ({"block": 0}, r"model\.block=0: expected"),
    ],
)
def test_sizes_that_do_not_fit_are_refused(arguments, message):
    with pytest.raises(ConfigError, match=message):
        gpt(10, **arguments)
