"""FedProx, SCAFFOLD, MIFA and FedNova in the real loop against their recursions, on a convex problem."""

import pytest
import torch
from torch import nn

from fedgm.client.store import ClientStore, require_room
from fedgm.errors import ConfigError, RefusedError
from fedgm.participation.local_work import effective_steps
from fedgm.running.parts import build_parts
from tests.federated.federated_run import flat
from tests.paper.convex import configured, fit, linear, local, rounds


def fedprox(run, mu):
    clients, plan = rounds(run)
    net = linear()
    for t, tasks in plan:
        x = flat(net)
        ends = [local(run, clients, net, task, t, lambda w, g, x=x: g + mu * (w - x))[0] for task in tasks]
        nn.utils.vector_to_parameters(sum(ends) / len(ends), net.parameters())
    return flat(net)


def scaffold(run):
    clients, plan = rounds(run)
    net, n = linear(), run.clients.count
    c, kept = torch.zeros_like(flat(net)), {i: torch.zeros_like(flat(net)) for i in range(n)}
    for t, tasks in plan:
        x, ends, changes = flat(net), [], []
        for task in tasks:
            c_i = kept[task.client]
            y, steps = local(run, clients, net, task, t, lambda w, g, c_i=c_i, c=c: g - c_i + c)
            kept[task.client] = c_i - c + (x - y) / (steps * run.local.lr)
            ends.append(y)
            changes.append(kept[task.client] - c_i)
        nn.utils.vector_to_parameters(sum(ends) / len(ends), net.parameters())
        c = c + len(tasks) / n * sum(changes) / len(changes)
    return flat(net)


def mifa(run):
    clients, plan = rounds(run)
    net, n = linear(), run.clients.count
    last = [torch.zeros_like(flat(net)) for _ in range(n)]
    for t, tasks in plan:
        x = flat(net)
        for task in tasks:
            last[task.client] = x - local(run, clients, net, task, t, lambda w, g: g)[0]
        nn.utils.vector_to_parameters(x - sum(last) / n, net.parameters())
    return flat(net)


def fednova(run):
    clients, plan = rounds(run)
    net = linear()
    for t, tasks in plan:
        x = flat(net)
        ends = [local(run, clients, net, task, t, lambda w, g: g) for task in tasks]
        mean_steps = sum(steps for _, steps in ends) / len(ends)
        D = mean_steps * sum((x - y) / steps for y, steps in ends) / len(ends)
        nn.utils.vector_to_parameters(x - D, net.parameters())
    return flat(net)


def fednova_general(run, momentum, mu):
    """FedNova with a_i written out: the entries of its paper, one for each local step."""
    clients, plan = rounds(run)
    net, lr = linear(), run.local.lr
    for t, tasks in plan:
        x, deltas, sizes = flat(net), [], []
        for task in tasks:
            speed = [torch.zeros_like(x)]

            def correct(w, g, x=x, speed=speed):
                speed[0] = momentum * speed[0] + g + mu * (w - x)
                return speed[0]

            y, K = local(run, clients, net, task, t, correct)
            entries = [(1 - momentum ** (K - k)) / (1 - momentum) for k in range(K)] if momentum else None
            entries = entries or [(1 - lr * mu) ** (K - 1 - k) for k in range(K)]
            deltas.append(x - y)
            sizes.append(sum(entries))
        D = sum(sizes) / len(sizes) * sum(d / a for d, a in zip(deltas, sizes, strict=True)) / len(sizes)
        nn.utils.vector_to_parameters(x - D, net.parameters())
    return flat(net)


def stale_scaffold(run):
    """A client that starts from x_{t-tau} corrects with c_{t-tau}, which it fetched along."""
    clients, plan = rounds(run)
    net, n = linear(), run.clients.count
    zero = torch.zeros_like(flat(net))
    models, c, kept = [flat(net)], [zero], dict.fromkeys(range(n), zero)
    for t, tasks in plan:
        deltas, changes = [], []
        for task in tasks:
            x, c_old, c_i = models[-1 - task.staleness], c[-1 - task.staleness], kept[task.client]
            nn.utils.vector_to_parameters(x, net.parameters())
            y, steps = local(run, clients, net, task, t, lambda w, g, c_i=c_i, c_old=c_old: g - c_i + c_old)
            kept[task.client] = c_i - c_old + (x - y) / (steps * run.local.lr)
            deltas.append(task.weight * (x - y))
            changes.append(kept[task.client] - c_i)
        models.append(models[-1] - sum(deltas) / len(deltas))
        c.append(c[-1] + len(tasks) / n * sum(changes) / len(changes))
    return models[-1]


def test_scaffold_under_staleness_uses_the_control_variate_of_the_stale_model(tmp_path):
    run = configured("client=scaffold", "participation=autonomous", "participation.delay=3", "rounds=8")
    module, _ = fit(run, tmp_path)
    assert torch.allclose(flat(module), stale_scaffold(run), atol=5e-6)
    assert any(task.staleness for _, tasks in rounds(run)[1] for task in tasks)


