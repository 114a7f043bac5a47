"""A small network for signals of sensors: two convolutions over time, their mean, one linear layer."""

from torch import Tensor, nn
from torch.nn import functional as F

from fedgm.errors import require


class SignalCNN(nn.Module):
    """Convolutions of 5 samples that halve the time, to ``width`` and twice ``width`` channels."""

    def __init__(self, channels: int, width: int, num_classes: int) -> None:
        super().__init__()
        require(channels >= 1, "model.channels", channels, "at least 1", "model.channels=6")
        require(width >= 1, "model.width", width, "at least 1", "model.width=32")
        self.conv1 = nn.Conv1d(channels, width, 5, stride=2, padding=2)
        self.conv2 = nn.Conv1d(width, 2 * width, 5, stride=2, padding=2)
        self.head = nn.Linear(2 * width, num_classes)

    def forward(self, x: Tensor) -> Tensor:
        """Class scores of (samples, channels, time)."""
        return self.head(F.relu(self.conv2(F.relu(self.conv1(x)))).mean(2))


def cnn1d(channels: int, width: int, num_classes: int = 6) -> SignalCNN:
    """The network of data=hapt.

    >>> sum(weights.numel() for weights in cnn1d(channels=6, width=32).parameters())
    11686
    """
    return SignalCNN(channels, width, num_classes)
