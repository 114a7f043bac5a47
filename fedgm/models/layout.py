"""The memory layout of a network: channels_last where its yaml says so, and torch can be trusted with it."""

import torch
from torch import nn

from fedgm.data.federation import Federation

# In the CPU build of this version the backward pass of a strided 1x1 convolution in channels_last writes
# beyond its buffer where the input has an even side and fewer channels than a vector register has floats.
# With AVX2: below 8 channels, at any side. With AVX-512: seen at 8 channels from side 48 on, not up to 40.
# The plain layout is not affected (tests/models/test_layout.py).
OVERRUNS = (2, 13)
SAFE_SIDE = 40
SAFE_CHANNELS = 8


def torch_overruns(version: str = torch.__version__) -> bool:
    """Whether this torch has the fault; all that avoids it ends with this condition.

    >>> torch_overruns("2.13.1+cpu"), torch_overruns("2.14.0")
    (True, False)
    """
    return tuple(int(part) for part in version.split(".")[:2]) == OVERRUNS


def is_channels_last(net: nn.Module, asked: bool, side: int, accelerator: str = "cpu") -> bool:
    """Whether a network and its batches of ``side`` x ``side`` pixels get the layout that is ``asked`` for.

    >>> net = nn.Conv2d(16, 32, kernel_size=1, stride=2)
    >>> is_channels_last(net, asked=True, side=32)
    True
    >>> is_channels_last(net, asked=True, side=64) is not torch_overruns()
    True
    """
    return asked and not (accelerator == "cpu" and torch_overruns() and _may_overrun(net, side))


def fit_layout(net: nn.Module, data: Federation, accelerator: str) -> None:
    """Batches come in the layout that the network has."""
    asked = data.batching.channels_last
    layout = is_channels_last(net, asked, data.images.resolution, accelerator)
    data.batching = data.batching._replace(channels_last=layout)


def _may_overrun(net: nn.Module, side: int) -> bool:
    strided = [
        layer
        for layer in net.modules()
        if isinstance(layer, nn.Conv2d) and layer.kernel_size == (1, 1) and max(layer.stride) > 1
    ]
    return any(side > SAFE_SIDE or layer.in_channels < SAFE_CHANNELS for layer in strided)
