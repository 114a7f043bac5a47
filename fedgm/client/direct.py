"""Whether a local step may skip Lightning's calls: only where each of them would do nothing."""

from fedgm.lightning import Precision, SingleDeviceStrategy, is_overridden, pl

# What Lightning's strategy would call around one step, besides `training_step`.
AROUND_A_STEP = (
    "on_before_batch_transfer", "transfer_batch_to_device", "on_after_batch_transfer", "on_before_backward",
    "backward", "on_after_backward", "on_before_zero_grad", "optimizer_zero_grad", "optimizer_step",
    "on_before_optimizer_step", "configure_gradient_clipping",
)  # fmt: skip
OF_CALLBACKS = ("on_before_backward", "on_after_backward", "on_before_optimizer_step")


def is_direct(trainer: pl.Trainer, strategies: tuple[type, ...]) -> bool:
    """Full precision on a CPU, no clipping, no profiler, nobody listening between the parts of a step.

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
    heard = any(is_overridden(name, module) for name in AROUND_A_STEP) or any(
        is_overridden(name, callback)
        for callback in trainer.callbacks  # pyright: ignore[reportAttributeAccessIssue]
        for name in OF_CALLBACKS
    )
    return plain and not heard
