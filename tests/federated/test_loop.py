"""The loop against the same algorithm in plain torch, and against the Lightning that it leans on."""

from importlib import import_module
from pathlib import Path

import pytest
import torch
from torch import nn

from fedgm.draws import derive
from fedgm.federated.workers import FederatedDDP
from fedgm.lightning import pl
from fedgm.tasks.cross_entropy import Classification
from tests.federated.federated_run import configured, fit, flat, module_of, plain_torch

SIDE = 8 * 8 * 3


def close(a: nn.Module, b: nn.Module) -> bool:
    return torch.allclose(flat(a), flat(b), rtol=0, atol=1e-6)


def test_the_private_names_of_lightning_exist():
    """The canary: when Lightning moves one of them, this says which."""
    fitted = fit(configured("rounds=1"))
    stock = import_module("pytorch_lightning.loops.fit_loop")._FitLoop
    assert isinstance(fitted.loop, stock)
    places = {
        "pytorch_lightning.loops.fit_loop._FitLoop": stock,
        "epoch_loop": stock(fitted.trainer).epoch_loop,
        "epoch_progress": stock(fitted.trainer).epoch_progress.current.processed,
        "batch_progress": fitted.loop.epoch_loop.batch_progress.is_last_batch,
        "val_loop": fitted.loop.epoch_loop.val_loop.run,
        "automatic_optimization.optim_progress": (
            fitted.loop.epoch_loop.automatic_optimization.optim_progress.optimizer.step.increment_ready
        ),
        "_batches_that_stepped": fitted.loop.epoch_loop._batches_that_stepped,
        "update_lr_schedulers": fitted.loop.epoch_loop.update_lr_schedulers,
        "_data_source": fitted.loop._data_source.instance,
        "pytorch_lightning.trainer.call._call_lightning_module_hook": (
            import_module("pytorch_lightning.trainer.call")._call_lightning_module_hook
        ),
        "epoch_loop._results": fitted.loop.epoch_loop._results,
        "lightning_module._current_fx_name": fitted.module._current_fx_name,
        "trainer._logger_connector.on_batch_start": fitted.trainer._logger_connector.on_batch_start,
        "trainer._logger_connector.on_batch_end": fitted.trainer._logger_connector.on_batch_end,
        "pytorch_lightning.strategies.launchers.launcher._Launcher": (
            import_module("pytorch_lightning.strategies.launchers.launcher")._Launcher
        ),
        "strategy._configure_launcher": FederatedDDP()._configure_launcher,
        "strategy._launcher": FederatedDDP()._launcher,
        "pytorch_lightning.loops.loop._Loop": import_module("pytorch_lightning.loops.loop")._Loop,
        "pytorch_lightning.loops.progress._BaseProgress": (
            import_module("pytorch_lightning.loops.progress")._BaseProgress
        ),
        "trainer._logger_connector._first_loop_iter": fitted.trainer._logger_connector._first_loop_iter,
        "pytorch_lightning.trainer.call._call_callback_hooks": (
            import_module("pytorch_lightning.trainer.call")._call_callback_hooks
        ),
    }
    private = {name for place in places if (name := place.split(".")[-1]).startswith("_")}
    listed = (Path(__file__).parents[2] / "docs" / "decisions.md").read_text()
    assert [name for name in private if f"`{name}`" not in listed] == []


def test_two_rounds_equal_plain_torch_bit_for_bit():
    run = configured()
    start = module_of(run)
    expected = plain_torch(run, start.net)
    fitted = fit(run)
    assert torch.equal(flat(fitted.module), flat(expected))
    assert not torch.allclose(flat(expected), flat(start), atol=1e-3)


def test_two_rounds_of_fedavg_equal_plain_torch_bit_for_bit():
    run = configured("algorithm.eta=1", "algorithm.nu=0", "algorithm.beta=0")
    assert torch.equal(flat(fit(run).module), flat(plain_torch(run, module_of(run).net)))


def test_with_batchnorm_the_statistics_are_the_cohorts_mean():
    run = configured("profile.norm=batch")
    expected = plain_torch(run, module_of(run).net)
    got = fit(run).module.net
    assert close(got, expected)
    names = [name for name, _ in got.named_buffers()]
    for name, own, other in zip(names, got.buffers(), expected.buffers(), strict=True):
        assert torch.allclose(own, other, atol=1e-6), name
        assert own.dtype == other.dtype


@pytest.mark.parametrize(
    ("overrides", "optimizer"),
    [
        (["local.clip=0.3"], None),
        (["local.momentum=0.9"], lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9)),
        (["local.weight_decay=0.1"], lambda p: torch.optim.SGD(p, lr=0.05, weight_decay=0.1)),
        (
            ["local.optimizer=adamw", "local.lr=0.005", "local.weight_decay=0.1"],
            lambda p: torch.optim.AdamW(p, lr=0.005, weight_decay=0.1),
        ),
        (["local.lr=0.02"], None),
        (["local.batch_size=7"], None),
        (["local.epochs=1"], None),
        (["data.augment=crop_flip"], None),
        (["local.unit=steps", "local.epochs=5"], None),
    ],
)
def test_every_local_setting_counts_and_equals_plain_torch(overrides, optimizer):
    run = configured(*overrides)
    got = fit(run).module
    assert close(got, plain_torch(run, module_of(run).net, optimizer))
    assert not close(got, fit(configured()).module)


