"""Any LightningModule under fedgm.federate: what Lightning promises of a fit holds of a federated one."""

import csv
import runpy
from copy import deepcopy
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import fedgm
from fedgm.draws import generator
from fedgm.errors import ConfigError, FedGMError
from fedgm.lightning import pl
from fedgm.participation import Autonomous, Uniform
from fedgm.schedule import Multistage
from fedgm.server import GeneralMomentum

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.filterwarnings(
    "ignore:The '(train|val|test)_dataloader' does not have many workers",
    "ignore:Starting from v1.9.0, `tensorboardX` has been removed",
    "ignore:You defined a `validation_step` but have no",
    "ignore:Checkpoint directory .* exists and is not empty",
)


def clients(count=4, size=12):
    x = torch.randn(count, size, 3, generator=torch.Generator().manual_seed(1))
    return [TensorDataset(part, (part[:, 0] > 0.2 * i).long()) for i, part in enumerate(x)]


class Net(pl.LightningModule):
    """Knows nothing of fedgm; returns its loss as a dict, logs, and has hooks of its own."""

    def __init__(self, make=lambda p: torch.optim.SGD(p, lr=0.1)):
        super().__init__()
        self.make, self.seen = make, []
        self.net = nn.Linear(3, 2)
        nn.init.constant_(self.net.weight, 0.1)
        nn.init.zeros_(self.net.bias)

    def training_step(self, batch, batch_idx):
        loss = nn.functional.cross_entropy(self.net(batch[0]), batch[1])
        self.log("fit/loss", loss, on_step=False, on_epoch=True)
        return {"loss": loss, "extra": 1}

    def validation_step(self, batch, batch_idx):
        self.log("val/loss", nn.functional.cross_entropy(self.net(batch[0]), batch[1]))

    test_step = validation_step

    def on_train_batch_start(self, batch, batch_idx):
        self.seen.append(len(batch[1]))

    def on_train_batch_end(self, outputs, batch, batch_idx):
        assert outputs["extra"] == 1

    def configure_optimizers(self):
        return self.make(self.parameters())


def trainer(folder, rounds=3, callbacks=(), rule=None, **options):
    rule = rule or GeneralMomentum(1.0, 0.9, 0.7)
    return pl.Trainer(
        max_epochs=rounds, accelerator="cpu", devices=1, callbacks=[fedgm.FedGM(rule), *callbacks],
        default_root_dir=folder, enable_progress_bar=False, enable_model_summary=False,
        **{"logger": False, "enable_checkpointing": False, **options},
    )  # fmt: skip


def loader():
    return DataLoader(clients(1, 20)[0], batch_size=5)


def fit(folder, module=None, rounds=3, callbacks=(), checkpoint=None, rule=None, federated=None, **options):
    own = trainer(folder, rounds, callbacks, rule, **options)
    fedgm.federate(own, clients(), **{"per_round": 2, "epochs": 2, "batch_size": 5, **(federated or {})})
    module = module or Net()
    own.fit(module, val_dataloaders=loader(), ckpt_path=checkpoint)
    return own, module


def flat(module):
    return nn.utils.parameters_to_vector(module.parameters()).detach().clone()


