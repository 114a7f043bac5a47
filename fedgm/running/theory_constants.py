"""L and the sigmas of a run, measured at its final model."""

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor
from torch.nn.functional import cross_entropy

from fedgm.config import RunConfig
from fedgm.data.federation import Federation
from fedgm.errors import RefusedError
from fedgm.running.assemble import build_module, load_federation
from fedgm.theory import Estimate, measure
from fedgm.theory.estimate import Tell


@contextmanager
def _one_thread() -> Generator[None]:
    """Small batches gain nothing from more threads, and beside other work they lose a factor of ten."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def estimate_run(
    config: RunConfig, folder: Path, clients: int, tell: Tell | None = None
) -> tuple[Estimate, int]:
    """L by power iteration on the Hessian, the sigmas from local batches; and of how many clients."""
    federation = load_federation(config)
    if not isinstance(federation, Federation):
        raise RefusedError(f"--estimate {folder}: data={config.data.name} has no images. Allowed: image data")
    module = build_module(config, federation.facts)
    try:
        module.load_state_dict(load_file(folder / "model.safetensors"))
    except (OSError, SafetensorError, RuntimeError) as error:
        reason = str(error).splitlines()[0]
        raise RefusedError(
            f"--estimate {folder}: model.safetensors is damaged ({reason}). "
            "Try the run's command with rerun=true"
        ) from None
    size, layout = config.local.batch_size, bool(config.model["channels_last"])

    def batches(client: int) -> Iterator[tuple[Tensor, Tensor]]:
        own = federation.partition.indices(client)
        for start in range(0, len(own) - size + 1, size):
            yield federation.images.batch(own[start : start + size], train=False, channels_last=layout)

    chosen = [c for c in range(federation.count) if federation.size(c) >= 2 * size][:clients]
    if len(chosen) < 2:
        raise RefusedError(f"local.batch_size={size}: fewer than two clients have two batches. Try less")
    with _one_thread():
        found = measure(module, cross_entropy, [batches(c) for c in chosen], seed=config.seed, tell=tell)
    return found, len(chosen)
