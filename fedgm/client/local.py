"""LocalOPT (Alg. 2): a client's steps from the weights it was given."""

from collections.abc import Iterable
from typing import NamedTuple, cast

import torch

from fedgm.client.module import Batch
from fedgm.client.rule import Adjust
from fedgm.lightning import pl


class LocalResult(NamedTuple):
    """What a client reports besides its weights; loss and hits are sums over its first local epoch."""

    steps: int
    samples: int
    loss: float
    correct: float
    measured: int  # samples behind loss and correct


def train_locally(
    trainer: pl.Trainer,
    batches: Iterable[Batch],
    first_epoch: int,
    parameters: list[torch.Tensor],
    adjust: Adjust | None = None,
) -> LocalResult:
    """Run the optimiser over ``batches``; the first ``first_epoch`` samples make up loss and accuracy.

    ``adjust`` is a client rule's hand on the gradients, before each step. Every call goes through the
    strategy, so Lightning's precision and gradient clipping hold.
    """
    strategy, optimizer = trainer.strategy, trainer.strategy.optimizers[0]
    optimizer.state.clear()  # the local optimiser starts afresh in every round
    steps = samples = measured = 0
    sums = torch.zeros(2, dtype=torch.float64, device=strategy.root_device)
    output: dict[str, torch.Tensor] = {}
    for step, batch in enumerate(batches):
        batch = strategy.batch_to_device(strategy.precision_plugin.convert_input(batch))

        def closure(batch: Batch = batch, step: int = step) -> torch.Tensor:
            output.update(cast(dict[str, torch.Tensor], strategy.training_step(batch, step)))
            optimizer.zero_grad()
            strategy.backward(output["loss"], optimizer)
            if adjust is not None:
                adjust(parameters)
            return output["loss"]

        strategy.optimizer_step(optimizer, closure)
        size = len(batch[1])
        if samples < first_epoch:
            sums += torch.stack([output["loss"].detach().double() * size, output["correct"].double()])
            measured += size
        steps, samples = steps + 1, samples + size
    optimizer.state.clear()  # nor does a checkpoint carry the last client's state
    loss, correct = sums.tolist()
    return LocalResult(steps, samples, loss, correct, measured)
