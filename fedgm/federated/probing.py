"""Before a round: the loss of x_t on candidates, for a sampler that chooses by it."""

from collections.abc import Iterable, Mapping
from typing import Any

import torch

from fedgm.client.hooks import ModuleHooks
from fedgm.client.local import batch_size, loss_of
from fedgm.data.clients import ClientData, HasOwnSamples
from fedgm.errors import FedGMError
from fedgm.lightning import pl
from fedgm.participation.choosing import Chooses, Measured
from fedgm.tasks.metric import Row

FLOAT = 4  # bytes of a loss


class Chooser:
    """Asks a sampler for candidates, measures them and lets it choose."""

    def __init__(self, sampler: Chooses, trainer: pl.Trainer, data: ClientData) -> None:
        self.sampler, self.trainer, self.data = sampler, trainer, data
        self.row: Row = {}

    def choose(self, t: int, size: int) -> None:
        """The cohort of round ``t``; ``size`` is what a client downloads to be measured."""
        how, losses = self.sampler.measures, dict[int, float]()
        if how != "nothing":
            losses = probe(self.trainer, self.data, self.sampler.candidates(t), t, how)
        cohort = self.sampler.choose(t, losses)
        self.row = {
            "cohort/probed": len(losses),
            "bytes/probe_up": FLOAT * len(losses),
            "bytes/probe_down": size * len(losses.keys() - set(cohort)),  # the others get x_t to train
        }


def probe(
    trainer: pl.Trainer, data: ClientData, clients: list[int], t: int, how: Measured
) -> dict[int, float]:
    """The mean loss of the global model on each client's samples, or on one batch of them.

    Workers share the clients; the others leave zeros in the table, so that the sum is exact. Layers are in
    evaluation mode: nothing is drawn, and no statistic moves. A batch is that of round -t: no round trains on
    it by right.
    """
    module, hooks = trainer.lightning_module, ModuleHooks(trainer)
    table = torch.zeros(len(clients), dtype=torch.float64, device=trainer.strategy.root_device)
    module.eval()
    try:
        with torch.no_grad():
            for place in range(trainer.global_rank, len(clients), trainer.world_size):
                batches = _batches(data, clients[place], t, how)
                table[place] = _mean_loss(trainer.strategy, hooks, batches)
    finally:
        module.train()
    table = trainer.strategy.reduce(table, reduce_op="sum")
    return dict(zip(clients, table.tolist(), strict=True))


def _batches(data: ClientData, client: int, t: int, how: Measured) -> Iterable[Any]:
    if how == "batch":
        return data.batches(client, -t, 1)
    if not isinstance(data, HasOwnSamples):
        raise FedGMError(
            "this sampler measures all samples of a client, but these data have no own_samples(client). "
            "Add it, or take the variant that measures one batch"
        )
    samples = data.own_samples(client)
    return (samples.batch(number) for number in range(len(samples)))


def _mean_loss(strategy: Any, hooks: ModuleHooks, batches: Iterable[Any]) -> float:
    total = count = 0.0
    for batch in batches:
        batch = strategy.batch_to_device(strategy.precision_plugin.convert_input(batch))
        output = hooks.measuring_step(batch)
        counted = output.get("count") if isinstance(output, Mapping) else None
        seen = batch_size(batch) if counted is None else float(counted)
        total, count = total + loss_of(output).item() * seen, count + seen
    return total / count
