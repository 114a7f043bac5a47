"""The work that is measured, on real data; docs/benchmarks.md says what it is."""

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader
from torch.utils.data import Dataset as TorchDataset

from benchmarks.logistic import TINY
from benchmarks.models import MODELS
from fedgm.config import compose, validate
from fedgm.config.parts import build
from fedgm.data import cifar10
from fedgm.data.clients import Source
from fedgm.data.dataset import pool, subset
from fedgm.data.federation import Batching, Federation, federation
from fedgm.models.convolutional import resnet
from fedgm.models.gpt import gpt
from fedgm.participation import ideal
from fedgm.running.parts import load_clients
from fedgm.tasks import TaskModule
from fedgm.tasks.cross_entropy import Classification, NextToken

EPOCHS, COHORT, LR = 3, 5, 0.01
BATCHES = {"W1": 32, "W2": 32, "small": 10, "W3": 20}  # small and W3 as in their profiles
MEAN, STD = (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)
IMAGES = 10_000  # a fifth of the set: shorter rounds, so that more of them can be interleaved


def clients(name: str) -> Federation:
    """The federation of a workload."""
    dataset = subset(cifar10.load(), IMAGES, 1000, seed=0)
    if name == "small":
        dataset = pool(dataset, 16)
    return federation(
        dataset,
        clients=100,
        alpha=0.5,
        seed=0,
        eval_train_samples=1000,
        batching=Batching(BATCHES[name], channels_last=True),
    )


@dataclass(frozen=True)
class Work:
    """What is trained, by whom, and for how long."""

    data: Any
    model: Callable[[], nn.Module]
    batch: int
    task: type[TaskModule] = Classification
    channels_last: bool = True
    per_round: int = COHORT
    unit: str = "epochs"
    amount: int = EPOCHS

    @property
    def words(self) -> str:
        """Batch and local work, for the page."""
        return f"batch {self.batch}, {self.amount} {self.unit} a client"

    def cohort(self, t: int) -> list[int]:
        """The clients that our own loop draws for round t."""
        return [task.client for task in ideal(self.data.count, self.per_round, self.amount, seed=0).tasks(t)]

    def module(self, lr: float) -> TaskModule:
        """For our loop."""
        return self.task(self.model(), lambda params: torch.optim.SGD(params, lr=lr), self.channels_last)

    def steps(self, client: int) -> int:
        """Local steps of a client."""
        return self.amount if self.unit == "steps" else self.amount * self.data.epoch(client)


def work(name: str) -> Work:
    """W1, W2 and the small profile on images; W3, one client of profile=paper; W4, text; tiny clients."""
    if name == "tiny":
        config = validate(compose(TINY))
        data = load_clients(config)
        return Work(data, MODELS[name], config.local.batch_size, channels_last=False, amount=1)
    if name == "W4":
        config = validate(compose(["data=shakespeare", "clients.count=20", "local.unit=steps"]))
        source: Source = build(config.data.source, "data.source", kind=Source)
        data = source.federate(config)
        model = partial(gpt, data.facts["vocabulary"], data.facts["block"])
        batch = config.local.batch_size
        return Work(data, model, batch, NextToken, False, per_round=1, unit="steps", amount=100)
    if name == "W3":
        dataset = subset(cifar10.load(), IMAGES, 1000, seed=0)
        batching = Batching(BATCHES[name], channels_last=True)
        data = federation(dataset, clients=20, alpha=0.5, seed=0, augment="crop_flip", batching=batching)
        model = partial(resnet, 18, 64, "batch")
        return Work(data, model, BATCHES[name], per_round=1, unit="steps", amount=200)
    return Work(clients(name), MODELS[name], BATCHES[name])


def bare_round(
    net: nn.Module, workload: Work, cohort: list[int], rng: np.random.Generator, channels_last: bool = True
) -> tuple[int, float]:
    """What one would write by hand: FedAvg over the cohort in plain PyTorch. Return (samples, seconds)."""
    return _round(net, workload, cohort, lambda client: _batches(workload, client, rng, channels_last))


def loader_round(
    net: nn.Module, workload: Work, cohort: list[int], rng: np.random.Generator, channels_last: bool = False
) -> tuple[int, float]:
    """The same over a DataLoader with PIL images and torchvision's transforms, as most research code is."""
    from torchvision import transforms

    change = transforms.Compose([transforms.ToTensor(), transforms.Normalize(MEAN, STD)])
    images, labels = workload.data.images.train_images.numpy(), workload.data.images.train_labels

    def batches(client: int) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        samples = workload.data.partition.indices(client)
        pairs = [(Image.fromarray(images[i]), int(labels[i])) for i in samples]
        loader = DataLoader(_Pictures(pairs, change), batch_size=workload.batch, shuffle=True)
        for _ in range(workload.amount):
            yield from loader

    return _round(net, workload, cohort, batches)


class _Pictures(TorchDataset[Any]):
    def __init__(self, pairs: list[tuple[Any, int]], change: Callable[[Any], torch.Tensor]) -> None:
        self.pairs, self.change = pairs, change

    def __len__(self) -> int:
        return len(self.pairs)

    def __getitem__(self, place: int) -> tuple[torch.Tensor, int]:
        picture, label = self.pairs[place]
        return self.change(picture), label


def _round(
    net: nn.Module, workload: Work, cohort: list[int], batches: Callable[[int], Iterable[Any]]
) -> tuple[int, float]:
    started, samples = time.perf_counter(), 0
    start = [p.detach().clone() for p in net.parameters()]
    total = [torch.zeros_like(p) for p in start]
    for client in cohort:
        with torch.no_grad():
            for p, q in zip(net.parameters(), start, strict=True):
                p.copy_(q)
        optimizer = torch.optim.SGD(net.parameters(), lr=LR)
        for x, y in batches(client):
            scores = net(x)
            loss = F.cross_entropy(scores.flatten(0, -2), y.flatten(), ignore_index=-100)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            samples += len(y)
        with torch.no_grad():
            for t, p in zip(total, net.parameters(), strict=True):
                t.add_(p, alpha=1 / len(cohort))
    with torch.no_grad():
        for p, t in zip(net.parameters(), total, strict=True):
            p.copy_(t)
    return samples, time.perf_counter() - started


def _batches(
    workload: Work, client: int, rng: np.random.Generator, channels_last: bool
) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """By hand for images that are not augmented; else what our clients see, in the layout asked for."""
    data = workload.data
    if workload.unit == "steps":
        for x, y in data.batches(client, int(rng.integers(1000)), workload.steps(client)):
            yield (x if channels_last or x.dim() != 4 else x.contiguous()), y
        return
    samples, images = data.partition.indices(client), data.images
    mean, std = torch.tensor(MEAN).view(1, 3, 1, 1), torch.tensor(STD).view(1, 3, 1, 1)
    for _ in range(workload.amount):
        for chosen in torch.from_numpy(rng.permutation(samples)).split(workload.batch):
            x = images.train_images[chosen].permute(0, 3, 1, 2).float().div_(255).sub_(mean).div_(std)
            yield (x if channels_last else x.contiguous()), images.train_labels[chosen]
