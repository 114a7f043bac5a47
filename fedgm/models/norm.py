"""The normalisation layers that a model yaml can choose from."""

from typing import Literal

from torch import nn

from fedgm.errors import ConfigError, require

Norm = Literal["batch", "group"]
GROUPS = 2  # as in Adaptive FedOpt's ResNet-18; also the fastest of 2, 4, 8 on a CPU


def norm_layer(kind: Norm, channels: int) -> nn.Module:
    """BatchNorm as in the paper, or GroupNorm, which keeps no statistics that clients could disagree on."""
    if kind == "batch":
        return nn.BatchNorm2d(channels)
    if kind == "group":
        return nn.GroupNorm(GROUPS, channels)
    raise ConfigError("model.norm", kind, "batch or group", "model.norm=group")


def require_width(width: int) -> None:
    """Below 8 channels a strided 1x1 convolution in channels_last layout corrupts the heap (torch 2.13)."""
    require(
        width >= 8 and width % 2 == 0, "model.width", width, "an even number of at least 8", "model.width=16"
    )
