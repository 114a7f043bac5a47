"""The inner optimiser's state as named tensors, so that it can be kept per client (``local.state=keep``)."""

from collections import defaultdict
from typing import Any

import torch
from torch import Tensor

from fedgm.errors import FedGMError

NUMBER = "#"  # ends the name of what is a plain number in the optimiser


def read_state(optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """Copies of everything that the optimiser remembers, named ``<parameter>.<entry>``."""
    found: dict[str, Tensor] = {}
    for number, parameter in enumerate(_parameters(optimizer)):
        for name, value in optimizer.state.get(parameter, {}).items():
            key = f"{number}.{name}"
            if isinstance(value, Tensor):
                found[key] = value.detach().clone(memory_format=torch.contiguous_format)
            elif isinstance(value, int | float):
                found[key + NUMBER] = torch.tensor(value)
            elif value is not None:
                raise FedGMError(
                    f"local.state=keep: {type(optimizer).__name__} remembers {name}, which cannot be stored "
                    f"({type(value).__name__}). Try local.state=reset"
                )
    return found


def write_state(optimizer: torch.optim.Optimizer, kept: dict[str, Tensor]) -> None:
    """Let the optimiser remember ``kept`` and nothing else; an empty one is a fresh start."""
    optimizer.state.clear()
    parameters = _parameters(optimizer)
    entries: dict[int, dict[str, Any]] = defaultdict(dict)
    for key, value in kept.items():
        number, name = key.split(".", 1)
        like = parameters[int(number)]
        if name.endswith(NUMBER):
            entries[int(number)][name.removesuffix(NUMBER)] = value.item()
        elif value.shape == like.shape:  # in the parameter's own layout and place
            entries[int(number)][name] = torch.empty_like(like).to(value.dtype).copy_(value)
        else:
            entries[int(number)][name] = value.clone()
    for number, entry in entries.items():
        optimizer.state[parameters[number]] = entry


def _parameters(optimizer: torch.optim.Optimizer) -> list[Tensor]:
    return [parameter for group in optimizer.param_groups for parameter in group["params"]]
