"""How good the global model is after a step of each client: what Per-FedAvg trains for."""

import torch
from torch import Tensor

from fedgm.client.local import loss_of
from fedgm.client.weights import FlatWeights
from fedgm.data.clients import ClientData, HasHeldOut, held_out_clients
from fedgm.errors import require, require_fits
from fedgm.federated.events import FederatedCallback
from fedgm.federated.loop import FederatedLoop, rounds_done
from fedgm.lightning import pl
from fedgm.tasks import TaskModule
from fedgm.tasks.module import spread

SPLIT = "personal"


class AfterSteps(FederatedCallback):
    """``steps`` of gradient descent of each client on a batch of its own, then its held-out samples.

    Columns ``personal/*``: mean, deviation and quantiles over clients, as those of ``eval.held_out``, which
    measures the same clients without a step. Batches are those of round -t, on which no round trains. The
    model that is trained is left as it was. A step is taken in evaluation mode: no statistic moves.
    """

    def __init__(self, clients: int = 10, steps: int = 1, lr: float = 0.01, seed: int = 0) -> None:
        require(
            clients >= 1, "callbacks.personal.clients", clients, "at least 1", "callbacks.personal.clients=10"
        )
        require(steps >= 0, "callbacks.personal.steps", steps, "at least 0", "callbacks.personal.steps=1")
        require(
            0 <= lr < 1e30,
            "callbacks.personal.lr",
            lr,
            "a number of at least 0",
            "callbacks.personal.lr=0.01",
        )
        self.clients, self.steps, self.lr, self.seed = clients, steps, lr, seed
        self.drawn: list[int] = []

    def on_fit_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Refuse what cannot be measured before anything is trained."""
        loop, key = trainer.fit_loop, "callbacks.personal.clients"
        assert isinstance(loop, FederatedLoop)
        hint = "callbacks=none, or data=hapt, chitchat, shakespeare or text"
        ok = isinstance(loop.data, HasHeldOut) and isinstance(pl_module, TaskModule)
        allowed = "data whose clients have held-out samples of their own, and a task of fedgm"
        require_fits(ok, key, str(self.clients), allowed, hint)
        self.drawn = held_out_clients(loop.data, self.clients, self.seed, key)

    def on_validation_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Beside what the evaluation of the global model has measured."""
        loop = trainer.fit_loop
        if trainer.sanity_checking or not isinstance(loop, FederatedLoop) or not self.drawn:
            return
        assert isinstance(pl_module, TaskModule)
        names = [metric.name for metric in pl_module.metrics]
        table = torch.zeros(len(self.drawn), len(names) + 1, dtype=torch.float64)
        weights, t = FlatWeights(pl_module), rounds_done(trainer) + 1
        x, trains = weights.read(), pl_module.training
        pl_module.eval()
        with torch.inference_mode(False), torch.enable_grad():
            for place in range(trainer.global_rank, len(self.drawn), trainer.world_size):
                client = self.drawn[place]
                self._step(trainer, loop.data, client, t)
                table[place] = self._measure(trainer, loop.data, client, names)
                weights.write(x)
        pl_module.zero_grad()
        pl_module.train(trains)
        device = trainer.strategy.root_device
        table = trainer.strategy.reduce(table.to(device), reduce_op="sum").cpu()
        pl_module.measured |= spread(SPLIT, names, table, list(range(len(self.drawn))))

    def _step(self, trainer: pl.Trainer, data: ClientData, client: int, t: int) -> None:
        """w -= lr grad f_i(w; B), a batch each."""
        module, strategy = trainer.lightning_module, trainer.strategy
        for batch in data.batches(client, -t, self.steps) if self.steps else ():
            module.zero_grad()
            batch = strategy.batch_to_device(strategy.precision_plugin.convert_input(batch))
            with strategy.precision_plugin.train_step_context():
                loss = loss_of(module.training_step(batch, 0))
            loss.backward()
            with torch.no_grad():
                for p in module.parameters():
                    if p.grad is not None:
                        p.sub_(p.grad, alpha=self.lr)

    def _measure(self, trainer: pl.Trainer, data: ClientData, client: int, names: list[str]) -> Tensor:
        """Sums of each metric over the client's held-out samples, and their count."""
        module, strategy = trainer.lightning_module, trainer.strategy
        assert isinstance(module, TaskModule)
        assert isinstance(data, HasHeldOut)
        samples, total = data.held_out(client), torch.zeros(len(names) + 1, dtype=torch.float64)
        with torch.no_grad():
            for number in range(len(samples)):
                batch = strategy.precision_plugin.convert_input(samples.batch(number))
                with strategy.precision_plugin.val_step_context():
                    sums = module.sums(strategy.batch_to_device(batch))
                total += torch.tensor([float(sums[name]) for name in [*names, "count"]], dtype=torch.float64)
        return total
