"""VGG-11 for small images, with one linear layer."""

from torch import Tensor, nn
from torch.nn import functional as F

from fedgm.models.norm import Norm, norm_layer, require_width

# Multiples of the first width (64 in VGG-11); a pool follows each group.
GROUPS = [[1], [2], [4, 4], [8, 8], [8, 8]]


class VGG(nn.Module):
    """Groups of 3x3 convolutions with a 2x2 pool after each; a pool that would leave nothing is skipped."""

    def __init__(self, width: int, norm: Norm, num_classes: int) -> None:
        super().__init__()
        require_width(width)
        groups: list[nn.Module] = []
        before = 3
        for multiples in GROUPS:
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
    """VGG-11 has width 64."""
    return VGG(width, norm, num_classes)
