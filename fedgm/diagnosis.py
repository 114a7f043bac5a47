"""``fedgm theory``: what Theorems 1-3 say about a configuration, with assumed or measured constants."""

from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import replace
from math import log
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from fedgm.errors import FedGMError

if TYPE_CHECKING:  # at run time only once the command runs: --help must not wait for torch
    from torch import Tensor

    from fedgm.config import RunConfig
    from fedgm.participation import Participation
    from fedgm.theory import Estimate, Problem, Report, Setting
    from fedgm.theory.hessian import Tell


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
@click.option(
    "--sigma-max",
    type=float,
    help="The same for the most different client (corollary).",
)
@click.option("--gap", default=log(10), show_default="ln 10", help="f(x_0) - f*, where it is not measured.")
@click.option("--theorem", type=click.Choice(["auto", "1", "2", "3", "nonuniform", "all"]), default="auto")
@click.option(
    "--variant", type=click.Choice(["corrected", "printed"]), default="corrected", show_default=True
)
def theory(
    overrides: tuple[str, ...], estimate: Path | None, clients: int, theorem: str,
    variant: Literal["corrected", "printed"], **constants: Any,
) -> None:  # fmt: skip
    """Conditions and bounds of the paper's theorems: a diagnostic, never a gate.

    \b
    fedgm theory +experiment=multistage
    fedgm theory +experiment=multistage --L 5 --variant printed --theorem all
    fedgm theory --estimate outputs/multistage/fedgm-.../seed=0
    fedgm theory --estimate RUN trust=[my_package]
    """
    from rich.console import Console

    from fedgm.theory import render

    console = Console()
    try:
        config = _stored(estimate, overrides) if estimate else _composed(overrides)
        setting, uniform = _setting(config)
        problem = _measured(console, config, estimate, clients) if estimate else _assumed(constants)
        for report in _reports(theorem, uniform, problem, setting, variant):
            console.print(render(report))
    except FedGMError as error:
        click.echo(f"error: {error}", err=True)
        raise SystemExit(2) from error


def setting_of(config: "RunConfig") -> "Setting":
    """A configuration in the theorems' symbols; K, m and tau are those of the tasks that its run has."""
    return _setting(config)[0]


def _setting(config: "RunConfig") -> tuple["Setting", bool]:
    """The setting, and whether clients arrive uniformly; what no theorem covers is refused first."""
    from fedgm.assemble import build_participation, build_rule, build_server, load_federation
    from fedgm.client.rule import Plain
    from fedgm.data.clients import local_steps
    from fedgm.server.rule import SeesNorms
    from fedgm.theory import Training, arrives_uniformly, local_work, require_covered, theory_stages
    from fedgm.theory.work import setting

    server, plan = build_server(config)
    if isinstance(server, SeesNorms):
        raise FedGMError("the theorems cover FedGM, whose eta no update changes. Try algorithm=fedgm")
    stages = theory_stages(plan)
    rule, local, name = build_rule(config), config.local, str(config.client["name"])
    plain, optimizer = type(rule) is Plain, local.optimizers[local.optimizer]
    require_covered(
        Training(
            name,
            plain,
            rule.sends,
            optimizer,
            local.clip,
            config.clients.weights,
            config.participation,
            str(config.upload["name"]),
        )
    )
    federation = load_federation(config)
    scheme: Participation = build_participation(config, federation)

    def steps(client: int, epochs: int) -> int:
        return local_steps(federation, client, epochs, local.unit)

    work = local_work(scheme, steps, config.rounds)
    return setting(work, config.clients.count, local.lr, stages), arrives_uniformly(scheme)


def _reports(
    theorem: str,
    uniform: bool,
    problem: "Problem",
    setting: "Setting",
    variant: Literal["corrected", "printed"],
) -> Iterator["Report"]:
    """The theorem asked for, or all that apply; ``auto`` is the corollary unless arrival is uniform."""
    from fedgm.theory import diagnose, theorem1, theorem2, theorem3

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


def _corollary(problem: "Problem", setting: "Setting", variant: Literal["corrected", "printed"]) -> "Report":
    """The corollary with the sigma_g that its proof needs, that of the most different client, if known."""
    from fedgm.theory import corollary

    if problem.sigma_max is not None and problem.sigma_max > problem.sigma_g:
        note = f"sigma_g is that of the client that differs most, {problem.sigma_max:.3g}."
        problem = replace(problem, sigma_g=problem.sigma_max)
        setting = replace(setting, notes=(*setting.notes, note))
    return corollary(problem, setting, variant)


