"""local.optimizer=muon: torch's Muon for matrices and torch's AdamW for the rest, as one optimiser."""

from copy import deepcopy

import pytest
import torch
from torch import nn

from fedgm.client.muon import Muon
from fedgm.client.store import read_state, write_state


def net():
    torch.manual_seed(2)
    return nn.Sequential(nn.Conv2d(1, 2, 3), nn.Flatten(), nn.Linear(8, 5), nn.Tanh(), nn.Linear(5, 3))


def train(model, optimizers, steps, seed=0):
    rng = torch.Generator().manual_seed(seed)
    for _ in range(steps):
        model.zero_grad()
        model(torch.randn(6, 1, 4, 4, generator=rng)).square().mean().backward()
        for optimizer in optimizers:
            optimizer.step()


def equal(a, b):
    return all(torch.equal(p, q) for p, q in zip(a.parameters(), b.parameters(), strict=True))


def test_it_is_both_of_torchs_optimisers():
    one, two = net(), net()
    matrices = [p for p in two.parameters() if p.ndim == 2]
    others = [p for p in two.parameters() if p.ndim != 2]
    assert (len(matrices), len(others)) == (2, 4)
    train(one, [Muon(one.parameters(), lr=0.01, momentum=0.9, weight_decay=0.1)], 5)
    muon = torch.optim.Muon(matrices, lr=0.01, momentum=0.9, weight_decay=0.1, adjust_lr_fn="match_rms_adamw")
    train(two, [muon, torch.optim.AdamW(others, lr=0.01, weight_decay=0.1)], 5)
    assert equal(one, two)
    assert not equal(one, net())


@pytest.mark.parametrize("way", ["torch", "client"])
def test_its_state_can_be_kept(way):
    """As torch stores it, and as a client keeps it (local.state=keep)."""
    whole, parted = net(), net()
    optimizer = Muon(whole.parameters(), lr=0.01)
    train(whole, [optimizer], 3)
    train(whole, [optimizer], 3, seed=1)
    first = Muon(parted.parameters(), lr=0.01)
    train(parted, [first], 3)
    second = Muon(parted.parameters(), lr=0.01)
    if way == "torch":
        second.load_state_dict(deepcopy(first.state_dict()))
    else:
        write_state(second, read_state(first))
    train(parted, [second], 3, seed=1)
    assert equal(whole, parted)


def test_a_scheduler_moves_the_rate_of_both():
    model = net()
    optimizer = Muon(model.parameters(), lr=0.01)
    for group in optimizer.param_groups:
        group["lr"] = 0.0
    train(model, [optimizer], 2)
    assert equal(model, net())
