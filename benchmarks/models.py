"""The models that are measured: importable with torch alone, so that other frameworks train the same ones."""

from collections.abc import Callable

from torch import nn

from benchmarks.logistic import logistic
from fedgm.models.convolutional import resnet


def small_cnn(num_classes: int = 10, resolution: int = 32) -> nn.Module:
    """Two convolutions and a linear layer, for colour images."""
    return nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(32 * (resolution // 4) ** 2, num_classes),
    )  # fmt: skip


def resnet8() -> nn.Module:
    """ResNet-8 with GroupNorm."""
    return resnet(8, 16, "group")


MODELS: dict[str, Callable[[], nn.Module]] = {
    "W1": resnet8, "W2": small_cnn, "small": resnet8, "tiny": logistic,
}  # fmt: skip