def test_the_example_runs_in_at_most_twenty_lines(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    path = ROOT / "examples" / "federate.py"
    lines = [
        line for line in path.read_text().splitlines() if line.strip() and not line.startswith(("#", '"""'))
    ]
    assert len(lines) <= 20
    runpy.run_path(str(path), run_name="__main__")
    printed = capsys.readouterr().out.splitlines()[-1].split()
    assert float(printed[1]) > 0.9
    assert printed[-2:] == ["20", "rounds"]


def test_it_is_fedgm_in_plain_torch(tmp_path):
    _, module = fit(tmp_path)
    net = Net().net
    x, d = flat(net), 0.0
    for t in (1, 2, 3):
        deltas = []
        for client in generator(0, "cohort", t).choice(4, 2, replace=False).tolist():
            own, rng = deepcopy(net), generator(0, "shuffle", t, client)
            sgd = torch.optim.SGD(own.parameters(), lr=0.1)
            data = clients()[client].tensors
            for _ in range(2):
                for chosen in torch.from_numpy(rng.permutation(12)).split(5):
                    sgd.zero_grad()
                    nn.functional.cross_entropy(own(data[0][chosen]), data[1][chosen]).backward()
                    sgd.step()
            deltas.append(x - flat(own))
        delta = (deltas[0].double() + deltas[1].double()).div(2).float()
        d = 0.1 * delta + 0.9 * d
        x = x - (0.3 * delta + 0.7 * d)
        nn.utils.vector_to_parameters(x, net.parameters())
    assert torch.equal(flat(module), x)


def test_logging_hooks_and_metrics_are_those_of_any_fit(tmp_path):
    own, module = fit(tmp_path)
    assert module.seen == [5, 5, 2] * 2 * 2 * 3  # passes, clients, rounds
    assert 0 < own.callback_metrics["fit/loss"] < 1
    assert own.callback_metrics["local/loss"] == pytest.approx(own.fit_loop.row["local/loss"])
    (validated,) = own.validate(module, loader(), verbose=False)
    (tested,) = own.test(module, loader(), verbose=False)
    assert validated["val/loss"] == tested["val/loss"] == pytest.approx(own.fit_loop.row["val/loss"])


def test_early_stopping_checkpoints_and_learning_rates_work(tmp_path):
    from pytorch_lightning.callbacks import EarlyStopping, LearningRateMonitor, ModelCheckpoint
    from pytorch_lightning.loggers import CSVLogger

    def halving(parameters):
        sgd = torch.optim.SGD(parameters, lr=0.1)
        return [sgd], [torch.optim.lr_scheduler.StepLR(sgd, step_size=1, gamma=0.5)]

    saver = ModelCheckpoint(tmp_path / "saved", monitor="val/loss", save_top_k=2)
    stop = EarlyStopping("val/loss", patience=1, mode="max")  # the loss falls: stopped at once
    rates = LearningRateMonitor("epoch")
    own, _ = fit(
        tmp_path, Net(halving), 9, [saver, stop, rates], logger=CSVLogger(tmp_path), enable_checkpointing=True
    )
    assert own.current_epoch == 2
    assert own.optimizers[0].param_groups[0]["lr"] == 0.1 / 4  # once a round, whatever clients did
    assert len(list((tmp_path / "saved").glob("*.ckpt"))) == 2
    text = next(tmp_path.rglob("metrics.csv")).read_text()
    assert "update/norm" in text
    assert "lr-SGD" in text


class Talks(Net):
    """Logs every local step, as most modules do."""

    def training_step(self, batch, batch_idx):
        step = super().training_step(batch, batch_idx)
        self.log("mine", float(batch_idx))
        return step


def test_a_logger_gets_each_evaluation_once_at_its_round_and_what_the_module_logs(tmp_path):
    from pytorch_lightning.loggers import CSVLogger

    seen = []

    class Rows(fedgm.FederatedCallback):
        def on_train_epoch_end(self, trainer, pl_module):
            seen.append(dict(trainer.fit_loop.row))

    own, _ = fit(tmp_path, Talks(), 3, [Rows()], logger=CSVLogger(tmp_path))
    with next(tmp_path.rglob("metrics.csv")).open() as file:
        lines = [{k: float(v) for k, v in row.items() if v} for row in csv.DictReader(file)]
    evaluations = [(row["step"], row["val/loss"]) for row in lines if "val/loss" in row]
    known = [own.fit_loop.initial["val/loss"], *(row["val/loss"] for row in seen)]
    assert evaluations == [(t, pytest.approx(value, abs=1e-6)) for t, value in enumerate(known)]
    assert [row["step"] for row in lines if "update/norm" in row] == [1, 2, 3]
    assert [row["mine"] for row in lines if "mine" in row] == [2.5] * 3  # mean of the steps 0 ... 5
    assert [row["step"] for row in lines if "fit/loss" in row] == [1, 2, 3]  # on_epoch=True: Lightning's mean


def test_a_scheduler_per_step_is_refused(tmp_path):
    def each_step(parameters):
        sgd = torch.optim.SGD(parameters, lr=0.1)
        scheduler = torch.optim.lr_scheduler.StepLR(sgd, 1)
        return {"optimizer": sgd, "lr_scheduler": {"scheduler": scheduler, "interval": "step"}}

    with pytest.raises(FedGMError, match="interval='step' is not supported"):
        fit(tmp_path, Net(each_step))


def test_without_a_callback_that_moves_x_it_refuses(tmp_path):
    class Listens(fedgm.FederatedCallback):
        pass

    own = pl.Trainer(
        max_epochs=2, accelerator="cpu", callbacks=[Listens()], logger=False, enable_checkpointing=False,
        enable_progress_bar=False, enable_model_summary=False,
    )  # fmt: skip
    fedgm.federate(own, clients())
    module = Net()
    before = flat(module)
    with pytest.raises(FedGMError, match=r"no callback moves the global model.*Add fedgm\.FedGM"):
        own.fit(module)
    assert torch.equal(flat(module), before)


def test_bad_input_is_named(tmp_path):
    with pytest.raises(ConfigError, match="per_round=9"):
        fedgm.federate(trainer(tmp_path), clients(), per_round=9)
    with pytest.raises(ConfigError, match=r"^epochs=0: expected at least 1\. Try epochs=1$"):  # as typed
        fedgm.federate(trainer(tmp_path), clients(), epochs=0)
    with pytest.raises(ConfigError, match="clients="):
        fedgm.federate(trainer(tmp_path), [])
    with pytest.raises(ConfigError, match=r"clients=DataLoaders.*\[loader.dataset for loader in loaders\]"):
        fedgm.federate(trainer(tmp_path), [DataLoader(client) for client in clients()])
    with pytest.raises(ConfigError, match="clients=DataLoader: expected a list of datasets"):
        fedgm.federate(trainer(tmp_path), DataLoader(clients()[0]))
    with pytest.raises(ConfigError, match="max_epochs=-1"):
        fedgm.federate(trainer(tmp_path, rounds=-1), clients())


class NoLoss(Net):
    def training_step(self, batch, batch_idx):
        return {"extra": 1}


def test_a_step_without_a_loss_is_refused(tmp_path):
    with pytest.raises(FedGMError, match="training_step returned dict without a loss"):
        fit(tmp_path, NoLoss())


def test_a_checkpoint_holds_momentum_past_models_and_clients_optimisers(tmp_path):
    """Stale clients, AdamW kept per client, two stages: continued after round 3 of 6 to the same bits."""
    adamw = lambda p: torch.optim.AdamW(p, lr=0.01)  # noqa: E731
    stale = Autonomous(Uniform(4, 2, 0), delay=3, epochs=[1, 2], reference=2, seed=0)
    options = {"federated": {"participation": stale, "state": "keep"}, "rule": GeneralMomentum(1.0, 0.9, 0.9)}

    class Half(pl.Callback):
        def on_train_epoch_end(self, trainer, pl_module):
            if trainer.fit_loop.epoch_progress.current.processed == 3:
                trainer.save_checkpoint(tmp_path / "half.ckpt")

    _, whole = fit(tmp_path, Net(adamw), 6, [Half()], **options)
    _, again = fit(tmp_path, Net(adamw), 6, checkpoint=tmp_path / "half.ckpt", **options)
    assert torch.equal(flat(whole), flat(again))
    options["federated"] |= {"state": "reset"}
    _, fresh = fit(tmp_path, Net(adamw), 6, **options)
    assert not torch.equal(flat(whole), flat(fresh))


def test_the_hooks_of_clients_server_and_stages(tmp_path):
    seen = []

    class Watch(fedgm.FederatedCallback):
        def on_client_start(self, trainer, pl_module, task):
            seen.append(("start", task.client))

        def on_client_end(self, trainer, pl_module, end):
            assert end.finite
            seen.append(("end", end.task.client, end.steps))

        def on_server_update(self, trainer, pl_module, update):
            seen.append(("server", update.round))

        def on_stage_end(self, trainer, pl_module, end):
            seen.append(str(end))

    rule = GeneralMomentum(2.0, 0.5, 1.0)
    own = trainer(tmp_path, 3, [Watch()])
    own.callbacks[0] = fedgm.FedGM(rule, Multistage([2.0, 1.0]))  # 1 round, then 2
    fedgm.federate(own, clients(), per_round=1, batch_size=6)
    own.fit(Net())
    cohort = [generator(0, "cohort", t).choice(4, 1, replace=False).item() for t in (1, 2, 3)]
    expected = [[("start", c), ("end", c, 2), ("server", t)] for t, c in enumerate(cohort, start=1)]
    # W1 = 2 * .5 / .5 = 2 = 1 * b / (1 - b), so b = 2/3
    drop = "stage 1 ends after round 1: eta 2 to 1, beta 0.5 to 0.6667"
    assert seen == [*expected[0], drop, *expected[1], *expected[2]]
