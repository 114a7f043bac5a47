"""The smallest model: logistic regression on the pixels, so that a round costs little besides itself."""

from torch import nn


def logistic(num_classes: int, resolution: int) -> nn.Module:
    """One linear layer on colour images."""
    return nn.Sequential(nn.Flatten(), nn.Linear(3 * resolution**2, num_classes))
