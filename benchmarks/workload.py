"""The work that is measured: CIFAR-10, 100 clients, Dirichlet .5, 5 a round, 3 epochs, batch 32, SGD."""

import time
from collections.abc import Callable, Iterator

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from fedgm.data import cifar10
from fedgm.data.dataset import pool, subset
from fedgm.data.federation import Batching, Federation, federation
from fedgm.models.resnet import resnet

BATCH, EPOCHS, COHORT, LR = 32, 3, 5, 0.01
IMAGES = 10_000  # a fifth of the set: shorter rounds, so that more of them can be interleaved
MODELS: dict[str, Callable[[], nn.Module]] = {
    "W1 ResNet-8, 32x32": lambda: resnet(8, 16, "group"),
    "W2 small CNN, 32x32": lambda: nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(32 * 8 * 8, 10),
    ),
    "small profile, 16x16": lambda: resnet(8, 16, "group"),
}  # fmt: skip


def clients(name: str) -> Federation:
    """The federation of a workload."""
    dataset = subset(cifar10.load(), IMAGES, 1000, seed=0)
    if "16x16" in name:
        dataset = pool(dataset, 16)
    return federation(
        dataset,
        clients=100,
        alpha=0.5,
        seed=0,
        eval_train_samples=1000,
        batching=Batching(BATCH, channels_last=True),
    )


def bare_round(
    net: nn.Module, fed: Federation, cohort: list[int], rng: np.random.Generator
) -> tuple[int, float]:
    """What one would write by hand: FedAvg over the cohort in plain PyTorch. Return (samples, seconds)."""
    started, samples = time.perf_counter(), 0
    start = [p.detach().clone() for p in net.parameters()]
    total = [torch.zeros_like(p) for p in start]
    mean = torch.tensor([0.4914, 0.4822, 0.4465]).view(1, 3, 1, 1)
    std = torch.tensor([0.2470, 0.2435, 0.2616]).view(1, 3, 1, 1)
    for client in cohort:
        with torch.no_grad():
            for p, q in zip(net.parameters(), start, strict=True):
                p.copy_(q)
        optimizer = torch.optim.SGD(net.parameters(), lr=LR)
        for chosen in _batches(fed, client, rng):
            x = fed.images.train_images[chosen].permute(0, 3, 1, 2).float().div_(255).sub_(mean).div_(std)
            loss = F.cross_entropy(net(x), fed.images.train_labels[chosen])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            samples += len(chosen)
        with torch.no_grad():
            for t, p in zip(total, net.parameters(), strict=True):
                t.add_(p, alpha=1 / len(cohort))
    with torch.no_grad():
        for p, t in zip(net.parameters(), total, strict=True):
            p.copy_(t)
    return samples, time.perf_counter() - started


def _batches(fed: Federation, client: int, rng: np.random.Generator) -> Iterator[torch.Tensor]:
    own = fed.partition.indices(client)
    for _ in range(EPOCHS):
        order = torch.from_numpy(rng.permutation(own))
        yield from order.split(BATCH)
