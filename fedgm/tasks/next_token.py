"""Next-token prediction: cross entropy in nats, and the share of tokens that are guessed right."""

from typing import Any

from torch.nn import functional as F

from fedgm.data.images import Batch
from fedgm.data.text import IGNORE
from fedgm.tasks.metric import ACCURACY, LOSS
from fedgm.tasks.module import TaskModule


class NextToken(TaskModule):
    """Scores of the next token at every place, against the token that came."""

    metrics = (LOSS, ACCURACY)
    headline = "test/loss"
    model_needs = ("vocabulary", "block")

    def training_step(self, batch: Batch, batch_idx: int) -> dict[str, Any]:
        """Mean loss over the tokens of one local step."""
        found = self.sums(batch)
        return {**found, "loss": found["loss"] / found["count"]}

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
