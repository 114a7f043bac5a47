"""The one door to PyTorch Lightning: ``from fedgm.lightning import pl``, and every private name we use."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from fedgm.operators import declare_torchvision_operators

declare_torchvision_operators()  # Lightning imports torchmetrics, which imports torchvision

import pytorch_lightning as pl  # noqa: E402
from pytorch_lightning.callbacks import Checkpoint  # noqa: E402
from pytorch_lightning.loggers import Logger, MLFlowLogger  # noqa: E402
from pytorch_lightning.loops.fit_loop import _FitLoop as FitLoop  # noqa: E402
from pytorch_lightning.loops.loop import _Loop as Loop  # noqa: E402
from pytorch_lightning.loops.progress import _BaseProgress as Progress  # noqa: E402
from pytorch_lightning.plugins.environments import (  # noqa: E402
    ClusterEnvironment,
    LightningEnvironment,
    SLURMEnvironment,
    TorchElasticEnvironment,
)
from pytorch_lightning.plugins.io import TorchCheckpointIO  # noqa: E402
from pytorch_lightning.plugins.precision import Precision  # noqa: E402
from pytorch_lightning.profilers import AdvancedProfiler, Profiler, SimpleProfiler  # noqa: E402
from pytorch_lightning.strategies import DDPStrategy, SingleDeviceStrategy  # noqa: E402
from pytorch_lightning.strategies.launchers.launcher import _Launcher as Launcher  # noqa: E402
from pytorch_lightning.trainer.call import _call_callback_hooks as call_callback_hooks  # noqa: E402
from pytorch_lightning.trainer.call import _call_lightning_module_hook as call_module_hook  # noqa: E402
from pytorch_lightning.utilities.exceptions import MisconfigurationException  # noqa: E402
from pytorch_lightning.utilities.model_helpers import is_overridden  # noqa: E402
from pytorch_lightning.utilities.rank_zero import rank_zero_only, rank_zero_warn  # noqa: E402

__all__ = [
    "AdvancedProfiler",
    "Checkpoint",
    "ClusterEnvironment",
    "DDPStrategy",
    "FitLoop",
    "Launcher",
    "LightningEnvironment",
    "Logger",
    "Loop",
    "MLFlowLogger",
    "MisconfigurationException",
    "Precision",
    "Profiler",
    "Progress",
    "SLURMEnvironment",
    "SimpleProfiler",
    "SingleDeviceStrategy",
    "TorchCheckpointIO",
    "TorchElasticEnvironment",
    "call_callback_hooks",
    "call_module_hook",
    "is_overridden",
    "loop_states",
    "pl",
    "rank_zero_only",
    "rank_zero_warn",
    "unsent",
]


@contextmanager
def unsent(connector: Any) -> Generator[dict[str, Any]]:
    """What Lightning would send to the loggers meanwhile, at steps of its own counting; they get nothing."""
    kept: dict[str, Any] = {}
    vars(connector)["log_metrics"] = lambda metrics, step=None: kept.update(metrics)  # pyright: ignore
    try:
        yield kept
    finally:
        del vars(connector)["log_metrics"]


def loop_states(loop: Loop, states: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """``loop.state_dict(states, prefix)``, the same keys in the same order, without deep copies.

    ``dataclasses.asdict``, which Lightning calls, copies every number as if it could change, in every round.
    """
    states[f"{prefix}state_dict"] = loop.on_save_checkpoint()
    for name, value in vars(loop).items():
        if isinstance(value, Progress):
            states[prefix + name] = _counters(value)
        elif isinstance(value, Loop):
            loop_states(value, states, f"{prefix}{name}.")
    return states


def _counters(progress: Progress) -> dict[str, Any]:
    """Numbers by name, in the order of the fields."""
    return {k: _counters(v) if isinstance(v, Progress) else v for k, v in vars(progress).items()}
