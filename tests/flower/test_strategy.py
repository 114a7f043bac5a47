"""Strategy beside Flower's own FedAvg and FedAvgM, on the same messages; parcels in Flower's types."""

import logging

import pytest
import torch

pytest.importorskip("flwr", reason="deployments need the extra `flower`, which has a venv of its own")

from flwr.app import Array, ArrayRecord, ConfigRecord, Error, Message, MetricRecord, RecordDict
from flwr.serverapp.strategy import FedAvg, FedAvgM
from flwr.supercore.task_identity import TaskIdentity

from fedgm.errors import FedGMError
from fedgm.flower import Strategy
from fedgm.flower.apps import FlowerPost, enclosed, parcel_in
from fedgm.schedule import Constant
from fedgm.server import GeneralMomentum
from fedgm.server.engine import Engine
from tests.flower.test_named_server import start, trained

pytestmark = [pytest.mark.deploy, pytest.mark.usefixtures("_task")]
ROUNDS, NODES = 6, 3


@pytest.fixture
def _task(monkeypatch):
    """Messages carry whose they are: Flower sets it in the processes that it starts."""
    for name in ("_task_id", "_run_id", "_node_id"):
        monkeypatch.setattr(TaskIdentity, name, 1)


class Node:
    def __init__(self, number, name=""):
        self.node_id, self.name, self.public_key = 1000 - number, name, b"key %d" % number


class MemoryGrid:
    """Answers at once, by ``reply(arrays, round, node)``."""

    def __init__(self, reply, names=("", "", "")):
        self.nodes = [Node(i, name) for i, name in enumerate(names)]
        self.reply, self.asked = reply, []

    def get_nodes(self):
        return self.nodes

    def get_node_ids(self):
        return [node.node_id for node in self.nodes]

    def push_messages(self, messages):
        self.waiting = list(messages)
        return [f"id {i}" for i, _ in enumerate(self.waiting)]

    def pull_messages(self, ids):
        return [self._answer(message) for message in self.waiting]

    def send_and_receive(self, messages, *, timeout=None):
        return [self._answer(message) for message in messages]

    def _answer(self, message):
        content, t = message.content, int(message.content["config"]["server-round"])
        node = 1000 - message.metadata.dst_node_id
        message.metadata.__dict__["_message_id"] = f"{t}/{node}"
        self.asked.append((t, node))
        return self.reply(message, dict(content["arrays"].to_torch_state_dict()), t, node)


def honest(message, arrays, t, node):
    content = {
        "arrays": ArrayRecord(trained(arrays, t, node)),
        "metrics": MetricRecord({"num-examples": 10, "loss": 1.5}),
    }
    return Message(RecordDict(content), reply_to=message)


def path(strategy, grid=None):
    """The arrays after each round, by Flower's own calls."""
    arrays, points = ArrayRecord(start()), []
    grid = grid or MemoryGrid(honest)
    for t in range(1, ROUNDS + 1):
        messages = strategy.configure_train(t, arrays, ConfigRecord(), grid)
        arrays, _ = strategy.aggregate_train(t, grid.send_and_receive(messages))
        points.append(arrays.to_torch_state_dict())
    return points


def ours(eta, beta, nu, **options):
    rule = GeneralMomentum(eta, beta, nu)
    return Strategy(Engine(rule, Constant().plan(ROUNDS, rule)), fraction_evaluate=0.0, **options)


def parameters(point):
    return {name: t for name, t in point.items() if t.is_floating_point() and "running" not in name}


def test_it_is_flowers_fedavg_at_1_0_0():
    for mine, theirs in zip(path(ours(1.0, 0.0, 0.0)), path(FedAvg(fraction_evaluate=0.0)), strict=True):
        for name, tensor in mine.items():
            torch.testing.assert_close(
                tensor.double(), theirs[name].double(), rtol=1e-5, atol=1e-6
            ) if tensor.is_floating_point() else None


@pytest.mark.parametrize(("lr", "b"), [(1.0, 0.9), (0.5, 0.5)])
def test_it_is_flowers_fedavgm_on_parameters_and_variances_stay_positive(lr, b):
    theirs = path(FedAvgM(server_learning_rate=lr, server_momentum=b, fraction_evaluate=0.0))
    mine = path(ours(lr / (1 - b), b, 1.0))
    for point, other in zip(mine, theirs, strict=True):
        for name, tensor in parameters(point).items():
            torch.testing.assert_close(tensor, other[name].to(tensor.dtype), rtol=1e-4, atol=1e-5)
        assert point["1.running_var"].min() > 0
        assert not point["1.num_batches_tracked"].is_floating_point()
    if b == 0.9:
        assert min(other["1.running_var"].min() for other in theirs) < 0