def test_the_optimiser_starts_afresh_in_every_round_and_leaves_nothing():
    """Momentum carried from client to client would show: the reference makes a new optimiser each time."""
    run = configured("local.momentum=0.9", "rounds=3")
    fitted = fit(run)
    expected = plain_torch(run, module_of(run).net, lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9))
    assert close(fitted.module, expected)
    assert not fitted.trainer.strategy.optimizers[0].state


def test_local_steps_are_counted():
    fitted = fit(configured("local.unit=steps", "local.epochs=4", "eval.every=1"))
    assert fitted.loop.row["cohort/steps"] == 3 * 4
    assert fitted.loop.local_steps == 2 * 3 * 4


def test_clients_by_samples_differ_from_uniform_and_are_right():
    slow = "local.lr=0.001"  # a larger one amplifies roundings beyond what is compared
    run = configured("clients.weights=samples", slow)
    got = fit(run).module
    by_size = plain_torch(run, module_of(run).net, weights=lambda n: [size / sum(n) for size in n])
    assert close(got, by_size)
    assert not close(got, fit(configured(slow)).module)


def test_global_step_advances_by_one_a_round():
    seen = []

    class Watch(pl.Callback):
        def on_train_epoch_end(self, trainer, pl_module):
            seen.append((trainer.global_step, trainer.current_epoch))

    fitted = fit(configured("rounds=3"), callbacks=[Watch()])
    assert seen == [(1, 0), (2, 1), (3, 2)]
    assert (fitted.trainer.global_step, fitted.trainer.current_epoch) == (3, 3)


class Breaks(Classification):
    """Fails in the second client of round 2."""

    calls = 0

    def training_step(self, batch, batch_idx):
        self.calls += batch_idx == 0
        if self.calls == 5 and batch_idx == 1:
            raise RuntimeError("power cut")
        return super().training_step(batch, batch_idx)


def test_a_round_is_a_transaction():
    run = configured("profile.norm=batch")
    after_one = fit(configured("profile.norm=batch", "rounds=1")).module
    plain = module_of(run)
    module = Breaks(plain.net, plain._optimizer, channels_last=True)
    with pytest.raises(RuntimeError, match="power cut"):
        fit(run, module)
    assert torch.equal(flat(module), flat(after_one))
    for own, other in zip(module.buffers(), after_one.buffers(), strict=True):
        assert torch.equal(own, other)


class Record(pl.Callback):
    def __init__(self):
        self.events, self.before, self.after = [], [], []

    def on_train_batch_start(self, trainer, pl_module, batch, batch_idx):
        self.events.append(("start", batch_idx, batch.client))

    def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
        self.events.append(("end", batch_idx, batch.client))

    def on_server_update(self, trainer, pl_module, update):
        self.events.append(("server", update.round))
        self.before.append(flat(pl_module))  # the module still holds x_t
        self.after.append(update.x.clone())  # the FedGM callback came first

    def on_train_epoch_end(self, trainer, pl_module):
        self.events.append("end of round")
        assert torch.equal(flat(pl_module), self.after[-1])


def test_callbacks_see_every_client_and_the_server_update():
    run, record = configured(), Record()
    start = flat(module_of(run))
    fitted = fit(run, callbacks=[record])
    expected = []
    for t in (1, 2):
        tasks = fitted.loop.participation.tasks(t)
        costs = [-fitted.loop.clients._cost(task) for task in tasks]
        order = sorted(range(3), key=lambda i: (costs[i], i))  # the client with most samples first
        for number, i in enumerate(order):
            expected += [("start", number, tasks[i].client), ("end", number, tasks[i].client)]
        expected += [("server", t), "end of round"]
    assert record.events == expected
    assert torch.equal(record.before[0], start)
    assert torch.equal(record.before[1], record.after[0])


class WithDropout(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Flatten(), nn.Linear(SIDE, 16), nn.ReLU(), nn.Dropout(0.5), nn.Linear(16, 10)
        )

    def forward(self, x):
        return self.layers(x)


def test_dropout_draws_from_seed_round_and_client():
    run = configured("model.channels_last=false")
    torch.manual_seed(3)
    net = WithDropout()
    start = {k: v.clone() for k, v in net.state_dict().items()}
    expected = plain_torch(run, net)  # seeds with (seed, "layers", round, client)
    results = []
    for noise in (1, 2):
        net.load_state_dict(start)
        torch.manual_seed(noise)  # whatever was drawn before
        results.append(flat(fit(run, module_of(run, net)).module))
    assert torch.equal(results[0], results[1])
    assert torch.allclose(results[0], flat(expected), atol=1e-6)
    seeds = {derive(0, "layers", t, c) for t in (1, 2, 3) for c in range(4)}
    assert len(seeds) == 12


@pytest.mark.parametrize(("precision", "dtype"), [("64-true", torch.float64), ("bf16-mixed", torch.float32)])
def test_other_precisions_run(precision, dtype):
    fitted = fit(configured(f"trainer.precision={precision}"))
    reference = fit(configured())
    assert {p.dtype for p in fitted.module.parameters()} == {dtype}
    assert fitted.loop.diverged is None
    got, plain = flat(fitted.module).double(), flat(reference.module).double()
    assert not torch.equal(got, plain)
    assert torch.allclose(got, plain, atol=1e-4 if precision == "64-true" else 0.1)
