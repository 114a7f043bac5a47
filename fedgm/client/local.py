"""LocalOPT (Alg. 2): a client's steps from the weights it was given."""

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor

from fedgm.client.hooks import ModuleHooks, is_direct
from fedgm.client.rules import Adjust, State
from fedgm.client.store import read_state, write_state
from fedgm.client.weights import FlatWeights, Snapshot
from fedgm.errors import FedGMError
from fedgm.lightning import pl

Draws = tuple[torch.device, list[Tensor]]  # where, and the states of what layers draw from there


class LocalResult(NamedTuple):
    """What a client reports besides its weights; ``sums`` are by metric, over its first local epoch."""

    steps: int
    samples: int
    measured: float  # what the sums are to be divided by
    sums: list[float]


class Client:
    """The module at work as one client after another; between them it holds the global model."""

    def __init__(
        self,
        trainer: pl.Trainer,
        weights: FlatWeights,
        metrics: Sequence[str],
        keep: bool,
        direct: tuple[type, ...] = (),
    ) -> None:
        self.trainer, self.weights, self.metrics, self.keep = trainer, weights, metrics, keep
        self.optimizer = trainer.strategy.optimizers[0]
        self.hooks = ModuleHooks(trainer)
        self.direct = is_direct(trainer, direct)
        self._again: tuple[Any, int, Draws] | None = None  # batch, number and draws of the step at work

    @property
    def lr(self) -> float | Tensor:
        """eta_l as it is now (a scheduler may have changed it): a vector where groups have different ones."""
        groups = self.optimizer.param_groups
        if len({float(group["lr"]) for group in groups}) == 1:
            return float(groups[0]["lr"])
        rates = {id(p): float(group["lr"]) for group in groups for p in group["params"]}
        parameters, dtype = self.weights.parameters, self.weights.dtype
        parts = [torch.full((p.numel(),), rates.get(id(p), 0.0), dtype=dtype) for p in parameters]
        return torch.cat(parts).to(parameters[0].device)

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

    def train(
        self, batches: Iterable[Any], first: int, adjust: Adjust | None = None, twice: bool = False
    ) -> LocalResult:
        """Run the optimiser over ``batches``; the first ``first`` of them make up the metrics.

        ``adjust`` is a client rule's hand on the gradients, before each step; ``twice`` says that it asks for
        :meth:`gradient_at`.
        """
        hooks = self.hooks
        take_step = self._direct_step if self.direct else self._step
        take_step = partial(self._remembered, take_step) if twice else take_step
        steps = samples = 0
        seen: list[tuple[Any, float]] = []
        for step, batch in enumerate(batches):
            if not self.direct:
                batch = self._placed(batch)
            if not hooks.start(batch, step):
                break
            output = take_step(batch, step, adjust)
            size = batch_size(batch)
            if step < first:
                seen.append((_detached(output), size))
            hooks.end(output, batch, step)
            steps, samples = steps + 1, samples + size
        measured, sums = _totals(seen, self.metrics)
        return LocalResult(steps, samples, measured, sums)

    def gradient_at(self, x: Tensor) -> Tensor:
        """The gradient of the step's batch at flat parameters ``x``; layers that draw see the same draws."""
        assert self._again is not None, "asked outside of a step"
        batch, step, draws = self._again
        with self._aside() as here:
            self.weights.write(here._replace(x=x))
            _write_draws(draws)
            return self._gradient(batch, step)

    def full_gradient(self, batches: Iterable[Any]) -> Tensor:
        """The gradient of the mean over all samples of ``batches``, at the weights as they are."""
        total, count = torch.zeros_like(self.weights.gradient()), 0
        with self._aside():
            for step, batch in enumerate(batches):
                size = batch_size(batch)
                total += size * self._gradient(batch if self.direct else self._placed(batch), step)
                count += size
        return total / count

    def _gradient(self, batch: Any, step: int) -> Tensor:
        """Of one batch, on the path that steps take."""
        for parameter in self.weights.parameters:
            parameter.grad = None
        if self.direct:
            loss_of(self.hooks.direct_training_step(batch, step)).backward()
        else:
            self.trainer.strategy.backward(loss_of(self.hooks.training_step(batch, step)), self.optimizer)
        return self.weights.gradient()

    @contextmanager
    def _aside(self) -> Generator[Snapshot]:
        """On exit weights, buffers, gradients and draws are what they were; nothing is logged meanwhile."""
        here, draws = self.weights.read(), _read_draws(self.trainer.strategy.root_device)
        gradients = [parameter.grad for parameter in self.weights.parameters]
        try:
            with self.hooks.unlogged():
                yield here
        finally:
            self.weights.write(here)
            _write_draws(draws)
            for parameter, gradient in zip(self.weights.parameters, gradients, strict=True):
                parameter.grad = gradient

    def _placed(self, batch: Any) -> Any:
        """A batch where clients train, in their precision."""
        strategy = self.trainer.strategy
        return strategy.batch_to_device(strategy.precision_plugin.convert_input(batch))

    def _remembered(self, take_step: Callable[..., Any], batch: Any, step: int, adjust: Adjust | None) -> Any:
        """A step during which the same batch can be asked for its gradient elsewhere."""
        self._again = batch, step, _read_draws(self.trainer.strategy.root_device)
        try:
            return take_step(batch, step, adjust)
        finally:
            self._again = None

    def _step(self, batch: Any, step: int, adjust: Adjust | None) -> Any:
        """One step through the strategy, so that Lightning's precision and gradient clipping hold."""
        strategy, optimizer, hooks = self.trainer.strategy, self.optimizer, self.hooks
        output: list[Any] = []

        def closure() -> Tensor:
            output[:] = [hooks.training_step(batch, step)]
            loss = loss_of(output[0])
            hooks.zero_grad(optimizer, step)
            strategy.backward(loss, optimizer)
            if adjust is not None:
                adjust(self.weights.parameters)
            return loss

        hooks.optimizer_step(optimizer, step, closure)
        return output[0]

    def _direct_step(self, batch: Any, step: int, adjust: Adjust | None) -> Any:
        """The same step without the calls that would do nothing (:func:`is_direct`)."""
        output = self.hooks.direct_training_step(batch, step)
        loss = loss_of(output)
        self.optimizer.zero_grad()
        loss.backward()
        if adjust is not None:
            adjust(self.weights.parameters)
        self.optimizer.step()
        return output


