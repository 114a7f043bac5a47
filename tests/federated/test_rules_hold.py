"""Rules where they hold: what is built decides, whoever built it, and ``federate`` knows what a run knows."""

from copy import deepcopy

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import TensorDataset

import fedgm
from fedgm.client.controls import ScaffoldM
from fedgm.client.momenta import FedCM
from fedgm.client.optimizers import effective, is_plain_sgd
from fedgm.client.rules import FedProx, LastUpdates, Scaffold
from fedgm.data.clients import DatasetClients
from fedgm.draws import generator
from fedgm.errors import ConfigError, FedGMError
from fedgm.lightning import pl
from fedgm.participation import Autonomous, Biased, Uniform, ideal
from fedgm.participation.local_work import effective_steps
from fedgm.running.parts import build_parts
from fedgm.server import GeneralMomentum
from fedgm.upload.compression import TopK
from tests.federated.federated_run import configured

SIZES = (4, 8, 16)
pytestmark = pytest.mark.filterwarnings(
    "ignore:The '(train|val|test)_dataloader' does not have many workers",
    "ignore:Checkpoint directory .* exists and is not empty",
)


def clients():
    x = torch.randn(sum(SIZES), 3, generator=torch.Generator().manual_seed(1))
    y = (x[:, 0] > 0).long()
    return [TensorDataset(a, b) for a, b in zip(x.split(SIZES), y.split(SIZES), strict=True)]


class Net(pl.LightningModule):
    def __init__(self, make):
        super().__init__()
        self.make, self.net = make, nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
        for number, weight in enumerate(self.net.parameters()):
            nn.init.normal_(weight, std=0.5, generator=torch.Generator().manual_seed(number))

    def training_step(self, batch, batch_idx):
        return nn.functional.cross_entropy(self.net(batch[0]), batch[1])

    def configure_optimizers(self):
        return self.make(self.net)


def sgd(**options):
    return lambda net: torch.optim.SGD(net.parameters(), lr=0.1, **options)


def groups(net):
    rates = [{"params": net[0].parameters(), "lr": 0.3}, {"params": net[2].parameters(), "lr": 0.05}]
    return torch.optim.SGD(rates, lr=1.0)


def fit(make, rounds=3, trainer=None, data=None, **federated):
    module = Net(make)
    off = ("logger", "enable_checkpointing", "enable_progress_bar", "enable_model_summary")
    server = fedgm.FedGM(GeneralMomentum(1.0, 0.0, 0.0))
    options = {**dict.fromkeys(off, False), **(trainer or {})}
    own = pl.Trainer(max_epochs=rounds, accelerator="cpu", devices=1, callbacks=[server], **options)
    loop = fedgm.federate(own, data or clients(), **{"batch_size": 4, **federated})
    own.fit(module)
    return loop, module.net


def flat(net):
    return nn.utils.parameters_to_vector(net.parameters()).detach().clone()


def steps(net, make, client, t, epochs=1, adjust=None):
    """The client's network after its local steps, and how many these were."""
    net, (x, y), count = deepcopy(net), clients()[client].tensors, 0
    optimizer, rng = make(net), generator(0, "shuffle", t, client)
    for _ in range(epochs):
        for chosen in torch.from_numpy(rng.permutation(len(x))).split(4):
            optimizer.zero_grad()
            nn.functional.cross_entropy(net(x[chosen]), y[chosen]).backward()
            if adjust is not None:
                adjust(net)
            optimizer.step()
            count += 1
    return net, count


