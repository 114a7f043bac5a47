"""Local work that changes over rounds: epochs of tasks, the optimiser's rate, the size of batches."""

from collections.abc import Sequence

from fedgm.data.clients import ClientData, Rebatches
from fedgm.errors import FedGMError
from fedgm.lightning import pl
from fedgm.participation import ClientTask
from fedgm.schedule.work import Work, at
from fedgm.tasks.metric import Row


class StagedWork:
    """Sets what ``work=`` says of a round; nothing of it has to be saved."""

    def __init__(self, stages: Sequence[tuple[int, Work]], trainer: pl.Trainer, data: ClientData) -> None:
        self.stages, self.trainer, self.data = stages, trainer, data
        self._batched: dict[int, ClientData] = {}
        self.row: Row = {}

    def begin(self, t: int, tasks: list[ClientTask]) -> tuple[list[ClientTask], ClientData]:
        """The tasks and the data of round ``t``; the optimiser's rate is set."""
        work = at(self.stages, t)
        if work.epochs is not None:
            tasks = [task._replace(epochs=work.epochs) for task in tasks]
        if work.lr is not None:
            for group in self.trainer.strategy.optimizers[0].param_groups:
                group["lr"] = work.lr
        named = {"epochs": work.epochs, "rate": work.lr, "batch": work.batch_size}
        self.row = {f"work/{name}": value for name, value in named.items() if value is not None}
        return tasks, self.data if work.batch_size is None else self._of(work.batch_size)

    def _of(self, batch_size: int) -> ClientData:
        if batch_size not in self._batched:
            if not isinstance(self.data, Rebatches):
                raise FedGMError("these data have no rebatched(batch_size), which work.batch_sizes needs")
            self._batched[batch_size] = self.data.rebatched(batch_size)
        return self._batched[batch_size]
