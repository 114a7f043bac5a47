"""LocalOPT (Alg. 2): a client's steps from the weights it was given."""

from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from torch import Tensor

from fedgm.client.hooks import ModuleHooks
from fedgm.client.optimizer import read_state, write_state
from fedgm.client.rule import Adjust, State
from fedgm.client.weights import FlatWeights, Snapshot
from fedgm.errors import FedGMError
from fedgm.lightning import pl


class LocalResult(NamedTuple):
    """What a client reports besides its weights; ``sums`` are by metric, over its first local epoch."""

    steps: int
    samples: int
    measured: float  # what the sums are to be divided by
    sums: list[float]


class Client:
    """The module at work as one client after another; between them it holds the global model."""

    def __init__(self, trainer: pl.Trainer, weights: FlatWeights, metrics: Sequence[str], keep: bool) -> None:
        self.trainer, self.weights, self.metrics, self.keep = trainer, weights, metrics, keep
        self.optimizer = trainer.strategy.optimizers[0]
        self.hooks = ModuleHooks(trainer)

    @property
    def lr(self) -> float:
        """eta_l as it is now; a scheduler may have changed it."""
        return float(self.optimizer.param_groups[0]["lr"])

    @contextmanager
    def at_work(self, start: Snapshot, x_t: Snapshot, kept: State) -> Generator[None]:
        """Load the client's start and its optimiser's state (empty: a new one); on exit x_t stands again."""
        self.weights.write(start)
        write_state(self.optimizer, kept)
        try:
            yield
        finally:
            self.optimizer.state.clear()  # no checkpoint carries the last client's state
            self.weights.write(x_t)

    def optimizer_state(self) -> State:
        """What the client keeps of its optimiser (``local.state=keep``)."""
        return read_state(self.optimizer) if self.keep else {}

    def train(self, batches: Iterable[Any], first: int, adjust: Adjust | None = None) -> LocalResult:
        """Run the optimiser over ``batches``; the first ``first`` of them make up the metrics.

        ``adjust`` is a client rule's hand on the gradients, before each step. Every call goes through the
        strategy, so Lightning's precision and gradient clipping hold.
        """
        strategy, optimizer, hooks = self.trainer.strategy, self.optimizer, self.hooks
        steps = samples = 0
        measured = 0.0
        sums = torch.zeros(len(self.metrics), dtype=torch.float64, device=strategy.root_device)
        for step, batch in enumerate(batches):
            batch = strategy.batch_to_device(strategy.precision_plugin.convert_input(batch))
            if not hooks.start(batch, step):
                break
            output: list[Any] = []

            def closure(batch: Any = batch, step: int = step, output: list[Any] = output) -> Tensor:
                output[:] = [hooks.training_step(batch, step)]
                loss = loss_of(output[0])
                hooks.zero_grad(optimizer, step)
                strategy.backward(loss, optimizer)
                if adjust is not None:
                    adjust(self.weights.parameters)
                return loss

            hooks.optimizer_step(optimizer, step, closure)
            size = batch_size(batch)
            if step < first:
                count = output[0].get("count", size) if isinstance(output[0], Mapping) else size
                sums += torch.stack([_sum(output[0], name, count) for name in self.metrics])
                measured += float(count)
            hooks.end(output[0], batch, step)
            steps, samples = steps + 1, samples + size
        return LocalResult(steps, samples, measured, sums.tolist())


def loss_of(output: Any) -> Tensor:
    """The loss of what ``training_step`` returned: a tensor, or a dict with one."""
    loss = output.get("loss") if isinstance(output, Mapping) else output
    if not isinstance(loss, Tensor):
        raise FedGMError(
            f"training_step returned {type(output).__name__} without a loss. Return it, or a dict that has it"
        )
    return loss


def _sum(output: Any, name: str, count: float) -> Tensor:
    """A metric's sum over the batch: the loss comes as a mean."""
    if name == "loss":
        return loss_of(output).detach().double() * count
    return torch.as_tensor(output[name]).detach().double()


def batch_size(batch: Any) -> int:
    """The length of the last tensor that a batch holds: for images that of the labels."""
    if isinstance(batch, Tensor):
        return len(batch) if batch.ndim else 1
    parts = list(batch.values()) if isinstance(batch, Mapping) else batch
    if isinstance(parts, Sequence) and not isinstance(parts, str) and len(parts):
        return batch_size(parts[-1])
    return 1
