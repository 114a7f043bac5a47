"""The work as a file, so that every framework trains the same clients on the same images for as long."""

import json
import time
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from benchmarks.models import MODELS

MEAN, STD = (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)


class Given(NamedTuple):
    """What ``benchmarks.beside_peers`` has written down."""

    name: str  # W1, W2 or small
    images: Tensor  # uint8, NHWC
    labels: Tensor
    clients: list[Tensor]  # places of each client's images
    cohorts: list[list[int]]  # of each round
    epochs: int
    batch: int
    lr: float

    def model(self) -> nn.Module:
        """A new one; one thread, as the others have."""
        torch.set_num_threads(1)
        return MODELS[self.name]()

    def samples(self, t: int) -> int:
        """Images that round ``t`` (from 1) trains on, repeats counted."""
        return self.epochs * sum(len(self.clients[client]) for client in self.cohorts[t - 1])

    def pictures(self, places: Tensor) -> Tensor:
        """Normalised NCHW floats in torch's plain layout."""
        mean, std = torch.tensor(MEAN).view(1, 3, 1, 1), torch.tensor(STD).view(1, 3, 1, 1)
        x = self.images[places].permute(0, 3, 1, 2).float().div_(255).sub_(mean).div_(std)
        return x.contiguous()


@cache
def given(path: str) -> Given:
    """Read once in each process."""
    with np.load(path) as stored:
        arrays = {name: stored[name] for name in stored.files}
    facts = json.loads(str(arrays["facts"]))
    parts = np.split(arrays["order"], arrays["ends"][:-1])
    return Given(
        images=torch.from_numpy(arrays["images"]),
        labels=torch.from_numpy(arrays["labels"]),
        clients=[torch.from_numpy(part) for part in parts],
        cohorts=arrays["cohorts"].tolist(),
        **facts,
    )


def write(path: Path, arrays: dict[str, np.ndarray], facts: dict[str, str | int | float]) -> None:
    """For :func:`given`."""
    np.savez(path, facts=np.array(json.dumps(facts)), **arrays)  # pyright: ignore[reportArgumentType]


def train(net: nn.Module, work: Given, client: int, seed: int) -> int:
    """A client's local steps in plain PyTorch. Return the number of samples."""
    optimizer = torch.optim.SGD(net.parameters(), lr=work.lr)
    rng, samples = np.random.default_rng(seed), work.clients[client]
    for _ in range(work.epochs):
        for places in samples[torch.from_numpy(rng.permutation(len(samples)))].split(work.batch):
            loss = F.cross_entropy(net(work.pictures(places)), work.labels[places])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return work.epochs * len(samples)


def tell(t: int, samples: int) -> None:
    """A finished round, to whoever has started this process."""
    print(json.dumps({"round": t, "samples": samples, "at": time.time()}), flush=True)
