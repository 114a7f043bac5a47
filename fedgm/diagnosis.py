"""``fedgm theory``: what Theorems 1-3 say about a configuration, with assumed or measured constants."""

from collections.abc import Iterator
from dataclasses import replace
from math import ceil, log
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from fedgm.errors import FedGMError

if TYPE_CHECKING:  # at run time only once the command runs: --help must not wait for torch
    from torch import Tensor

    from fedgm.config import RunConfig
    from fedgm.theory import Estimate, Problem, Setting

CIFAR10 = 50_000  # images, where train_samples is null


@click.command()
@click.argument("overrides", nargs=-1, metavar="[+experiment=NAME] [KEY=VALUE]...")
@click.option(
    "--estimate", type=click.Path(path_type=Path), metavar="RUN", help="Measure L and the sigmas on a run."
)
@click.option("--clients", default=10, show_default=True, help="Clients that --estimate measures on.")
@click.option("--L", "L", default=1.0, show_default=True, help="Smoothness, where it is not measured.")
@click.option("--sigma-l", default=1.0, show_default=True, help="Local noise, where it is not measured.")
@click.option(
    "--sigma-g", default=1.0, show_default=True, help="Difference of clients, where it is not measured."
)
@click.option("--gap", default=log(10), show_default="ln 10", help="f(x_0) - f*, where it is not measured.")
@click.option("--theorem", type=click.Choice(["auto", "1", "2", "3", "nonuniform", "all"]), default="auto")
@click.option(
    "--variant", type=click.Choice(["corrected", "printed"]), default="corrected", show_default=True
)
def theory(
    overrides: tuple[str, ...], estimate: Path | None, clients: int, theorem: str,
    variant: Literal["corrected", "printed"], **constants: float,
) -> None:  # fmt: skip
    """Conditions and bounds of the paper's theorems: a diagnostic, never a gate.

    \b
    fedgm theory +experiment=multistage
    fedgm theory +experiment=multistage --L 5 --variant printed --theorem all
    fedgm theory --estimate outputs/multistage/fedgm-.../seed=0
    """
    from rich.console import Console

    from fedgm.theory import bounds, render

    console = Console()
    try:
        config, problem = (
            _measured(console, estimate, clients) if estimate else _assumed(overrides, constants)
        )
        setting = setting_of(config)
        theorems = {
            "1": bounds.theorem1, "2": bounds.theorem2, "3": bounds.theorem3, "nonuniform": bounds.corollary,
            "auto": bounds.diagnose,
        }  # fmt: skip
        biased = "biased" in str(config.participation.get("sampler", {}).get("_target_", "")).lower()
        chosen = "nonuniform" if theorem == "auto" and biased else theorem
        for name in ("1", "2", "3", "nonuniform") if theorem == "all" else (chosen,):
            console.print(render(theorems[name](problem, setting, variant)))
    except FedGMError as error:
        click.echo(f"error: {error}", err=True)
        raise SystemExit(2) from error


def setting_of(config: "RunConfig") -> "Setting":
    """A configuration in the theorems' symbols; K is that of a client of average size."""
    from fedgm.assemble import build_server
    from fedgm.server.rule import SeesNorms
    from fedgm.theory import Setting, theory_stages

    rule, plan = build_server(config)
    if isinstance(rule, SeesNorms):
        raise FedGMError("the theorems cover FedGM, whose eta no update changes. Try algorithm=fedgm")
    participation: dict[str, Any] = config.participation
    per_epoch = _steps_per_epoch(config)
    tau = participation.get("delay", participation.get("max_staleness", 0) + 1) - 1
    epochs = participation["epochs"]
    low, high = (epochs, epochs) if isinstance(epochs, int) else (max(epochs[0], 1), epochs[1])
    law = [(amount * per_epoch, 1 / (high - low + 1)) for amount in range(low, high + 1)]
    autonomous = tau > 0 or low < high  # else Alg. 4 is Alg. 3
    setting = Setting(
        n=config.clients.count,
        m=participation.get("per_round", config.clients.per_round),
        K=config.local.epochs * per_epoch,
        eta_l=config.local.lr,
        stages=theory_stages(plan),
        tau=tau,
        K_law=law if autonomous else (),
    )
    # Theorem 3 divides an update by its K. What a run does instead is a factor of its etas.
    mean_steps = sum(steps * part for steps, part in law)
    factors = {
        "reference": setting.K,
        "none": mean_steps,
        "fednova": mean_steps,
        "epochs": per_epoch,
        "steps": 1,
    }
    return setting.scaled(factors[participation["normalize"]]) if autonomous else setting


