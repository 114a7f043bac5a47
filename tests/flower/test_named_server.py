"""The server for Flower apps with clients of their own: Eq. 2 on parameters, means elsewhere, a record."""

import json
from typing import ClassVar

import pytest
import torch
from safetensors.torch import load_file
from torch import nn

import fedgm
from fedgm.config import compose, validate
from fedgm.errors import FedGMError
from fedgm.federated.cohort import CohortTrainer
from fedgm.flower.named import NamedServer, Reply
from fedgm.running.parts import build_parts
from fedgm.running.start import execute
from fedgm.schedule import Constant, Multistage
from fedgm.screen import Screen
from fedgm.server import GeneralMomentum
from fedgm.server.adaptive import FedAdam
from fedgm.server.engine import Engine
from fedgm.server.fedexp import FedExP
from tests.flower.memory_post import WORDS

ROUNDS = 6


def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Linear(8, 2))


def engine(rule=None, schedule=None):
    rule = rule or GeneralMomentum(2.0, 0.9, 0.7)
    return Engine(rule, (schedule or Constant()).plan(ROUNDS, rule))


def trained(arrays, t, node):
    """What a client would return: other weights, smaller variances, one batch more."""
    generator = torch.Generator().manual_seed(100 * t + node)
    after = {}
    for name, tensor in arrays.items():
        noise = torch.rand(tensor.shape, generator=generator)
        if not tensor.is_floating_point():
            after[name] = tensor + 1 + node % 2
        elif name.endswith("running_var"):
            after[name] = tensor * (0.05 + 0.1 * noise)
        else:
            after[name] = tensor - 0.1 * noise.to(tensor.dtype)
    return after


def replies(arrays, t, nodes=3):
    return {f"node {i}": Reply(trained(arrays, t, i), 10 + i) for i in range(nodes)}


def path(server, arrays, rounds=ROUNDS):
    points = []
    for t in range(server.done + 1, server.done + rounds + 1):
        arrays = server.step(arrays, replies(arrays, t))
        server.save(arrays)
        points.append(arrays)
    return points


def start():
    return {name: tensor.clone() for name, tensor in network().state_dict().items()}


def test_it_is_fedavg_at_1_0_0_and_counters_stay_integers():
    arrays = start()
    after = NamedServer(engine(GeneralMomentum(1.0, 0.0, 0.0))).step(arrays, replies(arrays, 1))
    for name, tensor in after.items():
        mean = torch.stack([reply.arrays[name].double() for reply in replies(arrays, 1).values()]).mean(0)
        assert tensor.dtype == arrays[name].dtype
        if tensor.is_floating_point():
            torch.testing.assert_close(tensor.double(), mean, rtol=1e-6, atol=1e-7)
        else:
            assert tensor.item() == int(mean)


def test_momentum_is_on_parameters_and_variances_stay_positive():
    b = 0.9
    arrays, server = start(), NamedServer(engine(GeneralMomentum(1.0 / (1 - b), b, 1.0)))
    buffer, x = torch.zeros(8, 4), arrays["0.weight"]
    for t in range(1, ROUNDS + 1):
        came = replies(arrays, t)
        D = x - torch.stack([reply.arrays["0.weight"] for reply in came.values()]).mean(0)
        buffer = b * buffer + D
        x = x - buffer  # FedAvgM as it is usually written
        arrays = server.step(arrays, came)
        torch.testing.assert_close(arrays["0.weight"], x, rtol=1e-5, atol=1e-6)
        assert arrays["1.running_var"].min() > 0
    # Momentum on the variances, as Flower's own FedAvgM has it, makes them negative.
    var, d, lowest = start()["1.running_var"], torch.zeros(8), 1.0
    for _ in range(1, ROUNDS + 1):
        D = var - torch.stack([var * (0.05 + 0.1 * torch.rand(8)) for _ in range(3)]).mean(0)
        d = b * d + D
        var = var - d
        lowest = min(lowest, var.min().item())
    assert lowest < 0


@pytest.mark.parametrize(
    ("rule", "schedule"),
    [
        (None, Multistage([2.0, 1.0])),
        (FedAdam(0.1, 0.9, 1e-3, 0.99), None),
        (FedExP(1.0, 0.9, 0.9, 1e-3), None),
    ],
    ids=["multistage", "fedadam", "fedexp"],
)
def test_a_killed_server_continues_bit_for_bit(rule, schedule, tmp_path):
    whole = path(NamedServer(engine(rule, schedule)), start())
    path(NamedServer(engine(rule, schedule), folder=tmp_path), start(), rounds=3)
    again = NamedServer(engine(rule, schedule), folder=tmp_path)
    arrays = again.resume(start())
    assert again.done == 3
    after = path(again, arrays, rounds=3)
    assert all(torch.equal(whole[-1][name], tensor) for name, tensor in after[-1].items())
    lines = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert [line["round"] for line in lines] == list(range(1, ROUNDS + 1))
    assert json.loads((tmp_path / "summary.json").read_text())["status"] == "finished"


