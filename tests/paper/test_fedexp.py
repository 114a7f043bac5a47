"""FedExP in the real loop and times FedGM, against its recursion."""

import pytest
import torch
from torch import nn

from fedgm.errors import ConfigError
from fedgm.running.parts import build_parts, load_clients
from fedgm.schedule import Multistage
from fedgm.server.fedexp import FedExP, extrapolation
from tests.federated.federated_run import flat
from tests.paper.convex import configured, fit, linear, local, rounds


def recursion(run, eta, beta, nu, eps, shares):
    clients, plan = rounds(run)
    net, d, rates, models = linear(), 0.0, [], []
    for t, tasks in plan:
        x = flat(net)
        models.append(x)
        deltas = [x - local(run, clients, net, task, t, lambda w, g: g)[0] for task in tasks]
        p = shares([clients.size(task.client) for task in tasks])
        D = sum(w * delta for w, delta in zip(p, deltas, strict=True))
        squared = sum(w * delta.double().square().sum().item() for w, delta in zip(p, deltas, strict=True))
        rates.append(max(1.0, squared / (2 * (D.double().square().sum().item() + eps))))
        d = (1 - beta) * D + beta * d
        nn.utils.vector_to_parameters(x - eta * rates[-1] * ((1 - nu) * D + nu * d), net.parameters())
    return flat(net), rates, models[-1]


def uniform(sizes):
    return [1 / len(sizes)] * len(sizes)


def by_size(sizes):
    return [size / sum(sizes) for size in sizes]


@pytest.mark.parametrize(
    ("words", "triple", "shares"),
    [
        (["algorithm=fedexp"], (1.0, 0.0, 0.0), uniform),
        (["algorithm=fedexp", "clients.weights=samples"], (1.0, 0.0, 0.0), by_size),
        (["algorithm=fedexp_gm", "paper_momentum={eta:0.8,beta:0.7,nu:0.6}"], (0.8, 0.7, 0.6), uniform),
    ],
)
def test_fedexp_equals_its_recursion_alone_and_times_fedgm(words, triple, shares, tmp_path):
    # One class a client: they disagree, so that the rate is above 1 in some round.
    run = configured("data.alpha=0.05", "data.min_samples=1", "algorithm.eps=1e-4", *words)
    module, loop = fit(run, tmp_path)
    expected, rates, _ = recursion(run, *triple, 1e-4, shares)
    assert torch.allclose(flat(module), expected, atol=1e-5)
    assert max(rates) > 1.05
    assert loop.row["server/eta"] == pytest.approx(triple[0] * rates[-1], rel=1e-4)


def test_it_evaluates_the_mean_of_the_last_two_models(tmp_path):
    run = configured("data.alpha=0.05", "data.min_samples=1", "algorithm=fedexp", "eval.point=average")
    module, loop = fit(run, tmp_path)
    last, _, before = recursion(run, 1.0, 0.0, 0.0, 1e-3, uniform)
    net = linear()
    nn.utils.vector_to_parameters((last + before) / 2, net.parameters())
    x, y = load_clients(run).images.evaluation("train", 240, False).batch(0)
    loss = nn.functional.cross_entropy(net(x), y).item()
    assert loop.row["train/loss"] == pytest.approx(loss, rel=1e-4)
    assert torch.allclose(flat(module), last, atol=1e-5)


def test_the_rate_by_hand():
    # |D|^2 = 25, mean |D_i|^2 = 300: 300 / (2 * (25 + 5)) = 5; clients that agree leave 1
    assert extrapolation(300.0, torch.tensor([3.0, 4.0]), eps=5.0) == 5.0
    assert extrapolation(25.0, torch.tensor([3.0, 4.0]), eps=5.0) == 1.0


def test_what_does_not_fit_is_refused():
    with pytest.raises(ConfigError, match=r"algorithm\.eps=0"):
        FedExP(1.0, 0.0, 0.0, 0.0)
    with pytest.raises(ConfigError, match=r"algorithm\.beta=1\.0"):
        FedExP(1.0, 1.0, 0.0, 0.001)
    with pytest.raises(ConfigError, match=r"schedule=multistage"):
        Multistage([2.0, 1.0]).plan(9, FedExP(1.0, 0.0, 0.0, 0.001))
    with pytest.raises(ConfigError, match=r"client=mifa.*mean of the cohort"):
        build_parts(configured("algorithm=fedexp", "client=mifa"))
