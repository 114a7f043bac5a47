"""A task: classification that is judged by two guesses."""

from typing import Any

from torch import Tensor
from torch.nn import functional as F

from fedgm.tasks.metric import LOSS, Metric
from fedgm.tasks.module import TaskModule


class TwoGuesses(TaskModule):
    """Columns loss and top2; nothing elsewhere is told their names."""

    metrics = (LOSS, Metric("top2", "right in two guesses", "higher", 100.0, "%"))
    headline = "test/top2"
    model_needs = ("num_classes",)

    def training_step(self, batch: tuple[Tensor, Tensor], batch_idx: int) -> dict[str, Any]:
        scores = self(batch[0])
        return {"loss": F.cross_entropy(scores, batch[1]), "top2": _right(scores, batch[1])}

    def sums(self, batch: tuple[Tensor, Tensor]) -> dict[str, Any]:
        scores, y = self(batch[0]), batch[1]
        return {
            "loss": F.cross_entropy(scores, y, reduction="sum"),
            "top2": _right(scores, y),
            "count": len(y),
        }


def _right(scores: Tensor, y: Tensor) -> Tensor:
    return (scores.detach().topk(2).indices == y[:, None]).any(1).sum()
