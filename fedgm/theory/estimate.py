"""L, sigma_l, sigma_g and f(x_0) of a real model, measured at its present weights.

They are local measurements, where the theorems ask for constants over all x: L is the curvature of
the mean objective *here*, hence a lower estimate, and so are the sigmas if they grow elsewhere.
"""

from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from fedgm.draws import derive
from fedgm.errors import RefusedError
from fedgm.theory.setting import Problem

Batch = tuple[Tensor, Tensor]
Loss = Callable[[Tensor, Tensor], Tensor]  # (output, target) -> scalar mean over the batch
Tell = Callable[[str, int, int], None]  # (what is measured, steps done, steps at most): progress


@dataclass(frozen=True)
class Curvature:
    """The largest |eigenvalue| of the Hessian of f, and how far the iteration got."""

    L: float
    residual: float  # ||H v - (v'H v) v|| / ||H v||: 0 at an eigenvector
    iterations: int


def hessian_norm(
    module: nn.Module,
    loss: Loss,
    clients: Sequence[Sequence[Batch]],
    seed: int,
    iterations: int = 50,
    tolerance: float = 1e-3,
    tell: Tell | None = None,
) -> Curvature:
    """Power iteration until the residual falls to ``tolerance`` or the iterations run out.

    ||H v|| of a unit v never exceeds the largest |eigenvalue| and grows towards it, also where
    eigenvalues of both signs compete and the residual stays large.
    """
    with evaluating(module) as parameters:
        source = torch.Generator().manual_seed(derive(seed, "hessian"))
        v = torch.randn(sum(p.numel() for p in parameters), generator=source).to(parameters[0])
        curvature = Curvature(0.0, 0.0, 0)
        while curvature.iterations < iterations:
            v = v / v.norm()
            Hv = torch.zeros_like(v)
            for index, client in enumerate(clients, start=1):
                Hv += _hessian_vector(module, loss, client, parameters, v) / len(clients)
                if tell is not None:
                    tell("L", curvature.iterations * len(clients) + index, iterations * len(clients))
            size = float(Hv.norm())
            residual = float((Hv - (v @ Hv) * v).norm()) / size if size > 0 else 0.0
            curvature = Curvature(size, residual, curvature.iterations + 1)
            if residual <= tolerance:
                break
            v = Hv
    return curvature


@contextmanager
def evaluating(module: nn.Module) -> Generator[list[nn.Parameter]]:
    """The trainable parameters, in evaluation mode, each part's mode restored afterwards.

    In training mode BatchNorm and dropout would change f from call to call.
    """
    parameters = [p for p in module.parameters() if p.requires_grad]
    if not parameters:
        raise RefusedError("the module has no parameter that requires a gradient, so nothing to measure")
    modes = [(part, part.training) for part in module.modules()]
    module.eval()
    try:
        with torch.enable_grad():
            yield parameters
    finally:
        for part, training in modes:
            part.training = training


def gradient(
    module: nn.Module, loss: Loss, batch: Batch, parameters: list[nn.Parameter], graph: bool = False
) -> tuple[Tensor, Tensor]:
    """Loss and flat gradient of one batch; ``.grad`` is left alone."""
    data, target = batch
    value = loss(module(data), target)
    return value.detach(), _slope(value, parameters, graph)


def _slope(value: Tensor, parameters: list[nn.Parameter], graph: bool = False) -> Tensor:
    """The derivative of a scalar as one vector."""
    parts = torch.autograd.grad(
        value, parameters, create_graph=graph, allow_unused=True, materialize_grads=True
    )
    return torch.cat([part.reshape(-1) for part in parts])


def _hessian_vector(
    module: nn.Module, loss: Loss, batches: Sequence[Batch], parameters: list[nn.Parameter], v: Tensor
) -> Tensor:
    """H v for one client's f_i, the mean over its batches, by a second backward pass."""
    result = torch.zeros_like(v)
    for batch in batches:
        _, g = gradient(module, loss, batch, parameters, graph=True)
        along = g @ v
        if along.requires_grad:  # not so where the loss is linear
            result += _slope(along, parameters) / len(batches)
    return result