def test_scaffold_divides_by_the_rate_of_each_group():
    _, got = fit(groups, client=Scaffold())
    net = Net(groups).net
    rates = torch.cat(
        [torch.full((p.numel(),), 0.3 if i < 2 else 0.05) for i, p in enumerate(net.parameters())]
    )
    c, kept = torch.zeros_like(flat(net)), [torch.zeros_like(flat(net))] * 3
    for t in (1, 2, 3):
        x, ends, changes = flat(net), [], []
        for client in range(3):
            correction = c - kept[client]

            def adjust(own, correction=correction):
                for p, part in zip(
                    own.parameters(), correction.split([p.numel() for p in own.parameters()]), strict=True
                ):
                    p.grad.add_(part.view_as(p))

            end, count = steps(net, groups, client, t, adjust=adjust)
            now = kept[client] - c + (x - flat(end)) / (count * rates)
            changes.append(now - kept[client])
            kept[client] = now
            ends.append(flat(end))
        c = c + sum(changes) / 3
        nn.utils.vector_to_parameters(sum(ends) / 3, net.parameters())
    assert torch.allclose(flat(got), flat(net), atol=1e-5)


@pytest.mark.parametrize("rule", [Scaffold(), ScaffoldM(), FedCM()])
def test_a_group_of_rate_zero_stays_finite(rule):
    def frozen(net):
        rates = [{"params": net[0].parameters(), "lr": 0.0}, {"params": net[2].parameters(), "lr": 0.05}]
        return torch.optim.SGD(rates)

    loop, net = fit(frozen, client=rule)
    assert torch.equal(net[0].weight, Net(frozen).net[0].weight)
    assert loop.shared
    for vector in loop.shared.values():
        assert torch.isfinite(vector).all()
        assert vector[-2:].abs().min() > 0


ADAM = lambda net: torch.optim.Adam(net.parameters(), lr=0.01)  # noqa: E731


@pytest.mark.parametrize(
    ("make", "trainer", "said"),
    [
        (ADAM, {}, r"Scaffold: its formulas hold for plain SGD .* optimiser is Adam\(\)"),
        (sgd(momentum=0.9), {}, r"optimiser is SGD\(momentum=0.9\)"),
        (sgd(weight_decay=0.1), {}, r"optimiser is SGD\(weight_decay=0.1\)"),
        (sgd(), {"gradient_clip_val": 0.5}, r"optimiser is SGD\(\), clipped at 0.5"),
    ],
)
def test_scaffold_looks_at_the_optimiser_that_is_built(make, trainer, said):
    with pytest.raises(FedGMError, match=said):
        fit(make, client=Scaffold(), trainer=trainer)


@pytest.mark.parametrize(
    "words",
    [
        ["local.optimizers.sgd.momentum=0.9"],
        ["local.optimizers.sgd.weight_decay=0.1"],
        ["+local.optimizers.sgd.maximize=true"],
        ["local.optimizer=adamw"],
        ["local.momentum=0.5"],
        ["local.clip=1"],
        ["local.optimizer=qhm"],
    ],
)
def test_so_does_a_configuration_before_data_are_loaded(words):
    with pytest.raises(ConfigError, match=r"client=scaffold: its formulas are right for plain SGD"):
        build_parts(configured("client=scaffold", *words))


def uneven(normalize, **options):
    return ideal(3, 3, epochs=2, seed=0, normalize=normalize, **options)


def test_steps_through_federate_are_those_of_each_client():
    loop, _ = fit(sgd(), rounds=1, participation=uneven("steps"))
    weights = {task.client: task.weight for task in loop.participation.tasks(1)}
    assert weights == {0: 1 / 2, 1: 1 / 4, 2: 1 / 8}  # 4, 8, 16 samples in batches of 4, twice


@pytest.mark.parametrize(
    ("options", "rule", "momentum", "pull"),
    [({}, None, 0.0, 0.0), ({"momentum": 0.8}, None, 0.8, 0.0), ({}, FedProx(mu=2.0), 0.0, 0.2)],
)
def test_fednova_through_federate_knows_steps_momentum_and_pull(options, rule, momentum, pull):
    loop, got = fit(sgd(**options), rounds=1, participation=uneven("fednova"), client=rule)
    a = {client: effective_steps(n, momentum, pull) for client, n in enumerate((2, 4, 8))}
    mean = sum(a.values()) / 3
    assert {task.client: task.weight for task in loop.participation.tasks(1)} == pytest.approx(
        {client: mean / a[client] for client in a}
    )
    start = Net(sgd()).net
    x, total = flat(start), torch.zeros_like(flat(start))
    for client in range(3):

        def pulled(net):
            for p, origin in zip(net.parameters(), start.parameters(), strict=True):
                p.grad.add_(p.detach() - origin.detach(), alpha=rule.mu)

        end, _ = steps(start, sgd(**options), client, 1, epochs=2, adjust=pulled if rule else None)
        total += mean / a[client] * (x - flat(end))
    assert torch.allclose(flat(got), x - total / 3, atol=1e-6)


