"""Seconds of a step from what a model is made of: fitted on some, checked on others that it has not seen.

    python -m benchmarks.cost_model

CPU seconds of a local step on one thread = layers x a + FLOPs / r + activations x b, none below zero.
benchmarks.whole_round adds what a round takes besides.
"""

import statistics
import time
from collections.abc import Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.flop_counter import FlopCounterMode

from fedgm.models.convolutional import resnet
from fedgm.running.memory import kept

Point = tuple[int, int, int, int]  # depth, width, side, batch
SEEN: list[Point] = [
    *product((8, 14), (16,), (16, 32), (10, 32)),
    (8, 32, 16, 20),
    (8, 32, 32, 20),
    (8, 64, 16, 10),
]
UNSEEN: list[Point] = [(20, 16, 32, 20), (20, 24, 16, 32), (14, 24, 32, 16)]
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


def cost(point: Point) -> Cost:
    """Counted, not measured."""
    net, x, y = build(*point)
    sizes: list[int] = []
    leaves = [m for m in net.modules() if not list(m.children())]
    for leaf in leaves:
        leaf.register_forward_hook(lambda module, given, output: sizes.append(output.numel()))
    with FlopCounterMode(display=False) as counter:
        F.cross_entropy(net(x), y).backward()
    return Cost(len(leaves), counter.get_total_flops(), sum(sizes))


def seconds(point: Point) -> float:
    """CPU seconds of a step: the median of short stretches."""
    net, x, y = build(*point)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)

    def step() -> None:
        loss = F.cross_entropy(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    step()
    seconds: list[float] = []
    while sum(seconds) < SECONDS or len(seconds) < 5:
        started = time.process_time()
        step()
        seconds.append(time.process_time() - started)
    return statistics.median(seconds)


def fit(costs: Sequence[tuple[float, ...]], times: list[float]) -> np.ndarray:
    """Least squares of the relative error, coefficients kept at zero or above."""
    a = np.array(costs) / np.array(times)[:, None]
    active = list(range(a.shape[1]))
    while True:
        solution = np.linalg.lstsq(a[:, active], np.ones(len(times)), rcond=None)[0]
        if (solution >= 0).all():
            break
        active.pop(int(solution.argmin()))
    whole = np.zeros(a.shape[1])
    whole[active] = solution
    return whole


def steps_fitted() -> tuple[np.ndarray, dict[Point, float]]:
    """Seconds for each of the costs, and the measured steps, seen and unseen."""
    times = {point: seconds(point) for point in (*SEEN, *UNSEEN)}
    return fit([cost(point) for point in SEEN], [times[point] for point in SEEN]), times


def checked(step: np.ndarray, times: dict[Point, float]) -> list[dict[str, Any]]:
    """What the model says of each, beside what was measured."""
    return [
        {"point": point, "seen": point in SEEN, "said": float(np.dot(step, cost(point))), "measured": took}
        for point, took in times.items()
    ]


def main() -> None:
    torch.set_num_threads(1)
    with kept():
        step, times = steps_fitted()
    rate = f"{1e-9 / step[1]:.1f} GFLOP/s" if step[1] else "no FLOP term"
    print(f"a = {1e6 * step[0]:.1f} us a layer, {rate}, b = {1e9 * step[2]:.3f} ns an activation")
    for one in checked(step, times):
        depth, width, side, batch = one["point"]
        print(
            f"{'seen' if one['seen'] else 'UNSEEN':6} depth {depth:2}, width {width}, {side}x{side}, "
            f"batch {batch:2}: measured {1e3 * one['measured']:6.1f} ms, model {1e3 * one['said']:6.1f} ms, "
            f"{100 * (one['said'] / one['measured'] - 1):+.0f} %"
        )


if __name__ == "__main__":
    main()
