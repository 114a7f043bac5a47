"""Convolutional networks for small images, with BatchNorm or GroupNorm.

ResNet-8, -20, ... (16/32/64) and ResNet-18 with the CIFAR stem, VGG-11 with one linear layer, and the CNN of
NIID-Bench and most federated papers (62,006 parameters for ten classes).
"""

from collections.abc import Sequence
from typing import Literal

from torch import Tensor, nn
from torch.nn import functional as F

from fedgm.errors import ConfigError, require, require_fits

Norm = Literal["batch", "group"]
NORM_GROUPS = 2  # as in Adaptive FedOpt's ResNet-18; also the fastest of 2, 4, 8 on a CPU


def norm_layer(kind: Norm, channels: int) -> nn.Module:
    """BatchNorm as in the paper, or GroupNorm, which keeps no statistics that clients could disagree on."""
    if kind == "batch":
        return nn.BatchNorm2d(channels)
    if kind == "group":
        return nn.GroupNorm(NORM_GROUPS, channels)
    raise ConfigError("model.norm", kind, "batch or group", "model.norm=group")


def require_width(width: int) -> None:
    """GroupNorm has two groups."""
    even = width >= NORM_GROUPS and width % NORM_GROUPS == 0
    require(even, "model.width", width, "an even number of at least 2", "model.width=16")


DEEPEST = 1202  # the deepest that He et al. trained


class Block(nn.Module):
    """Two 3x3 convolutions and a shortcut, projected where the shape changes."""

    def __init__(self, before: int, after: int, stride: int, norm: Norm) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(before, after, 3, stride, 1, bias=False)
        self.norm1 = norm_layer(norm, after)
        self.conv2 = nn.Conv2d(after, after, 3, 1, 1, bias=False)
        self.norm2 = norm_layer(norm, after)
        self.shortcut = nn.Sequential()
        if stride != 1 or before != after:
            self.shortcut = nn.Sequential(
                nn.Conv2d(before, after, 1, stride, bias=False), norm_layer(norm, after)
            )

    def forward(self, x: Tensor) -> Tensor:
        """relu(F(x) + shortcut(x))."""
        out = F.relu(self.norm1(self.conv1(x)))
        return F.relu(self.norm2(self.conv2(out)) + self.shortcut(x))


class ResNet(nn.Module):
    """A 3x3 stem without pooling, stages that double the width and halve the side, mean, one linear layer."""

    def __init__(self, blocks: Sequence[int], width: int, norm: Norm, num_classes: int) -> None:
        super().__init__()
        widths = [width * 2**stage for stage in range(len(blocks))]
        layers: list[nn.Module] = []
        before = width
        for stage, (count, after) in enumerate(zip(blocks, widths, strict=True)):
            for i in range(count):
                layers.append(Block(before, after, stride=2 if stage > 0 and i == 0 else 1, norm=norm))
                before = after
        self.stem = nn.Conv2d(3, width, 3, 1, 1, bias=False)
        self.norm = norm_layer(norm, width)
        self.blocks = nn.Sequential(*layers)
        self.head = nn.Linear(before, num_classes)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, x: Tensor) -> Tensor:
        """Class scores."""
        return self.head(self.blocks(F.relu(self.norm(self.stem(x)))).mean((2, 3)))


def resnet(depth: int, width: int, norm: Norm, num_classes: int = 10) -> ResNet:
    """Depth 18 has four stages of two blocks; depth 6n+2 (8, 14, 20 ...) three stages of n blocks.

    >>> sum(weights.numel() for weights in resnet(depth=8, width=16, norm="group").parameters())
    78042
    """
    ok = depth == 18 or (8 <= depth <= DEEPEST and depth % 6 == 2)
    require(ok, "model.depth", depth, f"18, or 6n+2 (8, 14, 20, 26 ... {DEEPEST})", "model.depth=8")
    require_width(width)
    blocks = [2, 2, 2, 2] if depth == 18 else [(depth - 2) // 6] * 3
    return ResNet(blocks, width, norm, num_classes)


# Multiples of the first width (64 in VGG-11); a pool follows each group.
VGG11 = [[1], [2], [4, 4], [8, 8], [8, 8]]


class VGG(nn.Module):
    """Groups of 3x3 convolutions with a 2x2 pool after each; a pool that would leave nothing is skipped."""

    def __init__(self, width: int, norm: Norm, num_classes: int) -> None:
        super().__init__()
        require_width(width)
        groups: list[nn.Module] = []
        before = 3
        for multiples in VGG11:
            layers: list[nn.Module] = []
            for multiple in multiples:
                after = width * multiple
                layers += [nn.Conv2d(before, after, 3, 1, 1, bias=False), norm_layer(norm, after), nn.ReLU()]
                before = after
            groups.append(nn.Sequential(*layers))
        self.groups = nn.ModuleList(groups)
        self.head = nn.Linear(before, num_classes)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, x: Tensor) -> Tensor:
        """Class scores; works from 1x1 pixels upwards (at 16x16 the last pool is left out)."""
        for group in self.groups:
            x = group(x)
            if x.shape[-1] >= 2:
                x = F.max_pool2d(x, 2)
        return self.head(x.mean((2, 3)))


def vgg11(width: int, norm: Norm, num_classes: int = 10) -> VGG:
    """VGG-11 has width 64.

    >>> vgg11(width=8, norm="group", num_classes=100).head.out_features
    100
    """
    return VGG(width, norm, num_classes)


class CNN(nn.Module):
    """conv 6 5x5, pool, conv 16 5x5, pool, 120, 84, classes; needs 32x32 pixels."""

    def __init__(self, resolution: int, num_classes: int) -> None:
        super().__init__()
        hint = "profile=paper, data.resolution=32 or model=resnet8"
        require_fits(resolution == 32, "data.resolution", resolution, "model=cnn needs 32x32 pixels", hint)
        self.conv1 = nn.Conv2d(3, 6, 5)
        self.conv2 = nn.Conv2d(6, 16, 5)
        self.fc1 = nn.Linear(16 * 5 * 5, 120)
        self.fc2 = nn.Linear(120, 84)
        self.fc3 = nn.Linear(84, num_classes)

    def forward(self, x: Tensor) -> Tensor:
        """Class scores."""
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        x = F.relu(self.fc1(x.flatten(1)))
        return self.fc3(F.relu(self.fc2(x)))


def cnn(resolution: int, num_classes: int = 10) -> CNN:
    """The 62,006-parameter network.

    >>> sum(weights.numel() for weights in cnn(resolution=32).parameters())
    62006
    """
    return CNN(resolution, num_classes)
