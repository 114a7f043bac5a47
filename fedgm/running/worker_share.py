"""Evaluations shared out over workers."""

from collections.abc import Iterator

from fedgm.data.clients import Evaluation
from fedgm.lightning import pl
from fedgm.tasks.module import Numbered


class WorkerShare:
    """Every ``world_size``-th batch of an evaluation, with its number.

    A worker for which none is left gets a batch numbered -1, which does not count: Lightning refuses an
    empty loader, and would not call the hooks in which the workers meet.
    """

    def __init__(self, trainer: pl.Trainer, evaluation: Evaluation, split: str) -> None:
        self.trainer, self.evaluation, self.split = trainer, evaluation, split
        self.groups: list[int] | None = getattr(evaluation, "groups", None)

    @property
    def batches(self) -> int:
        """Batches of all workers together."""
        return len(self.evaluation)

    @property
    def _own(self) -> range:
        return range(self.trainer.global_rank, self.batches, self.trainer.world_size)

    def __len__(self) -> int:
        return max(1, len(self._own))

    def __iter__(self) -> Iterator[Numbered]:
        for number in self._own:
            yield Numbered(number, self.evaluation.batch(number))
        if not self._own:
            yield Numbered(-1, self.evaluation.batch(0))
