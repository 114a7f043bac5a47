"""The smallest clients: logistic regression on two 8x8 images, so that a round costs little else."""

from torch import nn

SIDE = 8
# Five such clients a round, one step each; all else is as in any run, also a checkpoint after each round.
TINY = [
    "profile=tiny", "track.mode=disabled", "data.partition=virtual", "data.client_samples=2",
    "data.train_samples=2000", "data.test_samples=20", "eval.train_samples=20", "local.epochs=1",
    "eval.every=1000", "model=cnn", "model._target_=benchmarks.logistic.logistic",
    "model.channels_last=false",
]  # fmt: skip


def logistic(num_classes: int = 10, resolution: int = SIDE) -> nn.Module:
    """One linear layer on colour images."""
    return nn.Sequential(nn.Flatten(), nn.Linear(3 * resolution**2, num_classes))
