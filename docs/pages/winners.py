"""Every grid's winner, how far it can be trusted, and its pictures, from stored results.

python -m docs.pages.winners     # rewrites docs/grids.md from docs/results/small
"""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from statistics import mean

import click

from fedgm.config import conf_dir
from fedgm.errors import FedGMError
from fedgm.figures.points import coloured, limits
from fedgm.results.best_of import best_of
from fedgm.results.find import find
from fedgm.results.run import Run, once
from fedgm.study import points, sweep_file, sweep_pictures
from fedgm.study.display import job_words
from fedgm.study.figure_runs import CHOOSING
from fedgm.study.report import replace_between
from fedgm.study.sweep_progress import WAITING, Results
from fedgm.study.winners import Ranked, other_seeds, ranking

CURRENT = "participation=autonomous_current"  # the second reading of Alg. 4
GRIDS: dict[str, tuple[str, ...]] = {
    "ideal clients": ("fedavg_grid", "fedavgm_grid", "fedgm_grid"),
    "delay 5, start": ("autonomous_fedavg_grid", "autonomous_fedgm_grid"),
    "delay 5, literal": ("literal_fedavg_grid", "literal_fedgm_grid"),
    "delay 5, current": (f"autonomous_fedavg_grid {CURRENT}", f"autonomous_fedgm_grid {CURRENT}"),
    "delay 10, start": ("delay10_fedavg_grid", "delay10_fedgm_grid"),
    "delay 10, current": (f"delay10_fedavg_grid {CURRENT}", f"delay10_fedgm_grid {CURRENT}"),
}
HEAD = (
    "| clients | grid | runs | best | seed 0 | seeds that judge | best at FedAvg's budget |\n"
    "|---|---|---|---|---|---|---|\n"
)


def markdown(stored: Path, images: Path, home: Path) -> str:
    """A line and a heat map for each grid of which runs are stored; pictures go below ``images``."""
    lines, shown = list[str](), list[str]()
    runs = find([stored])
    every = {(clients, grid): _grid(grid, runs, stored) for clients, grids in GRIDS.items() for grid in grids}
    found = {key: results for key, results in every.items() if results is not None and ranking(results)}
    scale = limits(
        [s for of in found.values() for s in coloured(sweep_pictures.drawn_points(of))], "maximize"
    )
    budgets = dict[str, int]()
    for (clients, grid), results in found.items():
        budget = budgets.setdefault(clients, len(results.plan.jobs))  # FedAvg's grid comes first
        lines.append(_line(clients, results, ranking(results), budget))
        name = grid.replace(f" {CURRENT}", "_current")
        drawn = sweep_pictures.draw(results, images / name, scale)
        shown += [f"![{path.stem} of {name}]({path.relative_to(home)})" for path in _wanted(drawn)]
    return HEAD + "".join(lines) + "\n" + "\n".join(shown) + "\n"


def _grid(grid: str, runs: Sequence[Run], home: Path) -> Results | None:
    """The grid on the seed that chooses; None where no run can belong to it: planning takes seconds."""
    name, *words = grid.split()
    file = sweep_file.read(conf_dir().parent / "sweeps" / f"{name}.yaml")
    experiment = next(word.partition("=")[2] for word in file.fixed if word.startswith("+experiment="))
    wanted = experiment, file.points[0]["algorithm"]
    if not any((run.facts["name"], run.facts["algorithm"]) == wanted for run in runs):
        return None
    return Results(points.make(file, words, [CHOOSING], str(home / "none")), once(runs))


WORDS = {"paused": "stopped early", WAITING: "not run"}


def _line(clients: str, results: Results, ranked: Sequence[Ranked], budget: int) -> str:
    """How many points ended how, the best of them, and what it is worth on other seeds."""
    counts = Counter(_ended(results, job) for job in results.plan.jobs)
    runs = ", ".join(f"{count} {WORDS.get(state, state)}" for state, count in counts.items())
    first, others = ranked[0], list(other_seeds(ranked[0], results).values())
    judged = "not run"
    if others:
        ends = f"{results.show(min(others))} to {results.show(max(others))}"
        judged = f"{results.show(mean(others))} ({ends}, seeds: {len(others)})"
    point = job_words(results.plan, first.job) + ("" if WAITING not in counts else ", so far")
    cells = [clients, results.plan.algorithm, runs, point, results.show(first.score), judged]
    return f"| {' | '.join([*cells, _at_budget(results, budget)])} |\n"


def _ended(results: Results, job: points.Job) -> str:
    """How a point ended; the mark of docs/claims.md is named."""
    run = results.of(job)
    return "near chance" if run is not None and run.near_chance else results.state(job)


def _at_budget(results: Results, budget: int) -> str:
    """The best of a draw of FedAvg's size; points stopped early count with their score so far."""
    runs = [results.of(job) for job in results.plan.jobs]
    scores = [run.score(results.plan.file.metric) for run in runs if run is not None]
    finite = [score for score in scores if score is not None]
    if len(finite) < len(runs) or len(finite) <= budget:
        return "-"
    drawn = best_of(finite, budget, results.plan.file.goal)
    ends = f"{results.show(drawn.low)} to {results.show(drawn.high)}"
    return f"best of {budget}: {results.show(drawn.mean)} (90 % of draws: {ends})"


def _wanted(drawn: Sequence[Path]) -> list[Path]:
    """Those that the page shows; the rest lies beside them."""
    return [path for path in drawn if path.stem in ("heatmap", "advantage")]


@click.command()
@click.argument("results", type=click.Path(path_type=Path, exists=True), default="docs/results/small")
@click.option("--page", type=click.Path(path_type=Path), default="docs/grids.md", show_default=True,
              help="The page whose table is replaced; pictures go to figures/grids beside it.")  # fmt: skip
def command(results: Path, page: Path) -> None:
    """Each grid's winner on seed 0, on other seeds and at FedAvg's budget; RESULTS holds stored results."""
    page.parent.mkdir(parents=True, exist_ok=True)
    body = markdown(results, page.parent / "figures" / "grids", page.parent)
    if body.strip() == HEAD.strip():
        raise FedGMError(f"{results}: no run of the grids on seed 0. Try fedgm sweep FILE --export")
    replace_between(page, "docs.pages.winners", body, "The grids and their winners")
    click.echo(page)


if __name__ == "__main__":
    command()
