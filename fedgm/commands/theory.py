"""What Theorems 1-3 say about a configuration, or about a run."""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from math import log
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from fedgm.errors import ConfigError, RefusedError
from fedgm.starting import quietly, ready

if TYPE_CHECKING:  # at run time only once the command runs: --help must not wait for torch
    from fedgm.config import RunConfig
    from fedgm.theory import Problem
    from fedgm.theory.estimate import Tell

OPTIONS = {
    "L": "--L", "sigma_l": "--sigma-l", "sigma_g": "--sigma-g", "f0_minus_fstar": "--gap",
    "sigma_max": "--sigma-max",
}  # fmt: skip


@click.command()
@click.argument("overrides", nargs=-1, metavar="[+experiment=NAME] [KEY=VALUE]...")
@click.option(
    "--estimate", type=click.Path(path_type=Path), metavar="RUN", help="Measure L and the sigmas on a run."
)
@click.option("--clients", default=10, show_default=True, help="Clients that --estimate measures on.")
@click.option("--L", "L", default=1.0, show_default=True, help="Smoothness, unless --estimate measures it.")
@click.option("--sigma-l", default=1.0, show_default=True, help="Local noise, unless measured.")
@click.option(
    "--sigma-g", default=1.0, show_default=True, help="Difference between clients, unless measured."
)
@click.option(
    "--sigma-max",
    type=float,
    help="The same for the client that differs most (corollary).",
)
@click.option("--gap", default=log(10), show_default="ln 10", help="f(x_0) - f*, unless measured.")
@click.option("--theorem", type=click.Choice(["auto", "1", "2", "3", "nonuniform", "all"]), default="auto")
@click.option(
    "--variant", type=click.Choice(["corrected", "printed"]), default="corrected", show_default=True
)
def command(
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
    quietly()
    from fedgm.config import compose, validate
    from fedgm.running.diagnosis import covered_setting, reports
    from fedgm.screen import Screen
    from fedgm.theory import render

    ready()
    console = Screen()
    config = _stored(estimate, overrides) if estimate else validate(compose(overrides))
    setting, uniform = covered_setting(config)
    problem = _measured(console, config, estimate, clients) if estimate else _assumed(constants)
    for report in reports(theorem, uniform, problem, setting, variant):
        console.print(render(report))


def _assumed(constants: dict[str, Any]) -> "Problem":
    """The constants of the command line."""
    from fedgm.theory import Problem

    c = constants
    try:
        return Problem(c["L"], c["sigma_l"], c["sigma_g"], c["gap"], c["sigma_max"])
    except ConfigError as error:  # named as it was typed
        option, example = OPTIONS[error.key], error.hint.partition("=")[2]
        raise ConfigError(option, error.value, error.allowed, f"{option} {example}") from None


def _stored(folder: Path, words: tuple[str, ...]) -> "RunConfig":
    """The configuration of a finished run; ``trust=[package]`` admits parts from elsewhere."""
    from fedgm.config import reopened
    from fedgm.config.trust import trusted_words

    for name in ("config.yaml", "model.safetensors"):
        if not (folder / name).exists():
            raise RefusedError(
                f"--estimate {folder}: there is no {name}. Allowed: the folder of a finished run"
            )
    return reopened(folder, trusted_words(words))


def _measured(console: Any, config: "RunConfig", folder: Path, clients: int) -> "Problem":
    """Constants measured at a run's final model."""
    from fedgm.results import summary
    from fedgm.running.diagnosis import estimate_run

    with _progress(console) as tell:
        estimate, measured = estimate_run(config, folder, clients, tell)
    start = (summary.read(folder).get("initial") or {}).get("train/loss")
    if start is None:
        raise RefusedError(
            f"--estimate {folder}: summary.json is damaged or lacks the loss of x_0. "
            "Allowed: the folder of a finished run. Try its command again with rerun=true"
        )
    curvature, spread = estimate.curvature, estimate.spread
    console.print(
        f"Measured at the final model, on {measured} clients: L = {curvature.L:.3g} "
        f"(power iteration: {curvature.iterations} steps, residual {curvature.residual:.1e}), "
        f"sigma_l = {spread.sigma_l:.3g}, sigma_g = {spread.sigma_g:.3g} "
        f"(the largest of a client: {spread.sigma_max:.3g}), "
        f"f(x_0) = {start:.3g}; f* taken as 0. These values are local; the theorems need bounds over all x.",
    )
    return replace(estimate.problem, f0_minus_fstar=start)


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
