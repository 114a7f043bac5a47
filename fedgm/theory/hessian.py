"""L of a real model at its present weights: the largest curvature, by power iteration on the Hessian."""

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from fedgm.draws import derive
from fedgm.errors import RefusedError

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
        found = Curvature(0.0, 0.0, 0)
        while found.iterations < iterations:
            v = v / v.norm()
            Hv = torch.zeros_like(v)
            for index, client in enumerate(clients, start=1):
                Hv += _hessian_vector(module, loss, client, parameters, v) / len(clients)
                if tell is not None:
                    tell("L", found.iterations * len(clients) + index, iterations * len(clients))
            size = float(Hv.norm())
            residual = float((Hv - (v @ Hv) * v).norm()) / size if size > 0 else 0.0
            found = Curvature(size, residual, found.iterations + 1)
            if residual <= tolerance:
                break
            v = Hv
    return found


@contextmanager
def evaluating(module: nn.Module) -> Generator[list[nn.Parameter]]:
    """The trainable parameters, in evaluation mode, each part's own mode restored afterwards.

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
