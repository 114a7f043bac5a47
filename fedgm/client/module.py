"""The LightningModule of a client; between rounds it holds the global model."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from fedgm.lightning import pl

Batch = tuple[Tensor, Tensor]
OptimizerFactory = Callable[..., torch.optim.Optimizer]  # called with params=[...]


class ClientModule(pl.LightningModule):
    """Cross entropy on a classifier; subclass it to train something else.

    ``training_step`` returns the loss and, for the round's row, how many of the batch were right.
    It logs nothing itself: a ``self.log`` per local step would cost more than the step's overhead.
    """

    def __init__(self, net: nn.Module, optimizer: OptimizerFactory, channels_last: bool = False) -> None:
        super().__init__()
        self.net = net.to(memory_format=torch.channels_last) if channels_last else net  # pyright: ignore
        self._optimizer = optimizer
        self.measured: dict[
            str, float
        ] = {}  # of the last evaluation: test/loss, test/acc, train/loss, train/acc
        self._sums = torch.empty(0)

    def forward(self, x: Tensor) -> Tensor:
        """Class scores."""
        return self.net(x)

    def training_step(self, batch: Batch, batch_idx: int) -> dict[str, Tensor]:
        """Loss of one local step."""
        x, y = batch
        scores = self(x)
        return {"loss": F.cross_entropy(scores, y), "correct": _correct(scores, y)}

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """The local optimiser; the loop empties its state before each client."""
        return self._optimizer(params=[p for p in self.parameters() if p.requires_grad])

    def on_validation_epoch_start(self) -> None:
        """One cell per batch, so that neither order nor worker count can change the sum."""
        loaders: Any = self.trainer.val_dataloaders
        most = max(loader.batches for loader in loaders)
        self._sums = torch.zeros(len(loaders), most, 3, dtype=torch.float64, device=self.device)

    def validation_step(
        self, batch: tuple[int, Tensor, Tensor], batch_idx: int, dataloader_idx: int = 0
    ) -> None:
        """Loss, hits and size of one batch of the test set (loader 0) or the training subset (1)."""
        number, x, y = batch
        if number < 0:  # of a worker without a share
            return
        scores = self(x)
        loss = F.cross_entropy(scores, y, reduction="sum")
        cell = torch.stack(
            [loss.double(), _correct(scores, y).double(), loss.new_tensor(len(y), dtype=torch.double)]
        )
        self._sums[dataloader_idx, number] = cell

    def on_validation_epoch_end(self) -> None:
        """Means over all workers' batches."""
        sums = self.trainer.strategy.reduce(self._sums, reduce_op="sum").cpu()
        for name, (loss, correct, count) in zip(("test", "train"), sums.sum(1).tolist(), strict=True):
            self.measured[f"{name}/loss"] = loss / count
            self.measured[f"{name}/acc"] = correct / count


def _correct(scores: Tensor, y: Tensor) -> Tensor:
    """How many are classified right."""
    return (scores.detach().argmax(1) == y).sum()
