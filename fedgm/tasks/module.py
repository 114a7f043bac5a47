"""TaskModule: a LightningModule that gives a loss and sums by metric name; between rounds it holds x_t."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor, nn

from fedgm.lightning import pl
from fedgm.tasks.metric import LOSS, Metric

OptimizerFactory = Callable[..., torch.optim.Optimizer]  # called with params=[...]


class Numbered(NamedTuple):
    """A batch of an evaluation that workers share, with its number among all; -1 does not count."""

    number: int
    batch: Any


class TaskModule(pl.LightningModule, ABC):
    """A task is a subclass with two methods, ``training_step`` and ``sums``, and one yaml.

    It logs nothing per local step (that would cost more than the step's overhead): the loop adds up what
    ``training_step`` returns.
    """

    metrics: ClassVar[tuple[Metric, ...]] = (LOSS,)  # in the order of the columns; the loss first
    headline: ClassVar[str] = "test/loss"  # the column that judges a run, where eval.metric names none
    model_needs: ClassVar[tuple[str, ...]] = ()  # parameters of the model that the data decides

    def __init__(self, net: nn.Module, optimizer: OptimizerFactory, channels_last: bool = False) -> None:
        super().__init__()
        self.net = net.to(memory_format=torch.channels_last) if channels_last else net  # pyright: ignore
        self._optimizer = optimizer
        self.measured: dict[str, float] = {}  # of the last evaluation, by column
        self._table = torch.empty(0)

    @abstractmethod
    def training_step(self, batch: Any, batch_idx: int) -> dict[str, Any]:
        """The mean loss, sums of the other metrics by name, and ``count`` if it is not the batch's length."""

    @abstractmethod
    def sums(self, batch: Any) -> dict[str, Any]:
        """Sums over a batch of an evaluation by metric name, the loss included, and their ``count``."""

    def forward(self, *inputs: Any) -> Any:
        """The network's output."""
        return self.net(*inputs)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """The local optimiser; the loop gives it a new state, or the client's own, before each client."""
        return self._optimizer(params=[p for p in self.parameters() if p.requires_grad])

    # Evaluation: one cell per batch, so that neither order nor worker count can change the sum ------

    def on_validation_epoch_start(self) -> None:
        """An empty table."""
        self._begin(self.trainer.val_dataloaders)

    def validation_step(self, batch: Any, batch_idx: int, dataloader_idx: int = 0) -> None:
        """One cell of the table."""
        self._fill(batch, batch_idx, dataloader_idx)

    def on_validation_epoch_end(self) -> None:
        """Means over all workers' batches."""
        self._close(self.trainer.val_dataloaders, "val")

    def on_test_epoch_start(self) -> None:
        """An empty table."""
        self._begin(self.trainer.test_dataloaders)

    def test_step(self, batch: Any, batch_idx: int, dataloader_idx: int = 0) -> None:
        """``trainer.test`` measures as ``trainer.validate`` does."""
        self._fill(batch, batch_idx, dataloader_idx)

    def on_test_epoch_end(self) -> None:
        """Means over all workers' batches."""
        self._close(self.trainer.test_dataloaders, "test")

    def _begin(self, given: Any) -> None:
        loaders = _as_list(given)
        most = max(getattr(loader, "batches", len(loader) * self.trainer.world_size) for loader in loaders)
        width = len(self.metrics) + 1
        self._table = torch.zeros(len(loaders), most, width, dtype=torch.float64, device=self.device)

    def _fill(self, batch: Any, batch_idx: int, loader: int) -> None:
        if not isinstance(batch, Numbered):  # of an ordinary loader
            batch = Numbered(batch_idx * self.trainer.world_size + self.trainer.global_rank, batch)
        if batch.number < 0:  # of a worker without a share
            return
        sums = self.sums(batch.batch)
        values = [sums[metric.name] for metric in self.metrics] + [sums["count"]]
        self._table[loader, batch.number] = torch.stack(
            [torch.as_tensor(value, dtype=torch.float64, device=self.device) for value in values]
        )

    def _close(self, given: Any, otherwise: str) -> None:
        sums = self.trainer.strategy.reduce(self._table, reduce_op="sum").cpu()
        names = [metric.name for metric in self.metrics]
        totals = sums.sum(1).tolist()
        for number, (loader, values) in enumerate(zip(_as_list(given), totals, strict=True)):
            split = getattr(loader, "split", otherwise if number == 0 else f"{otherwise}_{number}")
            if groups := getattr(loader, "groups", None):
                self.measured |= spread(split, names, sums[number, : len(groups)], groups)
                continue
            for name, value in zip(names, values, strict=False):
                self.measured[f"{split}/{name}"] = value / values[-1]
        for column, value in self.measured.items():  # for Lightning's callbacks; rows are the loop's
            self.log(column, value, logger=False, sync_dist=True)


def spread(split: str, names: list[str], cells: Tensor, groups: list[int]) -> dict[str, float]:
    """Mean, deviation and 10 % quantiles over groups of batches, of each metric: every group counts alike."""
    sums = torch.zeros(max(groups) + 1, cells.shape[1], dtype=cells.dtype)
    sums.index_add_(0, torch.tensor(groups), cells)
    means = sums[:, :-1] / sums[:, -1:]
    columns: dict[str, float] = {}
    for name, values in zip(names, means.T, strict=True):
        columns[f"{split}/{name}_mean"] = values.mean().item()  # the ends are those of metric.SPREAD
        columns[f"{split}/{name}_std"] = values.std(correction=0).item()
        columns[f"{split}/{name}_p10"] = values.quantile(0.1).item()
        columns[f"{split}/{name}_p90"] = values.quantile(0.9).item()
    return columns


def _as_list(loaders: Any) -> list[Any]:
    return list(loaders) if isinstance(loaders, list | tuple) else [loaders]