@pytest.mark.parametrize("make", [ADAM, sgd(momentum=0.9, nesterov=True), sgd(momentum=0.9, dampening=0.5)])
def test_fednova_refuses_an_optimiser_that_it_does_not_know(make):
    with pytest.raises(FedGMError, match="normalize=fednova: a_i is known for SGD"):
        fit(make, participation=uneven("fednova"))


def test_fednova_refuses_groups_that_differ_and_a_momentum_that_is_kept():
    with pytest.raises(FedGMError, match="alike in all groups"):
        fit(groups, participation=uneven("fednova"), client=FedProx(mu=1.0))
    fit(groups, rounds=1, participation=uneven("fednova"))  # without a pull a_i does not depend on the rate
    with pytest.raises(FedGMError, match="a momentum which starts at zero"):
        fit(sgd(momentum=0.9), participation=uneven("fednova"), state="keep")


def test_fednova_of_a_configuration_takes_the_momentum_that_is_built():
    facts = build_parts(
        configured("participation=fednova", "local.optimizers.sgd.momentum=0.5")
    ).clients.facts
    assert facts.effective(3) == 4.25
    with pytest.raises(ConfigError, match=r"local\.state=keep.*a momentum which starts at zero"):
        build_parts(configured("participation=fednova", "local.momentum=0.5", "local.state=keep"))


def test_what_a_scheme_was_told_it_keeps_and_samplers_are_told_too():
    told = Autonomous(Uniform(3, 3, 0), 1, (1, 1), 1, 0, normalize="steps", facts=fedgm_facts(7))
    loop, _ = fit(sgd(), rounds=1, participation=told)
    assert {task.weight for task in loop.participation.tasks(1)} == {1 / 7}
    biased = Autonomous(Biased(3, 1, 0, bias=0.5, favour=[0]), 1, (1, 1), 1, 0)
    with pytest.raises(TypeError, match="Biased needs labels"):  # a list of datasets has none
        fit(sgd(), rounds=1, participation=biased)
    loop, _ = fit(sgd(), rounds=1, participation=biased, data=Labelled(clients(), 4, 0))
    assert [loop.participation.sampler.availability(client) for client in range(3)] == [1, 0.5, 0.75]


class Labelled(DatasetClients):
    """Clients that say which classes their samples have."""

    def labels(self, client):
        return np.array([[0, 0], [1, 1], [0, 1]][client])


def fedgm_facts(count):
    from fedgm.participation import ClientFacts

    return ClientFacts(steps=lambda client, epochs: count)


def test_a_memory_needs_the_plain_mean_and_whole_uploads_through_federate_too():
    with pytest.raises(ConfigError, match=r"weights=samples.*written for the plain mean"):
        fit(sgd(), client=LastUpdates(), weights="samples")
    with pytest.raises(ConfigError, match="weights=samples"):
        fit(sgd(), participation=uneven("fednova"), weights="samples")
    with pytest.raises(ConfigError, match="upload=TopK"):
        fit(sgd(), client=LastUpdates(), upload=TopK(0.5))


def test_the_questions_by_hand():
    w = [torch.zeros(1, requires_grad=True)]
    assert is_plain_sgd(torch.optim.SGD(w, lr=0.1, nesterov=False))
    assert not is_plain_sgd(torch.optim.SGD(w, lr=0.1, maximize=True))
    assert effective(torch.optim.SGD(w, lr=0.1, momentum=0.5), mu=3.0) == pytest.approx((0.5, 0.3))
    assert effective(torch.optim.AdamW(w), mu=0.0) is None
