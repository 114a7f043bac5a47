"""FedAvg as one writes it by hand in plain PyTorch: one process, one thread.

python -m benchmarks.peers.bare WORK.npz ROUNDS
"""

import sys
from collections.abc import Callable

import torch
from torch import nn

from benchmarks.peers.given import Given, given, tell, train


def run(work: Given, rounds: int, local: Callable[[nn.Module, Given, int, int], int]) -> None:
    """FedAvg over the given cohorts; ``local`` trains a client."""
    torch.manual_seed(0)
    net = work.model()
    for t in range(1, rounds + 1):
        start = [p.detach().clone() for p in net.parameters()]
        total = [torch.zeros_like(p) for p in start]
        for client in work.cohorts[t - 1]:
            with torch.no_grad():
                for p, q in zip(net.parameters(), start, strict=True):
                    p.copy_(q)
            local(net, work, client, t)
            for mean, p in zip(total, net.parameters(), strict=True):
                mean += p.detach() / len(work.cohorts[t - 1])
        with torch.no_grad():
            for p, mean in zip(net.parameters(), total, strict=True):
                p.copy_(mean)
        tell(t, work.samples(t))


if __name__ == "__main__":
    run(given(sys.argv[1]), int(sys.argv[2]), train)