@dataclass(frozen=True)
class Spread:
    """The mean loss and the two kinds of gradient spread."""

    f0: float
    sigma_l: float
    sigma_g: float
    sigma_max: float  # max_i ||grad f_i - grad f||, of the clients measured


@dataclass(frozen=True)
class Estimate:
    """What the theorems need to know of a model; f* is taken as 0, the least that a loss can be."""

    curvature: Curvature
    spread: Spread

    @property
    def problem(self) -> Problem:
        """The constants as measured here, with f* = 0; a bound wants f where training starts instead."""
        s = self.spread
        return Problem(self.curvature.L, s.sigma_l, s.sigma_g, s.f0, s.sigma_max)


def measure(
    module: nn.Module,
    loss: Loss,
    clients: Iterable[Iterable[Batch]],
    seed: int,
    iterations: int = 50,
    tolerance: float = 1e-3,
    whole: bool = False,
    tell: Tell | None = None,
) -> Estimate:
    """Measure everything on each client's batches; modes, gradients and buffers stay as they are."""
    batches = [list(client) for client in clients]
    spread = gradient_spread(module, loss, batches, whole, tell)
    return Estimate(hessian_norm(module, loss, batches, seed, iterations, tolerance, tell), spread)


def gradient_spread(
    module: nn.Module,
    loss: Loss,
    clients: Sequence[Sequence[Batch]],
    whole: bool = False,
    tell: Tell | None = None,
) -> Spread:
    """f and the sigmas from the gradients of equally large batches, at least two for each client.

    sigma_l^2 is the mean over clients of the variance between a client's batches. A client's mean
    gradient carries 1/B of it, which is taken off the spread of these means to get sigma_g^2 and
    sigma_max^2; not so with ``whole=True``, which says that the batches hold all that a client has.
    """
    counts = [len(client) for client in clients]
    if min(counts, default=0) < 2:
        raise RefusedError(
            f"batches per client are {counts}: a variance needs two or more. Try smaller batches"
        )
    n, f0, noise, carried = len(clients), 0.0, 0.0, list[float]()
    with evaluating(module) as parameters:
        total = torch.zeros(sum(p.numel() for p in parameters), dtype=torch.float64)
        for index, client in enumerate(clients, start=1):
            measured = _client(module, loss, client, parameters)
            f0 += measured.loss / n
            noise += measured.variance / n
            carried.append(0.0 if whole else measured.variance / len(client))
            total += measured.mean / n
            if tell is not None:
                tell("sigma", index, 2 * n)
        # A second pass instead of all clients' gradients in memory at once.
        apart = list[float]()
        for index, client in enumerate(clients, start=n + 1):
            apart.append(float((_client(module, loss, client, parameters).mean - total).square().sum()))
            if tell is not None:
                tell("sigma", index, 2 * n)
    # E||g_i - g||^2 has (1 - 2/n) of client i's noise, and 1/n of everyone's mean.
    mean_carried = sum(carried) / n
    squares = [a - (1 - 2 / n) * c - mean_carried / n for a, c in zip(apart, carried, strict=True)]
    sigma_g2, largest = max(0.0, sum(squares) / n), max(0.0, *squares)
    return Spread(f0, noise**0.5, sigma_g2**0.5, max(largest, sigma_g2) ** 0.5)


@dataclass(frozen=True)
class _Client:
    """Mean loss and gradient over a client's batches, and the variance between them."""

    loss: float
    mean: Tensor
    variance: float


def _client(
    module: nn.Module, loss: Loss, batches: Sequence[Batch], parameters: list[nn.Parameter]
) -> _Client:
    """Sums in float64, one gradient at a time, so that a large model needs no more than three vectors."""
    B, value, squares = len(batches), 0.0, 0.0
    mean = torch.zeros(sum(p.numel() for p in parameters), dtype=torch.float64)
    for batch in batches:
        f, g = gradient(module, loss, batch, parameters)
        g = g.to(mean)
        value += float(f) / B
        mean += g / B
        squares += float(g @ g)
    variance = (squares - B * float(mean @ mean)) / (B - 1)
    return _Client(value, mean, max(0.0, variance))
