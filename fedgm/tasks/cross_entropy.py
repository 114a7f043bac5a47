"""The tasks that we have: cross entropy, and the share that is right, of labels or of next tokens."""

from typing import Any

from torch import Tensor
from torch.nn import functional as F

from fedgm.data.images import Batch
from fedgm.data.text import IGNORE
from fedgm.tasks.metric import ACCURACY, LOSS
from fedgm.tasks.module import TaskModule


class Classification(TaskModule):
    """Scores of classes against labels; subclass it to change the loss alone."""

    metrics = (LOSS, ACCURACY)
    headline = f"test/{ACCURACY.name}"
    model_needs = ("num_classes",)

    def training_step(self, batch: Batch, batch_idx: int) -> dict[str, Any]:
        """Loss of one local step."""
        x, y = batch
        scores = self(x)
        return {"loss": F.cross_entropy(scores, y), ACCURACY.name: _correct(scores, y)}

    def sums(self, batch: Batch) -> dict[str, Any]:
        """Loss and hits of one batch of an evaluation."""
        x, y = batch
        scores = self(x)
        loss = F.cross_entropy(scores, y, reduction="sum")
        return {"loss": loss, ACCURACY.name: _correct(scores, y), "count": len(y)}


def _correct(scores: Tensor, y: Tensor) -> Tensor:
    """How many are classified right."""
    return (scores.detach().argmax(1) == y).sum()


class NextToken(TaskModule):
    """Scores of the next token at every place, against the token that came."""

    metrics = (LOSS, ACCURACY)
    headline = "test/loss"
    model_needs = ("vocabulary", "block")

    def training_step(self, batch: Batch, batch_idx: int) -> dict[str, Any]:
        """Mean loss over the tokens of one local step."""
        sums = self.sums(batch)
        return {**sums, "loss": sums["loss"] / sums["count"]}

    def sums(self, batch: Batch) -> dict[str, Any]:
        """Loss and hits of a batch; ``count`` is of tokens, since windows at a text's end hold fewer."""
        tokens, targets = batch
        scores = self(tokens).flatten(0, 1)
        flat = targets.flatten()
        loss = F.cross_entropy(scores, flat, ignore_index=IGNORE, reduction="sum")
        return {
            "loss": loss,
            ACCURACY.name: (scores.detach().argmax(1) == flat).sum(),
            "count": (flat != IGNORE).sum(),
        }
