"""What callbacks are told beyond Lightning's own hooks, and how they are called."""

from collections.abc import Callable
from dataclasses import dataclass, field
from math import nan
from typing import Any

from torch import Tensor

from fedgm.lightning import pl
from fedgm.participation import ClientTask


@dataclass(frozen=True)
class ClientEnd:
    """A client that has trained."""

    round: int  # t, from 1
    task: ClientTask
    delta: Tensor  # before upload rule, weight and mean
    steps: int  # K_i
    finite: bool  # whether it takes part in the mean


@dataclass
class ServerUpdate:
    """One server round; the callback that moves the model replaces ``x``."""

    round: int  # t, from 1
    x: Tensor  # x_t before the hook, x_{t+1} after it
    delta: Tensor  # D, the cohort's mean delta
    squared: float = nan  # the mean of |D_i|^2 over the cohort
    ages: Callable[[], dict[int, float]] | None = None  # by age in rounds: how much D has of such updates
    average: Callable[[], Tensor] | None = None  # after the hook: the averaged point, where the rule has one
    log: dict[str, float | int | None] = field(default_factory=dict[str, float | int | None])


@dataclass(frozen=True)
class StageEnd:
    """A stage whose last round is done, and the hyperparameters before and after."""

    stage: int  # from 1
    round: int  # its last
    before: dict[str, float]
    after: dict[str, float]

    def __str__(self) -> str:
        """One line for people: ``stage 1 ends after round 36: eta 2 to 1, beta 0.9 to 0.9474``."""
        moved = [k for k in self.before if self.before[k] != self.after.get(k)]
        words = ", ".join(f"{k} {self.before[k]:.4g} to {self.after[k]:.4g}" for k in moved)
        return f"stage {self.stage} ends after round {self.round}: {words or 'nothing changes'}"


class FederatedCallback(pl.Callback):
    """Lightning's callback with the hooks of a federated run; a plain ``pl.Callback`` may have them too.

    Clients are seen by the worker that trains them; ``on_server_update`` and ``on_stage_end`` by all workers.
    """

    def on_client_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule, task: ClientTask) -> None:
        """Before a client trains; the module still holds x_t."""

    def on_client_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule, end: ClientEnd) -> None:
        """After a client has trained; the module holds x_t again."""

    def on_server_update(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, update: ServerUpdate
    ) -> None:
        """When the mean is there: callbacks run in their order, and any of them may replace ``update.x``."""

    def on_stage_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule, end: StageEnd) -> None:
        """After the last round of a stage that another one follows."""


def fire(trainer: pl.Trainer, hook: str, event: Any) -> None:
    """Call ``hook`` of every callback that has it, in their order."""
    module = trainer.lightning_module
    for callback in trainer.callbacks:  # pyright: ignore[reportAttributeAccessIssue]
        if call := getattr(callback, hook, None):
            call(trainer, module, event)
