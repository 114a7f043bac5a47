"""What a client sends and what it keeps: the upload seam, and the inner optimiser's state."""

from dataclasses import dataclass

import pytest
import torch
from torch.nn import functional as F

from fedgm.client.store import ClientStore, Kept, MemoryStore, read_state, write_state
from fedgm.draws import generator
from fedgm.errors import ConfigError
from fedgm.federated.callback import FedGM
from fedgm.running import trainer as training
from fedgm.running.parts import build_parts, load_clients
from fedgm.upload import Sent
from tests.federated.federated_run import configured, fit, flat, module_of

HERE = f"{__name__}"
FEDAVG = ("algorithm.eta=1", "algorithm.beta=0", "algorithm.nu=0")


@dataclass(frozen=True)
class SignOnly:
    """One bit an entry and a scale, with error feedback; and a draw, so that its generator is seen."""

    keeps = True

    def send(self, delta, kept, rng):
        whole = delta + kept.get("residual", torch.zeros_like(delta))
        sent = whole.abs().mean() * whole.sign()
        return Sent(
            sent, 4 + (delta.numel() + 7) // 8, {"residual": whole - sent, "draw": torch.tensor(rng.random())}
        )


def run_with(store, *overrides):
    run = configured("rounds=3", *overrides)
    parts = build_parts(run)
    trainer = training.build_trainer(run, [FedGM(parts.engine)], 1)
    module, data = module_of(run), parts.load(run)
    loop = training.fit(run, parts, trainer, module, data, None, store)
    return run, module, loop


def test_an_upload_rule_sees_every_delta_keeps_its_state_and_counts_its_bytes(tmp_path):
    run, module, loop = run_with(MemoryStore(), f"upload._target_={HERE}.SignOnly", *FEDAVG)
    # The recursion: x -= mean of sign-compressed (delta + residual), each client with a residual of its own.
    data, net = load_clients(run), module_of(run).net
    x, kept = flat(net), {}
    for t in (1, 2, 3):
        sent = []
        for task in loop.participation.tasks(t):
            torch.nn.utils.vector_to_parameters(x.clone(), net.parameters())
            sgd = torch.optim.SGD(net.parameters(), lr=run.local.lr)
            for images, labels in data.batches(task.client, t, 2 * data.epoch(task.client)):
                sgd.zero_grad()
                F.cross_entropy(net(images), labels).backward()
                sgd.step()
            whole = x - flat(net) + kept.get(task.client, 0)
            sent.append(whole.abs().mean() * whole.sign())
            kept[task.client] = whole - sent[-1]
            draw = loop.parts.store.load(task.client, t + 1)["upload/draw"]
            last = max(s for s in (1, 2, 3) if task.client in [k.client for k in loop.participation.tasks(s)])
            assert draw.item() == pytest.approx(generator(0, "upload", last, task.client).random())
        x = x - (sum(s.double() for s in sent) / 3).float()
    assert torch.allclose(flat(module), x, atol=1e-6)
    n = x.numel()
    assert loop.row["bytes/up"] == 3 * (4 + (n + 7) // 8)
    assert loop.row["bytes/down"] == 3 * 4 * n


def test_the_whole_delta_is_four_bytes_an_entry():
    fitted = fit(configured("rounds=1"))
    assert fitted.loop.row["bytes/up"] == fitted.loop.row["bytes/down"] == 3 * 4 * flat(fitted.module).numel()


def test_an_unknown_upload_parameter_is_named():
    with pytest.raises(ConfigError, match=r"upload\.k=3"):
        build_parts(configured("+upload.k=3"))


def test_mifa_steps_with_what_clients_keep_and_takes_no_upload_rule():
    with pytest.raises(ConfigError, match=r"upload=plain.*client=mifa"):
        build_parts(configured("client=mifa", f"upload._target_={HERE}.SignOnly"))


def test_a_rule_under_another_name_needs_what_it_needs():
    with pytest.raises(ConfigError, match=r"client=mine.*plain SGD"):
        build_parts(configured("client=scaffold", "client.name=mine", "local.momentum=0.5"))


# local.state ----------------------------------------------------------------------------------------------


def test_one_client_that_keeps_its_optimiser_is_an_uninterrupted_run(tmp_path):
    """FedAvg with eta = 1 over one client takes no outer step: AdamW must not notice the rounds."""
    alone = ("clients.count=1", "clients.per_round=1", *FEDAVG, "local.optimizer=adamw")
    run, module, _ = run_with(ClientStore(tmp_path / "kept"), *alone, "local.state=keep", "local.lr=0.003")
    data, net = load_clients(run), module_of(run).net
    adamw = torch.optim.AdamW(net.parameters(), lr=0.003, weight_decay=0)
    for t in (1, 2, 3):
        for images, labels in data.batches(0, t, 2 * data.epoch(0)):
            adamw.zero_grad()
            F.cross_entropy(net(images), labels).backward()
            adamw.step()
    assert torch.allclose(flat(module), flat(net), atol=2e-6)
    _, reset, _ = run_with(None, *alone, "local.lr=0.003")
    assert not torch.allclose(flat(module), flat(reset), atol=1e-4)


@pytest.mark.parametrize("make", [torch.optim.AdamW, lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9)])
def test_an_optimiser_comes_back_as_it_was(make):
    torch.manual_seed(0)
    net = torch.nn.Conv2d(3, 8, 3).to(memory_format=torch.channels_last)
    first, x = make(net.parameters()), torch.randn(2, 3, 8, 8)

    def step(optimizer):
        optimizer.zero_grad()
        net(x).square().mean().backward()
        optimizer.step()

    step(first)
    kept, start = read_state(first), {k: v.clone() for k, v in net.state_dict().items()}
    step(first)
    expected = flat(net)
    net.load_state_dict(start)
    second = make(net.parameters())
    write_state(second, kept)
    step(second)
    assert torch.equal(flat(net), expected)
    write_state(second, {})
    assert read_state(second) == {}


def test_what_a_client_keeps_is_told_apart():
    one = Kept({"c": torch.ones(1)}, {"residual": torch.zeros(2)}, {"0.exp_avg": torch.ones(3)})
    assert set(one.joined()) == {"c", "upload/residual", "optimizer/0.exp_avg"}
    assert Kept.split(one.joined()) == one
