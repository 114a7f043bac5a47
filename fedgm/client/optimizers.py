"""What SCAFFOLD and FedNova assume of a client's optimiser, asked of the one that is built."""

from typing import Any, NamedTuple

from torch.optim import SGD, Optimizer


class Effective(NamedTuple):
    """What FedNova's a_i depends on besides the number of steps."""

    momentum: float
    pull: float  # eta_l mu of FedProx


def is_plain_sgd(optimizer: Optimizer) -> bool:
    """Whether every step is ``w -= lr g``: no momentum, no weight decay, in any group.

    >>> import torch
    >>> w = [torch.zeros(1, requires_grad=True)]
    >>> is_plain_sgd(SGD(w, lr=0.1)), is_plain_sgd(SGD(w, lr=0.1, momentum=0.9))
    (True, False)
    """
    return _is_sgd(optimizer) and not any(
        group["momentum"] or group["weight_decay"] for group in optimizer.param_groups
    )


def effective(optimizer: Optimizer, mu: float) -> Effective | None:
    """Momentum and pull of all groups; None where a_i is not known, or differs from group to group.

    Weight decay is not part of a_i, as in the authors' code.
    """
    if not _is_sgd(optimizer) or any(g["nesterov"] or g["dampening"] for g in optimizer.param_groups):
        return None
    terms = {Effective(g["momentum"], float(g["lr"]) * mu) for g in optimizer.param_groups}
    return terms.pop() if len(terms) == 1 else None


def described(optimizer: Optimizer) -> str:
    """For a message: ``SGD(momentum=0.9)``, of the first group."""
    group: dict[str, Any] = optimizer.param_groups[0]
    shown = [f"{name}={group[name]:g}" for name in ("momentum", "weight_decay") if group.get(name)]
    return f"{type(optimizer).__name__}({', '.join(shown)})"


def _is_sgd(optimizer: Optimizer) -> bool:
    return type(optimizer) is SGD and not any(group["maximize"] for group in optimizer.param_groups)
