"""The trained module of a run, from config.yaml and model.safetensors."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from fedgm.config import RunConfig, reopened
from fedgm.errors import FedGMError, RefusedError
from fedgm.files import write_atomically
from fedgm.lightning import pl
from fedgm.running.parts import load_clients, task_class
from fedgm.running.trainer import build_module
from fedgm.seals import require_as_written

NEEDED, GUESS = "num_classes", 10  # the stored weights say how many there are


def load_model(run: str | Path, trust: Sequence[str] = ()) -> pl.LightningModule:
    """The module of a run that has ended, with its weights, in evaluation mode; no code is unpickled."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    folder = Path(run)
    if not (folder / "config.yaml").exists():
        raise RefusedError(
            f"{folder} is not a run folder: there is no config.yaml. Try outputs/NAME/RUN/seed=0"
        )
    weights = folder / "model.safetensors"
    if not weights.exists():
        raise RefusedError(
            f"{folder} has no model.safetensors: a run writes it at its end. Finish the run first"
        )
    stored = reopened(folder, trust)
    require_as_written(folder, weights.name, "the run's command with rerun=true")
    try:
        tensors = load_file(weights)
        module = build_module(stored, _facts(stored))
        tensors = restored(tensors, module.state_dict())
        if (classes := _classes(module.state_dict(), tensors)) is not None:
            module = build_module(stored, {NEEDED: classes})
        module.load_state_dict(tensors)
    except (OSError, KeyError, IndexError, RuntimeError, SafetensorError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise FedGMError(f"{weights} is damaged ({reason}). Try the run's command with rerun=true") from None
    module.eval()
    return module


def store_model(module: pl.LightningModule, folder: Path, sync: bool) -> None:
    """The global model after the last server step, in a format that carries no code."""
    from safetensors.torch import save

    write_atomically(folder / "model.safetensors", save(storable(module.state_dict())), sync)


def storable(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """A module's state as safetensors can hold it: no memory twice (tied weights), complex64 at most.

    Wider complex numbers become pairs of real ones, which :func:`restored` turns back.
    """
    tensors, places = dict[str, Tensor](), set[int]()
    for name, tensor in state.items():
        tensor = tensor.detach().resolve_conj().contiguous()
        if tensor.is_complex() and tensor.dtype != torch.complex64:
            tensor = torch.view_as_real(tensor)
        tensors[name] = tensor.clone() if tensor.data_ptr() in places else tensor
        places.add(tensor.data_ptr())
    return tensors


def restored(tensors: Mapping[str, Tensor], like: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """What :func:`storable` was given, told by the state of the module it belongs to."""
    wide = [name for name, tensor in like.items() if tensor.is_complex() and tensor.dtype != torch.complex64]
    # Copied first: torch reads complex numbers in steps of 16 bytes, which a file need not keep to.
    return {**tensors, **{name: torch.view_as_complex(tensors[name].clone()) for name in wide}}


def _facts(stored: RunConfig) -> Mapping[str, Any]:
    """What the data decide about the model; a classifier's data need not be loaded for it."""
    if task_class(stored).model_needs == (NEEDED,):
        return {NEEDED: GUESS}
    return load_clients(stored).facts


def _classes(guessed: Mapping[str, Tensor], stored: Mapping[str, Tensor]) -> int | None:
    """The length of the last layer, which does not fit a model of ``GUESS`` classes; None if all fits."""
    unlike = [name for name, tensor in guessed.items() if stored[name].shape != tensor.shape]
    return int(stored[unlike[0]].shape[0]) if unlike else None
