"""Seconds of a step from what a model is made of: fitted on some, checked on others that it has not seen.

    python -m benchmarks.cost_model

CPU seconds of a local step on one thread = layers x a + FLOPs / r + activations x b, none below zero.
docs/scale.md says what a round takes besides.
"""

import statistics
import time
from itertools import product
from typing import NamedTuple

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.flop_counter import FlopCounterMode

from fedgm.models.resnet import resnet
from fedgm.process.memory import kept

SEEN = [
    *product((8, 14), (16,), (16, 32), (10, 32)),
    (8, 32, 16, 20),
    (8, 32, 32, 20),
]  # depth, width, side, batch
UNSEEN = [(20, 16, 32, 20), (20, 24, 16, 32), (14, 24, 32, 16)]
SECONDS = 1.0  # of a measurement, about


class Cost(NamedTuple):
    """What a step is made of."""

    layers: float
    flops: float
    activations: float


def build(depth: int, width: int, side: int, batch: int) -> tuple[nn.Module, torch.Tensor, torch.Tensor]:
    net = resnet(depth, width, "group").to(memory_format=torch.channels_last)
    x = torch.randn(batch, 3, side, side).contiguous(memory_format=torch.channels_last)
    return net, x, torch.randint(10, (batch,))


def cost(point: tuple[int, int, int, int]) -> Cost:
    """Counted, not measured."""
    net, x, y = build(*point)
    sizes: list[int] = []
    leaves = [m for m in net.modules() if not list(m.children())]
    for leaf in leaves:
        leaf.register_forward_hook(lambda module, given, found: sizes.append(found.numel()))
    with FlopCounterMode(display=False) as counter:
        F.cross_entropy(net(x), y).backward()
    return Cost(len(leaves), counter.get_total_flops(), sum(sizes))


def seconds(point: tuple[int, int, int, int]) -> float:
    """CPU seconds of a step: the median of short stretches."""
    net, x, y = build(*point)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)

    def step() -> None:
        loss = F.cross_entropy(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    step()
    found: list[float] = []
    while sum(found) < SECONDS or len(found) < 5:
        started = time.process_time()
        step()
        found.append(time.process_time() - started)
    return statistics.median(found)


def fit(costs: list[Cost], times: list[float]) -> np.ndarray:
    """Least squares of the relative error, coefficients kept at zero or above."""
    a = np.array(costs) / np.array(times)[:, None]
    active = list(range(a.shape[1]))
    while True:
        solution = np.linalg.lstsq(a[:, active], np.ones(len(times)), rcond=None)[0]
        if (solution >= 0).all():
            break
        active.pop(int(solution.argmin()))
    found = np.zeros(a.shape[1])
    found[active] = solution
    return found


def main() -> None:
    torch.set_num_threads(1)
    with kept():
        points = [*SEEN, *UNSEEN]
        times = {point: seconds(point) for point in points}
    costs = {point: cost(point) for point in points}
    found = fit([costs[p] for p in SEEN], [times[p] for p in SEEN])
    rate = f"{1e-9 / found[1]:.1f} GFLOP/s" if found[1] else "no FLOP term"
    print(f"a = {1e6 * found[0]:.1f} us a layer, {rate}, b = {1e9 * found[2]:.3f} ns an activation")
    for point in points:
        predicted = float(np.dot(found, costs[point]))
        kind = "seen" if point in SEEN else "UNSEEN"
        print(
            f"{kind:6} depth {point[0]:2}, width {point[1]}, {point[2]}x{point[2]}, batch {point[3]:2}: "
            f"{costs[point].flops / 1e9:6.2f} GFLOP, measured {1e3 * times[point]:6.1f} ms, "
            f"model {1e3 * predicted:6.1f} ms, {100 * (predicted / times[point] - 1):+.0f} %"
        )


if __name__ == "__main__":
    main()
