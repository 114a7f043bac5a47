"""The bare loop over a DataLoader with PIL images and torchvision's transforms, as most research code is.

python -m benchmarks.peers.loader WORK.npz ROUNDS
"""

import sys
from typing import Any

import torch
from PIL import Image
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset

from benchmarks.peers.bare import run
from benchmarks.peers.given import MEAN, STD, Given, given
from fedgm.operators import declare_torchvision_operators

declare_torchvision_operators()  # else PyPI's wheel does not load beside a CPU-only torch
from torchvision import transforms  # noqa: E402

CHANGE = transforms.Compose([transforms.ToTensor(), transforms.Normalize(MEAN, STD)])


class Pictures(Dataset[Any]):
    """A client's images as PIL sees them."""

    def __init__(self, work: Given, client: int) -> None:
        samples, images = work.clients[client].tolist(), work.images.numpy()
        self.pairs = [(Image.fromarray(images[i]), int(work.labels[i])) for i in samples]

    def __len__(self) -> int:
        return len(self.pairs)

    def __getitem__(self, place: int) -> tuple[Tensor, int]:
        picture, label = self.pairs[place]
        return CHANGE(picture), label


def train(net: nn.Module, work: Given, client: int, seed: int) -> int:
    """A client's local steps. Return the number of samples."""
    optimizer = torch.optim.SGD(net.parameters(), lr=work.lr)
    pictures = Pictures(work, client)
    loader = DataLoader(pictures, batch_size=work.batch, shuffle=True)
    for _ in range(work.epochs):
        for x, y in loader:
            loss = F.cross_entropy(net(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return work.epochs * len(pictures)


if __name__ == "__main__":
    run(given(sys.argv[1]), int(sys.argv[2]), train)
