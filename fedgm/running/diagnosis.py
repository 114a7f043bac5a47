"""A run as the theorems see it: its setting, the theorems that apply, L and the sigmas at its final model."""

from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import click
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor
from torch.nn.functional import cross_entropy

from fedgm.client.rules import Plain
from fedgm.config import RunConfig
from fedgm.data.clients import local_steps
from fedgm.data.federation import Federation
from fedgm.errors import FedGMError, RefusedError
from fedgm.models.layout import fit_layout
from fedgm.running.parts import build_parts, load_clients
from fedgm.running.trainer import build_module
from fedgm.seals import require_as_written
from fedgm.server.rule import SeesAges, SeesNorms
from fedgm.theory import (
    Estimate,
    Problem,
    Report,
    Setting,
    Training,
    Variant,
    arrives_uniformly,
    corollary,
    diagnose,
    local_work,
    measure,
    require_covered,
    theorem1,
    theorem2,
    theorem3,
    theory_stages,
)
from fedgm.theory.estimate import Tell
from fedgm.theory.setting import setting


def setting_of(config: RunConfig) -> Setting:
    """A configuration in the theorems' symbols; K, m and tau are those of the tasks that its run has."""
    return covered_setting(config)[0]


def covered_setting(config: RunConfig) -> tuple[Setting, bool]:
    """The setting, and whether clients arrive uniformly; what no theorem covers is refused first."""
    parts = build_parts(config)
    if isinstance(parts.engine.rule, SeesNorms):
        raise RefusedError("the theorems cover FedGM, whose eta no update changes. Try algorithm=fedgm")
    if isinstance(parts.engine.rule, SeesAges):
        raise RefusedError("the theorems cover FedGM, whose beta no client changes. Try algorithm=fedgm")
    for group, plain in (("sending", "all"), ("privacy", "none"), ("work", "constant")):
        if (name := getattr(config, group)["name"]) != plain:
            raise RefusedError(f"no theorem covers {group}={name}. Try {group}={plain}")
    stages = theory_stages(parts.engine.plan)
    rule, local, name = parts.client, config.local, str(config.client["name"])
    plain, optimizer = type(rule) is Plain, local.optimizers[local.optimizer]
    require_covered(
        Training(
            name,
            plain,
            rule.keeps > 0,
            optimizer,
            local.clip,
            config.clients.weights,
            config.participation,
            str(config.upload["name"]),
        )
    )
    federation, scheme = parts.load(config), parts.participation

    def steps(client: int, epochs: int) -> int:
        return local_steps(federation, client, epochs, local.unit)

    work = local_work(scheme, steps, config.rounds)
    return setting(work, config.clients.count, local.lr, stages), arrives_uniformly(scheme)


def reports(
    theorem: str,
    uniform: bool,
    problem: Problem,
    setting: Setting,
    variant: Variant,
) -> Iterator[Report]:
    """The theorem asked for, or all that apply; ``auto`` is the corollary unless arrival is uniform."""
    theorems: dict[str, Callable[..., Report]] = {
        "1": theorem1, "2": theorem2, "3": theorem3, "nonuniform": _corollary
    }  # fmt: skip
    if theorem != "all":
        chosen = _corollary if theorem == "auto" and not uniform else diagnose
        yield theorems.get(theorem, chosen)(problem, setting, variant)
        return
    for name, one in theorems.items():
        try:
            yield one(problem, setting, variant)
        except FedGMError as error:
            click.echo(f"Theorem {name}: {error}", err=True)


def _corollary(problem: Problem, setting: Setting, variant: Variant) -> Report:
    """The corollary with the sigma_g that its proof needs, of the most different client, where measured."""
    if problem.sigma_max is not None and problem.sigma_max > problem.sigma_g:
        note = f"sigma_g is that of the client that differs most, {problem.sigma_max:.3g}."
        problem = replace(problem, sigma_g=problem.sigma_max)
        setting = replace(setting, notes=(*setting.notes, note))
    return corollary(problem, setting, variant)


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
    federation = load_clients(config)
    if not isinstance(federation, Federation):
        raise RefusedError(f"--estimate {folder}: data={config.data.name} has no images. Allowed: image data")
    module = build_module(config, federation.facts)
    require_as_written(folder, "model.safetensors", "the run's command with rerun=true")
    try:
        module.load_state_dict(load_file(folder / "model.safetensors"))
    except (OSError, SafetensorError, RuntimeError) as error:
        reason = str(error).splitlines()[0]
        raise RefusedError(
            f"--estimate {folder}: model.safetensors is damaged ({reason}). "
            "Try the run's command with rerun=true"
        ) from None
    fit_layout(module.net, federation, config.trainer.accelerator)
    size, layout = config.local.batch_size, federation.batching.channels_last

    def batches(client: int) -> Iterator[tuple[Tensor, Tensor]]:
        samples = federation.partition.indices(client)
        for start in range(0, len(samples) - size + 1, size):
            yield federation.images.batch(samples[start : start + size], train=False, channels_last=layout)

    chosen = [c for c in range(federation.count) if federation.size(c) >= 2 * size][:clients]
    if len(chosen) < 2:
        raise RefusedError(f"local.batch_size={size}: fewer than two clients have two batches. Try less")
    with _one_thread():
        estimate = measure(module, cross_entropy, [batches(c) for c in chosen], seed=config.seed, tell=tell)
    return estimate, len(chosen)
