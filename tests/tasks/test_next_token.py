"""The task next_token: means over tokens, not over windows."""

import pytest
import torch
from torch import nn

from fedgm.tasks.cross_entropy import NextToken

TABLE = torch.tensor([[0.0, 1.0, 2.0], [1.0, 0.0, 0.0], [0.5, 0.5, 3.0]])  # scores after tokens 0, 1, 2


@pytest.fixture
def task():
    """A network that looks only at the last token: its scores can be read off a table."""
    net = nn.Embedding.from_pretrained(TABLE, freeze=False)
    return NextToken(net, lambda params: torch.optim.SGD(params, lr=0.1))


def nats(token, target):
    return float(-(TABLE[token].log_softmax(0)[target]))


def test_sums_and_the_training_loss_leave_padding_out(task):
    x, y = torch.tensor([[0, 1], [2, 2]]), torch.tensor([[2, 1], [2, -100]])
    losses = [nats(0, 2), nats(1, 1), nats(2, 2)]
    found = task.sums((x, y))
    assert found["loss"].item() == pytest.approx(sum(losses), abs=1e-6)
    assert (found["acc"].item(), found["count"].item()) == (2, 3)  # after token 1 it guesses 0, but 1 came
    step = task.training_step((x, y), 0)
    assert step["loss"].item() == pytest.approx(sum(losses) / 3, abs=1e-6)
    assert step["loss"].requires_grad