def test_nodes_are_drawn_from_seed_and_round_by_their_names():
    def cohorts(names, seed):
        grid = MemoryGrid(honest, names)
        path(ours(1.0, 0.9, 0.9, per_round=2, seed=seed), grid)
        order = sorted(range(NODES), key=lambda i: names[i])
        return [(t, order.index(node)) for t, node in grid.asked]

    first = cohorts(("a", "b", "c"), 0)
    assert first == cohorts(("c", "a", "b"), 0)  # whoever registered first
    assert first != cohorts(("a", "b", "c"), 1)
    assert len(first) == 2 * ROUNDS


def test_a_killed_server_continues(tmp_path):
    whole = path(ours(2.0, 0.9, 0.7))
    strategy = ours(2.0, 0.9, 0.7, folder=tmp_path)
    grid, arrays = MemoryGrid(honest), ArrayRecord(start())
    strategy.start(grid, arrays, num_rounds=2)
    again = ours(2.0, 0.9, 0.7, folder=tmp_path)
    arrays = again.resume(ArrayRecord(start()))
    assert again.done == 2
    result = again.start(grid, arrays, num_rounds=ROUNDS - again.done)
    end = result.arrays.to_torch_state_dict()
    assert all(torch.equal(end[name], tensor) for name, tensor in whole[-1].items())
    assert [t for t, _ in grid.asked][-1] == ROUNDS


def broken(kind):
    def reply(message, arrays, t, node):
        good = honest(message, arrays, t, node)
        if node != 1:
            return good
        if kind == "an error":
            return Message(Error(2, "no disk"), reply_to=message)
        content = good.content
        if kind == "nan":
            content["arrays"]["0.bias"] = Array((arrays["0.bias"] * float("nan")).numpy())
        if kind == "another shape":
            content["arrays"]["0.bias"] = Array(arrays["0.bias"][:-1].numpy())
        if kind == "a pickle":
            raw = b"\x80\x04\x95\x0b\x00\x00\x00\x00\x00\x00\x00\x8c\x07builtins."
            content["arrays"]["0.bias"] = Array("float32", (8,), "numpy.ndarray", raw)
        if kind == "nothing":
            content = RecordDict()
        return Message(content, reply_to=message)

    return reply


@pytest.mark.parametrize("kind", ["an error", "nan", "another shape", "a pickle", "nothing"])
def test_replies_that_cannot_count_are_named(kind, caplog, monkeypatch):
    monkeypatch.setattr(logging.getLogger("flwr"), "propagate", True)  # caplog listens at the root
    grid = MemoryGrid(broken(kind))
    with pytest.raises(FedGMError, match=r"round 1: 2 "):
        path(ours(1.0, 0.9, 0.9), grid)
    with caplog.at_level("WARNING", "flwr"):
        assert len(path(ours(1.0, 0.9, 0.9, min_replies=2), MemoryGrid(broken(kind)))) == ROUNDS
    assert "round 6 goes on without 999: " in caplog.text


def test_too_few_nodes_end_the_run():
    with pytest.raises(FedGMError, match=r"1 nodes are online after 0 s, 2 are needed"):
        path(ours(1.0, 0.9, 0.9, wait=0.0), MemoryGrid(honest, ("a",)))


def test_a_parcel_is_carried_as_it_is():
    assert parcel_in(enclosed(b"\x00anything\xff")) == b"\x00anything\xff"
    with pytest.raises(FedGMError, match="there is no parcel in it"):
        parcel_in(RecordDict())


class OneAnswer:
    def __init__(self, message):
        self.message = message

    def pull_messages(self, ids):
        return [self.message]


@pytest.mark.parametrize(("code", "lost"), [(2, False), (1, False), (5, True), (3, True), (8, True)])
def test_errors_of_the_network_may_be_asked_again_those_of_an_app_not(code, lost):
    order = Message(enclosed(b"x"), dst_node_id=1, message_type="train")
    order.metadata.__dict__["_message_id"] = "an order"
    (answer,) = FlowerPost(OneAnswer(Message(Error(code, "why"), reply_to=order))).pull(["an order"])
    assert (answer.id, answer.lost) == ("an order", lost)
    assert answer.error == f"why (code {code})"
