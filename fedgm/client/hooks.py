"""The module's own hooks around a local step: called as in any fit, and only where the module has them.

Where no hook is overridden, a local step skips Lightning's calls (:func:`is_direct`).
"""

import math
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

import torch

from fedgm.lightning import Precision, SingleDeviceStrategy, call_module_hook, is_overridden, pl

BATCH_HOOKS = ("on_train_batch_start", "on_train_batch_end")
STEP_HOOKS = ("on_before_zero_grad", "optimizer_zero_grad", "optimizer_step")


class ModuleHooks:
    """What Lightning's own epoch loop would call; a module that overrides nothing pays nothing.

    Transfer, backward, gradient and clipping hooks are fired by the strategy.
    """

    def __init__(self, trainer: pl.Trainer) -> None:
        self.trainer, self.module = trainer, trainer.lightning_module
        self._overridden = {name for name in (*BATCH_HOOKS, *STEP_HOOKS) if is_overridden(name, self.module)}
        self._connector = trainer._logger_connector
        self._logged = trainer.fit_loop.epoch_loop._results  # what `trainer._results` is while clients train
        self._steps: dict[str, list[float]] = {}  # what the module logged per local step, in this round

    def start(self, batch: Any, step: int) -> bool:
        """Before a step; False where the module wants no more steps (it returns -1)."""
        self._connector.on_batch_start(batch)  # `self.log` takes the batch's size from here
        return self._call("on_train_batch_start", batch, step) != -1

    def training_step(self, batch: Any, step: int) -> Any:
        """The module's step, in which it may ``self.log``."""
        self.module._current_fx_name = "training_step"
        try:
            return self.trainer.strategy.training_step(batch, step)
        finally:
            self.module._current_fx_name = None

    def measuring_step(self, batch: Any) -> Any:
        """The module's step on a batch that is only measured, outside of any client's training."""
        self._connector.on_batch_start(batch)
        return self.training_step(batch, 0)

    def direct_training_step(self, batch: Any, step: int) -> Any:
        """The same without the strategy's contexts, where they would do nothing (``is_direct``)."""
        attributes = vars(self.module)  # nn.Module's own way to set attributes costs as much as a call
        attributes["_current_fx_name"] = "training_step"
        try:
            return self.module.training_step(batch, step)
        finally:
            attributes["_current_fx_name"] = None

    def zero_grad(self, optimizer: torch.optim.Optimizer, step: int) -> None:
        """Before the backward pass."""
        self._call("on_before_zero_grad", optimizer)
        if "optimizer_zero_grad" in self._overridden:
            self._call("optimizer_zero_grad", self.trainer.current_epoch, step, optimizer)
        else:
            optimizer.zero_grad()

    def optimizer_step(self, optimizer: torch.optim.Optimizer, step: int, closure: Callable[[], Any]) -> None:
        """Through the module where it steps itself, else through the strategy."""
        if "optimizer_step" in self._overridden:
            wrapped = self.module.optimizers()
            self._call("optimizer_step", self.trainer.current_epoch, step, wrapped, closure)
        else:
            self.trainer.strategy.optimizer_step(optimizer, closure)

    def end(self, output: Any, batch: Any, step: int) -> None:
        """After a step."""
        self._call("on_train_batch_end", output, batch, step)
        if self._logged:
            self._connector.on_batch_end()
            for name, value in self._connector.metrics["log"].items():
                self._steps.setdefault(name, []).append(float(value))

    def taken(self) -> dict[str, float]:
        """Means over the local steps since the last call, of what the module logged per step."""
        means = {name: math.fsum(values) / len(values) for name, values in self._steps.items()}
        self._steps.clear()
        return means

    @contextmanager
    def unlogged(self) -> Generator[None]:
        """What the module logs meanwhile is dropped: a batch counts once, whatever else is asked of it."""
        loop = self.trainer.fit_loop.epoch_loop
        loop._results = type(self._logged)(training=True)
        try:
            yield
        finally:
            loop._results = self._logged

    def _call(self, name: str, *arguments: Any) -> Any:
        return call_module_hook(self.trainer, name, *arguments) if name in self._overridden else None


# What Lightning's strategy would call around one step, besides `training_step`.
OF_CALLBACKS = ("on_before_backward", "on_after_backward", "on_before_optimizer_step")
TRANSFER = ("on_before_batch_transfer", "transfer_batch_to_device", "on_after_batch_transfer")
AROUND_A_STEP = (*TRANSFER, *OF_CALLBACKS, *STEP_HOOKS, "backward", "configure_gradient_clipping")


def is_direct(trainer: pl.Trainer, strategies: tuple[type, ...]) -> bool:
    """Full precision on a CPU, no clipping, no profiler, no hook between the parts of a step.

    The arithmetic is the same either way; Lightning's calls cost more than a step of a small model.
    """
    strategy, module = trainer.strategy, trainer.lightning_module
    plain = (
        type(strategy) in (SingleDeviceStrategy, *strategies)
        and strategy.root_device.type == "cpu"
        and strategy.model is module
        and type(strategy.precision_plugin) is Precision
        and trainer.gradient_clip_val is None
        and type(getattr(trainer, "profiler", None)).__name__ == "PassThroughProfiler"
    )
    hooked = any(is_overridden(name, module) for name in AROUND_A_STEP) or any(
        is_overridden(name, callback)
        for callback in trainer.callbacks  # pyright: ignore[reportAttributeAccessIssue]
        for name in OF_CALLBACKS
    )
    return plain and not hooked