def _detached(output: Any) -> Any:
    """What ``training_step`` returned, without the graph behind it."""
    if isinstance(output, Mapping):
        return {k: v.detach() if isinstance(v, Tensor) else v for k, v in output.items()}
    return output.detach()


def _totals(seen: list[tuple[Any, float]], metrics: Sequence[str]) -> tuple[float, list[float]]:
    """The count and the sums by metric over the steps, in their order.

    Fetched from the device once, after the last step: a number asked for between steps would wait for it.
    """
    counts = _numbers([out.get("count", size) if isinstance(out, Mapping) else size for out, size in seen])
    measured, sums = 0.0, [0.0] * len(metrics)
    for count in counts:
        measured += count
    for place, name in enumerate(metrics):
        values = _numbers([loss_of(out) if name == "loss" else out[name] for out, _ in seen])
        if name == "loss":  # it comes as a mean
            values = [value * count for value, count in zip(values, counts, strict=True)]
        for value in values:
            sums[place] += value
    return measured, sums


def _numbers(values: list[Any]) -> list[float]:
    """As float64; tensors of one step each are fetched together."""
    if not any(isinstance(value, Tensor) for value in values):
        return [float(value) for value in values]
    return torch.stack([torch.as_tensor(value).double() for value in values]).tolist()


def loss_of(output: Any) -> Tensor:
    """The loss of what ``training_step`` returned: a tensor, or a dict with one."""
    loss = output.get("loss") if isinstance(output, Mapping) else output
    if not isinstance(loss, Tensor):
        raise FedGMError(
            f"training_step returned {type(output).__name__} without a loss. "
            "Return the loss, or a dict with the key 'loss'"
        )
    return loss


def batch_size(batch: Any) -> int:
    """The length of the last tensor that a batch holds: for images that of the labels."""
    if isinstance(batch, Tensor):
        return len(batch) if batch.ndim else 1
    parts = list(batch.values()) if isinstance(batch, Mapping) else batch
    if isinstance(parts, Sequence) and not isinstance(parts, str) and len(parts):
        return batch_size(parts[-1])
    return 1


def _read_draws(device: torch.device) -> Draws:
    """What layers draw from, as it stands."""
    states = [torch.get_rng_state()]
    if device.type != "cpu":  # not tried
        states.append(torch.get_device_module(device).get_rng_state(device))
    return device, states


def _write_draws(draws: Draws) -> None:
    """As it stood."""
    device, states = draws
    torch.set_rng_state(states[0])
    if len(states) > 1:
        torch.get_device_module(device).set_rng_state(states[1], device)