def test_its_folder_is_read_as_a_run(tmp_path):
    path(NamedServer(engine(), folder=tmp_path / "run" / "seed=0"), start())
    frame = fedgm.load_runs(tmp_path)
    assert frame["round"].tolist() == list(range(1, ROUNDS + 1))
    assert frame["server/eta"].tolist() == [2.0] * ROUNDS


def test_the_state_of_another_run_is_refused(tmp_path):
    path(NamedServer(engine(), folder=tmp_path), start(), rounds=2)
    other = NamedServer(engine(GeneralMomentum(1.0, 0.5, 0.5)), folder=tmp_path)
    with pytest.raises(FedGMError, match="is not of this run"):
        other.resume(start())


def broken(change):
    arrays = start()
    came = replies(arrays, 1)
    change(came["node 1"].arrays)
    return arrays, came


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda a: a.pop("0.weight"), "other arrays than were sent (0.weight)"),
        (lambda a: a.update({"0.bias": torch.zeros(9)}), "0.bias is torch.float32 of shape [9]"),
        (lambda a: a.update({"0.bias": torch.zeros(8).double()}), "0.bias is torch.float64 of shape [8]"),
        (lambda a: a["2.bias"].fill_(float("inf")), "2.bias is not finite"),
    ],
)
def test_a_reply_that_does_not_fit_is_named_and_dropped(change, said):
    arrays, came = broken(change)
    server = NamedServer(engine())
    after = server.step(arrays, came, least=2)
    assert server.dropped == {"node 1": said}
    del came["node 1"]
    without = NamedServer(engine()).step(arrays, came)
    assert all(torch.equal(without[name], tensor) for name, tensor in after.items())
    arrays, came = broken(change)
    with pytest.raises(FedGMError, match="2 replies count, 3 are needed"):
        NamedServer(engine()).step(arrays, came, least=3)


def test_by_samples_and_in_any_order():
    arrays = start()
    came = replies(arrays, 1)
    server = NamedServer(engine(GeneralMomentum(1.0, 0.0, 0.0)), weights="samples")
    after = server.step(arrays, dict(reversed(came.items())))
    weights = torch.tensor([10.0, 11.0, 12.0]) / 33
    mean = sum(w * reply.arrays["0.weight"] for w, reply in zip(weights, came.values(), strict=True))
    torch.testing.assert_close(after["0.weight"], mean, rtol=1e-5, atol=1e-6)
    again = NamedServer(engine(GeneralMomentum(1.0, 0.0, 0.0)), weights="samples").step(arrays, came)
    assert all(torch.equal(again[name], tensor) for name, tensor in after.items())


class Recorded(CohortTrainer):
    """Trains as ever, and writes down what each client returns, as a Flower client would send it."""

    start: ClassVar[dict] = {}
    rounds: ClassVar[list] = []

    def train(self, tasks, t, history):
        if t == 1:
            type(self).start, type(self).rounds = self.named(history[0]), []
        self.rounds.append({})
        return super().train(tasks, t, history)

    def update(self, task, t, history):
        update = super().update(task, t, history)
        samples = self.data.size(task.client)
        self.rounds[-1][f"node {task.client}"] = Reply(self.named(update.after), samples)
        return update

    def named(self, snapshot):
        held = self.weights.read()
        self.weights.write(snapshot)
        state = self.trainer.lightning_module.net.state_dict()
        named = {name: tensor.clone() for name, tensor in state.items()}
        self.weights.write(held)
        return named


LOOPS = {
    "fedgm with batchnorm": ["model.norm=batch", "data.min_samples=2"],
    "multistage": ["schedule=multistage", "schedule.etas=[2.0,1.0]"],
    "fedadam by samples": ["algorithm=fedadam", "clients.weights=samples"],
}


@pytest.mark.parametrize("words", LOOPS.values(), ids=LOOPS)
def test_it_is_the_loop_byte_for_byte(words, tmp_path):
    words = [*WORDS, "rounds=5", *words, f"output_dir={tmp_path}", "trainer.workers=1"]
    folder = execute(compose(words), words, Screen(), cohorts=Recorded).folder
    config = validate(compose(words))
    server = NamedServer(build_parts(config).engine, weights=config.clients.weights)
    arrays = Recorded.start
    for came in Recorded.rounds:
        arrays = server.step(arrays, dict(reversed(came.items())))
    stored = load_file(folder / "model.safetensors")
    assert server.done == 5
    assert stored.keys() == {f"net.{name}" for name in arrays}
    for name, tensor in arrays.items():
        assert torch.equal(tensor, stored[f"net.{name}"]), name
