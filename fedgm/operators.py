"""torchvision beside a torch that it was not built for.

The Linux wheel of torchvision on PyPI is built for CUDA torch. Beside a CPU-only torch its native
library does not load, ``import torchvision`` dies ("operator torchvision::nms does not exist"),
and with it torchmetrics and Lightning. Declaring the two operators that it looks up is enough:
nothing here ever calls them.
"""

from importlib.util import find_spec
from pathlib import Path

import torch

_declared: list[torch.library.Library] = []  # a Library takes its operators along when it is collected


def declare_torchvision_operators() -> None:
    """Declare ``nms`` and ``qnms`` where torchvision is installed without a library that has them."""
    if hasattr(torch.ops.torchvision, "nms") or _native_library_loads():
        return
    library = torch.library.Library("torchvision", "FRAGMENT")
    for name in ("nms", "qnms"):
        library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    _declared.append(library)


def _native_library_loads() -> bool:
    """Whether torchvision's own library fits this torch, or there is no torchvision to mend."""
    spec = find_spec("torchvision")
    if spec is None or spec.origin is None:
        return True
    for library in Path(spec.origin).parent.glob("_C*.so"):
        try:
            torch.ops.load_library(str(library))
        except OSError:
            return False
    return hasattr(torch.ops.torchvision, "nms")
