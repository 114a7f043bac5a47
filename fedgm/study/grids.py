"""Every grid's winner, how far it can be trusted, and its pictures, from stored results."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from statistics import mean

from fedgm.config import conf_dir
from fedgm.results.best_of import best_of
from fedgm.results.record import RunRecord
from fedgm.study import points, sweep_file, sweep_pictures
from fedgm.study.display import job_words
from fedgm.study.evidence import stored_records
from fedgm.study.figure_runs import CHOOSING
from fedgm.study.judged import counted, outcome
from fedgm.study.sweep_progress import Results, index
from fedgm.study.winners import Ranked, other_seeds, ranking

CURRENT = "participation=autonomous_current"  # the second reading of Alg. 4
GRIDS: dict[str, tuple[str, ...]] = {
    "ideal clients": ("fedavg_grid", "fedavgm_grid", "fedgm_grid"),
    "delay 5, start": ("autonomous_fedavg_grid", "autonomous_fedgm_grid"),
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
    records = stored_records(stored)
    for clients, grids in GRIDS.items():
        budget = 0
        for grid in grids:
            results = _grid(grid, records, stored)
            if results is None or not (ranked := ranking(results)):
                continue
            budget = budget or len(results.plan.jobs)  # FedAvg's grid comes first
            lines.append(_line(clients, results, ranked, budget))
            name = grid.replace(f" {CURRENT}", "_current")
            drawn = sweep_pictures.draw(results, images / name)
            shown += [f"![{path.stem} of {name}]({path.relative_to(home)})" for path in _wanted(drawn)]
    return HEAD + "".join(lines) + "\n" + "\n".join(shown) + "\n"


def _grid(grid: str, records: Sequence[RunRecord], home: Path) -> Results | None:
    """The grid on the seed that chooses; None where no record can belong to it: planning takes seconds."""
    name, *words = grid.split()
    found = sweep_file.read(conf_dir().parent / "sweeps" / f"{name}.yaml")
    experiment = next(word.partition("=")[2] for word in found.fixed if word.startswith("+experiment="))
    wanted = experiment, found.points[0]["algorithm"]
    if not any((run.facts["name"], run.facts["algorithm"]) == wanted for run in records):
        return None
    return Results(points.make(found, words, [CHOOSING], str(home / "none")), index(records))


WORDS = {"paused": "stopped early", "waiting": "not run"}


def _line(clients: str, results: Results, ranked: Sequence[Ranked], budget: int) -> str:
    """How many points ended how, the best of them, and what it is worth on other seeds."""
    metric = results.plan.file.metric
    counts = Counter(outcome(results.state(job), results.of(job), metric) for job in results.plan.jobs)
    runs = ", ".join(f"{count} {WORDS.get(state, state)}" for state, count in counts.items())
    first, others = ranked[0], list(other_seeds(ranked[0], results).values())
    judged = "not run"
    if others:
        ends = f"{results.show(min(others))} to {results.show(max(others))}"
        judged = f"{results.show(mean(others))} ({ends}, seeds: {len(others)})"
    point = job_words(results.plan, first.job) + ("" if "waiting" not in counts else ", so far")
    cells = [clients, results.plan.algorithm, runs, point, results.show(first.score), judged]
    return f"| {' | '.join([*cells, _at_budget(results, budget)])} |\n"


def _at_budget(results: Results, budget: int) -> str:
    """The best of a draw of FedAvg's size; points stopped early count with their score so far."""
    runs = [results.of(job) for job in results.plan.jobs]
    scores = [counted(run, results.plan.file.metric) for run in runs if run is not None]
    known = [score for score in scores if score is not None]
    if len(known) < len(runs) or len(known) <= budget:
        return "-"
    found = best_of(known, budget, results.plan.file.goal)
    ends = f"{results.show(found.low)} to {results.show(found.high)}"
    return f"best of {budget}: {results.show(found.mean)} (90 % of draws: {ends})"


def _wanted(drawn: Sequence[Path]) -> list[Path]:
    """Those that the page shows; the rest lies beside them."""
    return [path for path in drawn if path.stem in ("heatmap", "advantage")]
