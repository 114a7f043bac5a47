"""The one door to PyTorch Lightning: ``from fedgm.lightning import pl``, and every private name we use.

The Linux wheel of torchvision on PyPI is built for CUDA torch. Beside a CPU-only torch its native
library does not load, ``import torchvision`` dies ("operator torchvision::nms does not exist"),
and with it torchmetrics and Lightning. Declaring the two operators that it looks up is enough:
nothing here ever calls them.
"""

from importlib.util import find_spec
from pathlib import Path
from warnings import filterwarnings

import torch

from fedgm.process.deferred import defer_dynamo, deferred

_declared: list[torch.library.Library] = []  # a Library takes its operators along when it is collected


def _native_operators_load() -> bool:
    """Whether torchvision's own library fits this torch."""
    spec = find_spec("torchvision")
    if spec is None or spec.origin is None:
        return False
    for library in Path(spec.origin).parent.glob("_C*.so"):
        try:
            torch.ops.load_library(str(library))
        except OSError:
            return False
    return hasattr(torch.ops.torchvision, "nms")


def declare_torchvision_operators() -> None:
    """Declare ``nms`` and ``qnms``, only where they are missing."""
    if _declared or _native_operators_load():
        return
    library = torch.library.Library("torchvision", "FRAGMENT")
    for name in ("nms", "qnms"):
        library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    _declared.append(library)


declare_torchvision_operators()
filterwarnings("ignore", message=".*isinstance.treespec, LeafSpec.*")  # Lightning 2.6 beside torch 2.13

defer_dynamo()
with deferred("torchvision", "matplotlib"):  # for metrics of torchmetrics that load them when they are called
    import pytorch_lightning as pl
from pytorch_lightning.callbacks import Checkpoint  # noqa: E402
from pytorch_lightning.loggers import Logger, MLFlowLogger  # noqa: E402
from pytorch_lightning.loops.fit_loop import _FitLoop as FitLoop  # noqa: E402
from pytorch_lightning.plugins.environments import (  # noqa: E402
    ClusterEnvironment,
    LightningEnvironment,
    SLURMEnvironment,
    TorchElasticEnvironment,
)
from pytorch_lightning.plugins.io import TorchCheckpointIO  # noqa: E402
from pytorch_lightning.plugins.precision import Precision  # noqa: E402
from pytorch_lightning.strategies import DDPStrategy, SingleDeviceStrategy  # noqa: E402
from pytorch_lightning.strategies.launchers.launcher import _Launcher as Launcher  # noqa: E402
from pytorch_lightning.trainer.call import _call_callback_hooks as call_callback_hooks  # noqa: E402
from pytorch_lightning.trainer.call import _call_lightning_module_hook as call_module_hook  # noqa: E402
from pytorch_lightning.utilities.exceptions import MisconfigurationException  # noqa: E402
from pytorch_lightning.utilities.model_helpers import is_overridden  # noqa: E402
from pytorch_lightning.utilities.rank_zero import rank_zero_only, rank_zero_warn  # noqa: E402

__all__ = [
    "Checkpoint",
    "ClusterEnvironment",
    "DDPStrategy",
    "FitLoop",
    "Launcher",
    "LightningEnvironment",
    "Logger",
    "MLFlowLogger",
    "MisconfigurationException",
    "Precision",
    "SLURMEnvironment",
    "SingleDeviceStrategy",
    "TorchCheckpointIO",
    "TorchElasticEnvironment",
    "call_callback_hooks",
    "call_module_hook",
    "is_overridden",
    "pl",
    "rank_zero_only",
    "rank_zero_warn",
]
