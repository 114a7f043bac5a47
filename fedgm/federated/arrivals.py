"""What comes back from a round's clients: one by one, and all together."""

from collections.abc import Sequence
from typing import NamedTuple

from torch import Tensor

from fedgm.client.local import LocalResult
from fedgm.client.weights import Snapshot
from fedgm.federated.aggregate import Mean
from fedgm.participation import ClientTask
from fedgm.upload.message import Sent
from fedgm.upload.sending import Senders


class ClientUpdate(NamedTuple):
    """What one client returns."""

    result: LocalResult
    after: Snapshot  # its model, whose buffers are averaged
    sent: Sent  # its delta, as the server decodes it
    message: Tensor  # what its rule sends besides; empty for most
    finite: bool


class Arrived(NamedTuple):
    """One client's update on its way into the mean."""

    delta: Tensor
    start: Snapshot
    after: Snapshot
    weight: float
    share: float
    message: Tensor


class Cohort(NamedTuple):
    """What came back from a round's clients."""

    mean: Mean
    table: dict[str, Tensor]  # of every column, one number per client
    senders: Senders | None = None  # where a rule has chosen who sends
    norms: Tensor | None = None  # |D_i| before clipping, where updates are clipped

    def total(self, column: str) -> float:
        """Sum over the clients, in a fixed order."""
        return self.table[column].sum().item()

    @property
    def squared(self) -> float:
        """Mean of |D_i|^2, by the clients' shares; the table has (share_i |D_i|)^2."""
        good = self.table["finite"] > 0
        squared, share = self.table["squared"][good], self.table["share"][good]
        return (squared / share).sum().item() / share.sum().item()

    def ages(self, tasks: Sequence[ClientTask]) -> dict[int, float]:
        """By age of the model that clients started from: how much D has of their updates."""
        share = self.table["share"] * (self.table["finite"] > 0)
        parts, ages = (share / share.sum()).tolist(), dict[int, float]()
        for task, part in zip(tasks, parts, strict=True):
            ages[task.staleness] = ages.get(task.staleness, 0.0) + task.weight * part
        return ages

    def losses(self, tasks: Sequence[ClientTask]) -> dict[int, float]:
        """The mean loss of each client over its first local epoch."""
        sums, counts = self.table["loss"].tolist(), self.table["measured"].tolist()
        rows = zip(tasks, sums, counts, strict=True)
        return {task.client: total / count for task, total, count in rows if count}  # who returned something

    @property
    def nonfinite(self) -> list[int]:
        """Places of clients whose update was not finite."""
        return [i for i, ok in enumerate(self.table["finite"].tolist()) if not ok]
