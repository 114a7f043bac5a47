"""The small CNN of NIID-Bench and most federated papers: 62,006 parameters for ten classes."""

from torch import Tensor, nn
from torch.nn import functional as F

from fedgm.errors import require_fits


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
    """The 62,006-parameter network."""
    return CNN(resolution, num_classes)
