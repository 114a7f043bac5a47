"""Alg. 4 in the real loop: what it recovers bit for bit, and its schemes against their recursions."""

from contextlib import nullcontext

import pytest
import torch
from torch import nn

from fedgm.federated.callback import FedGM
from fedgm.lightning import pl
from fedgm.running import trainer as training
from fedgm.running.parts import build_parts
from fedgm.tasks.cross_entropy import Classification
from tests.conftest import quick
from tests.federated.federated_run import flat
from tests.paper.convex import configured, fit, linear, local, rounds

EQUAL = ["participation.speed_sigma=0", "participation.network=0", "participation.timed=epochs"]


def recursion(run, step):
    """x_{t+1} = step(x_t, [(task, x_t, x_{t-tau}, y_i, K_i)]) with every past model at hand."""
    clients, plan = rounds(run)
    net = linear()
    past = [flat(net)]
    for t, tasks in plan:
        came = []
        for task in tasks:
            start = past[-1 - task.staleness]
            nn.utils.vector_to_parameters(start, net.parameters())
            y, steps = local(run, clients, net, task, t, lambda w, g: g)
            came.append((task, start, y, steps))
        past.append(step(past[-1], came))
    return past[-1]


@pytest.mark.parametrize("algorithm", quick(["fedavg", "fedgm"], "fedgm"))
@pytest.mark.parametrize(
    ("overrides", "same"),
    [
        (["participation=autonomous", "participation.delay=1", "participation.epochs=[2,2]"], True),
        (["participation=autonomous", "participation.delay=3", "participation.epochs=[2,2]"], False),
        (["participation=autonomous", "participation.delay=1", "participation.epochs=[1,3]"], False),
        (["participation=event", *EQUAL], True),
        (["participation=event", *EQUAL, "participation.concurrency=5"], False),
        (["participation=event", "participation.speed_sigma=1", "participation.network=0"], False),
        (["participation=sync"], True),
    ],
)
def test_multistage_fedgm_is_recovered_bit_for_bit_and_only_where_it_should(
    overrides, same, algorithm, tmp_path
):
    common = [f"algorithm={algorithm}", "schedule=multistage", "schedule.etas=[1.0,0.5]", "rounds=6"]
    ideal = flat(fit(configured(*common), tmp_path)[0])
    other = flat(fit(configured(*common, *overrides), tmp_path)[0])
    assert torch.equal(ideal, other) is same


def test_replay_starts_from_past_models_and_weighs_uneven_work(tmp_path):
    run = configured("participation=autonomous", "participation.delay=4", "rounds=8")

    def step(x, came):
        # weight local.epochs / epochs_i, as normalize=reference says
        return x - sum(2 / task.epochs * (start - y) for task, start, y, _ in came) / len(came)

    module, loop = fit(run, tmp_path)
    assert torch.allclose(flat(module), recursion(run, step), atol=5e-6)
    assert loop.row["cohort/staleness"] > 0


def test_the_second_reading_measures_from_the_current_model_wherever_a_client_started(tmp_path):
    words = ["participation=autonomous_current", "participation.delay=4", "algorithm.eta=0.6", "rounds=8"]
    run = configured(*words)

    def step(x, came):
        # D_i = x_t - y_i, neither x_{t-tau} - y_i nor weighed by the work: x_{t+1} mixes x_t with the ends
        return x - 0.6 * sum(x - y for _, _, y, _ in came) / len(came)

    module, loop = fit(run, tmp_path)
    assert torch.allclose(flat(module), recursion(run, step), atol=5e-6)
    assert loop.row["cohort/staleness"] > 0
    from_start = flat(fit(configured(*words, "participation.anchor=start"), tmp_path)[0])
    assert not torch.allclose(flat(module), from_start, atol=5e-4)


def test_fedbuff_discounts_stale_updates_by_their_age(tmp_path):
    run = configured("participation=fedbuff", "participation.concurrency=6", "rounds=8")

    def step(x, came):
        return x - sum((1 + task.staleness) ** -0.5 * (start - y) for task, start, y, _ in came) / len(came)

    module, _ = fit(run, tmp_path)
    assert torch.allclose(flat(module), recursion(run, step), atol=5e-6)
    assert any(task.staleness for _, tasks in rounds(run)[1] for task in tasks)


def test_fedasync_mixes_the_clients_model_into_the_global_one(tmp_path):
    run = configured("participation=fedasync", "algorithm.eta=0.6", "rounds=12")

    def step(x, came):
        [(task, _, y, _)] = came
        a = 0.6 * task.weight
        return (1 - a) * x + a * y

    module, _ = fit(run, tmp_path)
    tasks = [task for _, [task] in rounds(run)[1]]
    assert torch.allclose(flat(module), recursion(run, step), atol=5e-6)
    assert any(task.staleness for task in tasks)
    assert all(task.weight == pytest.approx((1 + task.staleness) ** -0.5) for task in tasks)


def test_anarchic_afa_cd_divides_by_the_local_steps(tmp_path):
    run = configured("participation=anarchic", "participation.concurrency=5", "algorithm.eta=4.0", "rounds=8")

    def step(x, came):
        return x - 4 * sum((start - y) / steps for _, start, y, steps in came) / len(came)

    module, _ = fit(run, tmp_path)
    assert torch.allclose(flat(module), recursion(run, step), atol=5e-6)


def test_the_virtual_clock_is_in_the_row(tmp_path):
    row = fit(configured("participation=event", "rounds=3"), tmp_path)[1].row
    assert row["clock/time"] > 0


class Poisoned(Classification):
    """One client's loss is not a number."""

    client = victim = -1

    def training_step(self, batch, batch_idx):
        output = super().training_step(batch, batch_idx)
        return output if self.client != self.victim else {**output, "loss": output["loss"] * torch.nan}


class WhoTrains(pl.Callback):
    def on_train_batch_start(self, trainer, pl_module, batch, batch_idx):
        pl_module.client = batch.client


@pytest.mark.parametrize("policy", ["stop", "drop"])
def test_a_client_that_returns_nan_ends_the_run_or_is_left_out(policy):
    run = configured(f"clients.nonfinite={policy}", "rounds=2")
    _, plan = rounds(run)
    before, now = ({task.client for task in tasks} for _, tasks in plan)
    victim = min(now - before)  # takes part in round 2 alone
    module = Poisoned(linear(), lambda params: torch.optim.SGD(params, lr=run.local.lr))
    module.victim = victim
    parts = build_parts(run)
    clients = parts.load(run)
    trainer = training.build_trainer(run, [FedGM(parts.engine), WhoTrains()], 1)
    said = pytest.warns(UserWarning, match=f"round 2: the update of client {victim} is not finite")
    with said if policy == "drop" else nullcontext():
        loop = training.fit(run, parts, trainer, module, clients)
    if policy == "stop":
        assert loop.diverged == f"the update of client {victim} became non-finite in round 2"
        return
    net = linear()
    for t, tasks in plan:  # the mean of those that remain
        ends = [
            local(run, clients, net, task, t, lambda w, g: g)[0] for task in tasks if task.client != victim
        ]
        nn.utils.vector_to_parameters(sum(ends) / len(ends), net.parameters())
    assert loop.diverged is None
    assert (loop.row["cohort/clients"], loop.row["cohort/nonfinite"]) == (2, 1)
    assert torch.allclose(flat(module), flat(net), atol=2e-6)