@pytest.mark.parametrize(
    ("overrides", "momentum", "mu"),
    [(["local.momentum=0.8"], 0.8, 0.0), (["client=fedprox", "client.mu=5.0"], 0.0, 5.0)],
)
def test_fednova_divides_by_the_effective_steps_of_its_paper(overrides, momentum, mu, tmp_path):
    run = configured("participation=fednova", "data.min_samples=1", *overrides)
    got = flat(fit(run, tmp_path)[0])
    assert torch.allclose(got, fednova_general(run, momentum, mu), atol=5e-6)
    plain = configured("data.min_samples=1", *overrides)
    assert not torch.allclose(got, flat(fit(plain, tmp_path / "plain")[0]), atol=1e-4)


def test_effective_steps_by_hand():
    # rho = 1/2, K = 3: entries 1.75, 1.5, 1; pull = 1/4, K = 3: entries 9/16, 3/4, 1
    assert effective_steps(3, momentum=0.5) == 4.25
    assert effective_steps(3, pull=0.25) == 2.3125
    assert effective_steps(7) == 7
    K, rho, pull = 40, 0.9, 0.02  # the closed forms of its paper
    assert effective_steps(K, rho) == pytest.approx((K - rho * (1 - rho**K) / (1 - rho)) / (1 - rho))
    assert effective_steps(K, pull=pull) == pytest.approx((1 - (1 - pull) ** K) / pull)
    # Both, K = 3: an impulse moves 1, then 1 + (1/2 - 1/4) = 5/4, then 5/4 + (1/8 - 5/16) = 17/16.
    assert effective_steps(3, 0.5, 0.25) == 1 + 5 / 4 + 17 / 16


def test_fednova_refuses_a_local_optimiser_whose_effective_steps_it_does_not_know():
    for words in (["local.optimizer=adamw"], ["local.momentum=0.9", "+local.optimizers.sgd.nesterov=true"]):
        with pytest.raises(ConfigError, match=r"local\.optimizer=.*FedNova gives no a_i for others"):
            build_parts(configured("participation=fednova", *words))


@pytest.mark.parametrize(
    ("overrides", "reference"),
    [
        (["client=fedprox", "client.mu=2.0"], lambda run: fedprox(run, 2.0)),
        (["client=scaffold"], scaffold),
        (["client=mifa"], mifa),
        (["participation.normalize=fednova"], fednova),
    ],
)
def test_a_rule_equals_its_recursion_and_differs_from_fedavg(overrides, reference, tmp_path):
    run = configured(*overrides)
    got = flat(fit(run, tmp_path / "own")[0])
    assert torch.allclose(got, reference(run), atol=2e-6)
    assert not torch.allclose(got, flat(fit(configured(), tmp_path / "fedavg")[0]), atol=1e-4)


def test_fedprox_without_pull_is_plain(tmp_path):
    pulled = flat(fit(configured("client=fedprox", "client.mu=0.0"), tmp_path)[0])
    assert torch.equal(pulled, flat(fit(configured(), tmp_path)[0]))


@pytest.mark.slow
def test_scaffold_beats_fedavg_where_clients_are_unlike(tmp_path):
    """One class per client, 20 local epochs: the fixed point of FedAvg is off, that of SCAFFOLD is not."""
    hard = [
        "data.alpha=0",
        "clients.count=10",
        "clients.per_round=10",
        "local.batch_size=24",
        "local.lr=0.05",
    ]
    hard += ["local.epochs=20", "rounds=15", "eval.every=15"]
    losses = {
        name: fit(configured(*hard, f"client={name}"), tmp_path / name)[1].module.measured["train/loss"]
        for name in ("plain", "scaffold")
    }
    assert losses["scaffold"] < 0.8 * losses["plain"], losses


def test_only_clients_that_took_part_have_a_state(tmp_path):
    run = configured("client=scaffold", "rounds=1")
    fit(run, tmp_path)
    took_part = {task.client for _, tasks in rounds(run)[1] for task in tasks}
    assert {int(path.name) for path in (tmp_path / "clients").iterdir()} == took_part


def test_a_state_is_the_newest_before_the_round_and_old_ones_go(tmp_path):
    store = ClientStore(tmp_path, every=1, keep=2)
    for t in (1, 4, 5, 9):
        store.save(7, t, {"c": torch.tensor([float(t)])})
    assert store.load(7, before=9)["c"].item() == 5
    assert store.load(7, before=10)["c"].item() == 9
    assert store.load(8, before=9) == {}
    kept = sorted(int(path.stem) for path in (tmp_path / "00000007").iterdir())
    assert kept == [5, 9]  # a checkpoint of round 6, 7 or 8 asks for that of 5; nobody for 1 and 4


def test_states_that_cannot_fit_are_refused_with_the_estimate(tmp_path):
    assert "5 client states of 4.0 MiB" in require_room(tmp_path, 5, 4 * 2**20, versions=4)
    with pytest.raises(RefusedError, match=r"1,000,000 client states.*GiB free.*clients\.count"):
        require_room(tmp_path, 10**6, 2**30, versions=1)
