"""Residual networks for small images: ResNet-8, -20, ... (16/32/64) and ResNet-18 with the CIFAR stem."""

from collections.abc import Sequence

from torch import Tensor, nn
from torch.nn import functional as F

from fedgm.errors import require
from fedgm.models.norm import Norm, norm_layer, require_width

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
    """Depth 18 has four stages of two blocks; depth 6n+2 (8, 14, 20 ...) three stages of n blocks."""
    ok = depth == 18 or (8 <= depth <= DEEPEST and depth % 6 == 2)
    require(ok, "model.depth", depth, f"18, or 6n+2 (8, 14, 20, 26 ... {DEEPEST})", "model.depth=8")
    require_width(width)
    blocks = [2, 2, 2, 2] if depth == 18 else [(depth - 2) // 6] * 3
    return ResNet(blocks, width, norm, num_classes)