def _steps_per_epoch(config: "RunConfig") -> int:
    """Of a client of average size."""
    if config.local.unit == "steps":
        return 1
    data = config.data
    size = (data.train_samples or CIFAR10) / config.clients.count
    if data.partition == "virtual":
        size = data.client_samples or max(data.min_samples, size)
    return ceil(size / config.local.batch_size)


def _assumed(overrides: tuple[str, ...], constants: dict[str, float]) -> tuple["RunConfig", "Problem"]:
    """A configuration that need not have run, with the constants of the command line."""
    from hydra.errors import HydraException

    from fedgm.config import compose, validate
    from fedgm.theory import Problem

    try:
        config = validate(compose(overrides))
    except HydraException as error:
        raise FedGMError(str(error)) from None
    c = constants
    return config, Problem(c["L"], c["sigma_l"], c["sigma_g"], c["gap"])


def _measured(console: Any, folder: Path, clients: int) -> tuple["RunConfig", "Problem"]:
    """The configuration of a run, with constants measured at its final model."""
    from fedgm.config import register, stored, validate
    from fedgm.track import summary

    register()
    for name in ("config.yaml", "model.safetensors"):
        if not (folder / name).exists():
            raise FedGMError(
                f"--estimate {folder}: there is no {name}. Allowed: the folder of a finished run"
            )
    config = validate(stored(folder))
    found, measured = estimate_run(config, folder, clients)
    start = summary.read(folder)["initial"]["train/loss"]
    console.print(
        f"Measured at the final model, on {measured} clients: L = {found.curvature.L:.3g} "
        f"(power iteration: {found.curvature.iterations} steps, residual {found.curvature.residual:.1e}), "
        f"sigma_l = {found.spread.sigma_l:.3g}, sigma_g = {found.spread.sigma_g:.3g}, "
        f"f(x_0) = {start:.3g}; f* taken as 0. Local values: the theorems ask for bounds over all x.",
        highlight=False,
    )
    return config, replace(found.problem, f0_minus_fstar=start)


def estimate_run(config: "RunConfig", folder: Path, clients: int) -> tuple["Estimate", int]:
    """L by power iteration on the Hessian, the sigmas from local batches; and of how many clients."""
    from safetensors.torch import load_file
    from torch.nn.functional import cross_entropy

    from fedgm.assemble import build_module, load_federation
    from fedgm.theory import measure

    federation = load_federation(config)
    module = build_module(config, federation.classes)
    module.load_state_dict(load_file(folder / "model.safetensors"))
    size, layout = config.local.batch_size, bool(config.model["channels_last"])

    def batches(client: int) -> Iterator[tuple["Tensor", "Tensor"]]:
        own = federation.partition.indices(client)
        for start in range(0, len(own) - size + 1, size):
            yield federation.batch(own[start : start + size], train=False, channels_last=layout)

    chosen = [c for c in range(federation.count) if federation.size(c) >= 2 * size][:clients]
    if len(chosen) < 2:
        raise FedGMError(
            f"local.batch_size={size}: fewer than two clients have two batches. Try a smaller one"
        )
    return measure(module, cross_entropy, [batches(c) for c in chosen], seed=config.seed), len(chosen)
