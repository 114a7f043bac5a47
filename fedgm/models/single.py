"""Models that cannot train on one image: BatchNorm over a single value per channel has no variance."""

from copy import deepcopy

import numpy as np
import torch
from torch import nn

from fedgm.data.federation import Federation
from fedgm.data.images import Batch
from fedgm.errors import require

WHY = "its BatchNorm has 1x1 pixels left, and one image there has no variance"


def fit_batches(net: nn.Module, data: Federation, norm: object, min_samples: int) -> Federation:
    """The data as it is, or for a model that cannot train on one image without batches of one.

    Then the last batch of one takes an image from the batch before it: as many steps, each image once.
    """
    if not _needs_pairs(
        net, data.images.batch(np.array([0]), train=False, channels_last=data.batching.channels_last)
    ):
        return data
    size, sizes = data.batching.batch_size, {data.size(client) for client in range(data.count)}
    other = ", or model.norm=group" if norm is not None else ""
    allowed = f"at least 3 for this model: {WHY}"
    whole = size >= 3 or (size == 2 and not any(own % 2 for own in sizes))
    require(whole, "local.batch_size", size, allowed, f"local.batch_size=3{other}")
    allowed = f"at least 2 for this model: {WHY}"
    require(min(sizes) >= 2, "data.min_samples", min_samples, allowed, f"data.min_samples=2{other}")
    return Federation(data.images, data.partition, data.batching._replace(pairs=True))


def _needs_pairs(net: nn.Module, batch: Batch) -> bool:
    """Whether a step on one image raises; tried on a copy, with draws that nobody else sees."""
    if not any(isinstance(part, nn.modules.batchnorm._BatchNorm) for part in net.modules()):
        return False
    with torch.no_grad(), torch.random.fork_rng(devices=[]):
        try:
            deepcopy(net).train()(batch[0])
        except ValueError as error:
            return "more than 1 value per channel" in str(error)
    return False
