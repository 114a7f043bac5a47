"""A rule may ask for the gradient of a step's batch elsewhere: it is right, and nothing else notices."""

from dataclasses import dataclass, field

import pytest
import torch
from torch import nn
from torch.utils.data import TensorDataset

import fedgm
from fedgm.client.rules import Plain
from fedgm.lightning import pl
from fedgm.server import GeneralMomentum
from tests.paper.bowls import Listens

pytestmark = pytest.mark.filterwarnings("ignore:The '(train|val|test)_dataloader' does not have many workers")
BOTH_PATHS = pytest.mark.parametrize("direct", [True, False], ids=["direct", "lightning"])


class Net(pl.LightningModule):
    """Layers that draw and layers that keep statistics; it logs its loss."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(4)
        self.net = nn.Sequential(nn.Linear(3, 8), nn.BatchNorm1d(8), nn.Dropout(0.4), nn.Linear(8, 2))

    def training_step(self, batch, batch_idx):
        loss = nn.functional.cross_entropy(self.net(batch[0]), batch[1])
        self.log("its_loss", loss, on_step=False, on_epoch=True)
        return loss

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


def clients():
    x = torch.randn(30, 3, generator=torch.Generator().manual_seed(1))
    y = (x[:, 0] > 0).long()
    return [TensorDataset(a, b) for a, b in zip(x.split(10), y.split(10), strict=True)]


def fit(rule, direct):
    server = fedgm.FedGM(GeneralMomentum(1.0, 0.0, 0.0))
    off = ("logger", "enable_checkpointing", "enable_progress_bar", "enable_model_summary")
    trainer = pl.Trainer(
        max_epochs=2,
        accelerator="cpu",
        devices=1,
        callbacks=[server, *([] if direct else [Listens()])],
        **dict.fromkeys(off, False),
    )
    module = Net()
    loop = fedgm.federate(trainer, clients(), batch_size=4, client=rule)
    trainer.fit(module)
    assert loop.clients.client.direct is direct
    return module, float(trainer.callback_metrics["its_loss"])


@dataclass(frozen=True)
class Asks(Plain):
    shift: float
    answers: list = field(default_factory=list)
    needs_second_gradient = True

    def begin(self, local):
        self.answers.append((local.work.full_gradient(), None))

        def adjust(parameters):
            here = torch.cat([w.detach().reshape(-1) for w in parameters])
            own = torch.cat([w.grad.reshape(-1) for w in parameters])
            self.answers.append((local.work.gradient_at(here + self.shift), own))
            assert torch.equal(own, torch.cat([w.grad.reshape(-1) for w in parameters]))

        return adjust


@BOTH_PATHS
def test_at_the_same_point_it_is_the_same_gradient_with_the_same_dropout(direct):
    rule = Asks(0.0)
    fit(rule, direct)
    asked = [(there, own) for there, own in rule.answers if own is not None]
    assert len(asked) == 2 * 3 * 3
    assert all(torch.equal(there, own) for there, own in asked)


@BOTH_PATHS
def test_whoever_asks_trains_as_if_nobody_had_asked(direct):
    rule = Asks(0.5)
    (asking, its_loss), (plain, loss) = fit(rule, direct), fit(Plain(), direct)
    assert any(not torch.equal(there, own) for there, own in rule.answers if own is not None)
    assert its_loss == loss
    for name, value in plain.state_dict().items():  # running statistics too
        assert torch.equal(value, asking.state_dict()[name]), name


def test_the_full_gradient_counts_every_sample_once():
    """Batches of 4, 4 and 2 of the first client, written out; without layers that draw or mix samples."""

    class Straight(Net):
        def __init__(self):
            super().__init__()
            self.net = nn.Linear(3, 2)

    module, rule = Straight(), Asks(0.0)
    start = [p.detach().clone() for p in module.parameters()]
    server = fedgm.FedGM(GeneralMomentum(1.0, 0.0, 0.0))
    off = ("logger", "enable_checkpointing", "enable_progress_bar", "enable_model_summary")
    trainer = pl.Trainer(
        max_epochs=1, accelerator="cpu", devices=1, callbacks=[server], **dict.fromkeys(off, False)
    )
    fedgm.federate(trainer, clients()[:1], batch_size=4, client=rule)
    trainer.fit(module)
    x, y = clients()[0].tensors
    weights = [p.requires_grad_() for p in start]
    nn.functional.cross_entropy(nn.functional.linear(x, *weights), y).backward()
    wanted = torch.cat([p.grad.reshape(-1) for p in weights])
    assert torch.allclose(rule.answers[0][0], wanted, atol=1e-6)
