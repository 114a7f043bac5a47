"""A network with tied weights, complex tables, a mask, and weights of two types."""

import torch
from torch import Tensor, nn


class Odd(nn.Module):
    """Scores of classes from the mean colour of an image."""

    def __init__(self, num_classes: int) -> None:
        super().__init__()
        self.first = nn.Linear(3, 3)
        self.second = nn.Linear(3, 3)
        self.second.weight = self.first.weight
        self.head = nn.Linear(3, num_classes).to(torch.bfloat16)
        self.register_buffer("rotary", torch.polar(torch.ones(3), torch.arange(3.0)))
        self.register_buffer("table", torch.tensor([1 / 3 + 1j / 3], dtype=torch.complex128))
        self.register_buffer("mask", torch.full((2, 2), float("-inf")).triu(1))
        self.register_buffer("large", torch.tensor(2**60 + 1))
        self.register_buffer("mean", torch.zeros(3, dtype=torch.float64))

    def forward(self, x: Tensor) -> Tensor:
        """Class scores."""
        colour = x.mean((2, 3))
        if self.training:
            self.mean = 0.9 * self.mean + 0.1 * colour.mean(0).double()
        turned = (self.second(torch.relu(self.first(colour))) * self.rotary).real
        return self.head(turned.bfloat16()).float()