def _composed(overrides: tuple[str, ...]) -> "RunConfig":
    """A configuration that need not have run."""
    from hydra.errors import HydraException

    from fedgm.config import compose, validate

    try:
        return validate(compose(overrides))
    except HydraException as error:
        raise FedGMError(str(error)) from None


def _assumed(constants: dict[str, Any]) -> "Problem":
    """The constants of the command line."""
    from fedgm.theory import Problem

    c = constants
    return Problem(c["L"], c["sigma_l"], c["sigma_g"], c["gap"], c["sigma_max"])


def _stored(folder: Path, words: tuple[str, ...]) -> "RunConfig":
    """The configuration of a finished run; ``trust=[package]`` admits parts from elsewhere."""
    from fedgm.config import register, stored, validate
    from fedgm.trust import trusted_words

    register()
    for name in ("config.yaml", "model.safetensors"):
        if not (folder / name).exists():
            raise FedGMError(
                f"--estimate {folder}: there is no {name}. Allowed: the folder of a finished run"
            )
    return validate(stored(folder, trusted_words(words)))


def _measured(console: Any, config: "RunConfig", folder: Path, clients: int) -> "Problem":
    """Constants measured at a run's final model."""
    from fedgm.track import summary

    with _progress(console) as tell:
        found, measured = estimate_run(config, folder, clients, tell)
    start = (summary.read(folder).get("initial") or {}).get("train/loss")
    if start is None:
        raise FedGMError(
            f"--estimate {folder}: summary.json is damaged, or does not know the loss of x_0. "
            "Allowed: the folder of a finished run. Try its command again with rerun=true"
        )
    console.print(
        f"Measured at the final model, on {measured} clients: L = {found.curvature.L:.3g} "
        f"(power iteration: {found.curvature.iterations} steps, residual {found.curvature.residual:.1e}), "
        f"sigma_l = {found.spread.sigma_l:.3g}, sigma_g = {found.spread.sigma_g:.3g} "
        f"(the largest of a client: {found.spread.sigma_max:.3g}), "
        f"f(x_0) = {start:.3g}; f* taken as 0. Local values: the theorems ask for bounds over all x.",
        highlight=False,
    )
    return replace(found.problem, f0_minus_fstar=start)


@contextmanager
def _progress(console: Any) -> Generator["Tell"]:
    """A bar on a terminal, elsewhere a line for every fifth of the work, on standard error."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("measuring {task.description}"), BarColumn(), MofNCompleteColumn())
    bar = Progress(*columns, TimeElapsedColumn(), console=console, disable=not console.is_terminal)
    rows: dict[str, Any] = {}

    def tell(what: str, done: int, total: int) -> None:
        if what not in rows:
            rows[what] = bar.add_task(what, total=total)
        bar.update(rows[what], completed=done)
        if not console.is_terminal and done * 5 // total > (done - 1) * 5 // total:
            click.echo(f"measuring {what}: {done}/{total}", err=True)

    with bar:
        yield tell


@contextmanager
def _one_thread() -> Generator[None]:
    """Small batches gain nothing from more threads, and beside other work they lose a factor of ten."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def estimate_run(
    config: "RunConfig", folder: Path, clients: int, tell: "Tell | None" = None
) -> tuple["Estimate", int]:
    """L by power iteration on the Hessian, the sigmas from local batches; and of how many clients."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file
    from torch.nn.functional import cross_entropy

    from fedgm.assemble import build_module, load_federation
    from fedgm.data.federation import Federation
    from fedgm.theory import measure

    federation = load_federation(config)
    if not isinstance(federation, Federation):
        raise FedGMError(f"--estimate {folder}: data={config.data.name} has no images. Allowed: image data")
    module = build_module(config, federation.facts)
    try:
        module.load_state_dict(load_file(folder / "model.safetensors"))
    except (OSError, SafetensorError, RuntimeError) as error:
        reason = str(error).splitlines()[0]
        raise FedGMError(
            f"--estimate {folder}: model.safetensors is damaged ({reason}). "
            "Try the run's command with rerun=true"
        ) from None
    size, layout = config.local.batch_size, bool(config.model["channels_last"])

    def batches(client: int) -> Iterator[tuple["Tensor", "Tensor"]]:
        own = federation.partition.indices(client)
        for start in range(0, len(own) - size + 1, size):
            yield federation.images.batch(own[start : start + size], train=False, channels_last=layout)

    chosen = [c for c in range(federation.count) if federation.size(c) >= 2 * size][:clients]
    if len(chosen) < 2:
        raise FedGMError(
            f"local.batch_size={size}: fewer than two clients have two batches. Try a smaller one"
        )
    with _one_thread():
        found = measure(module, cross_entropy, [batches(c) for c in chosen], seed=config.seed, tell=tell)
    return found, len(chosen)
