"""Every grid's winner, how far it can be trusted, and its pictures, from stored results."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from statistics import mean

from fedgm.config import conf_dir
from fedgm.grid import file, pictures, plan
from fedgm.grid.display import job_words
from fedgm.grid.progress import Results, index
from fedgm.grid.ranking import Ranked, at_budget, other_seeds, ranking
from fedgm.paper.evidence import stored_records
from fedgm.paper.plan import CHOOSING
from fedgm.track.record import RunRecord

CURRENT = "participation=autonomous_current"  # the second reading of Alg. 4
GRIDS: dict[str, tuple[str, ...]] = {
    "ideal clients": ("fedavg_grid", "fedavgm_grid", "fedgm_grid"),
    "delay 5, start": ("autonomous_fedavg_grid", "autonomous_fedgm_grid"),
    "delay 5, current": (f"autonomous_fedavg_grid {CURRENT}", f"autonomous_fedgm_grid {CURRENT}"),
    "delay 10, start": ("delay10_fedavg_grid", "delay10_fedgm_grid"),
    "delay 10, current": (f"delay10_fedavg_grid {CURRENT}", f"delay10_fedgm_grid {CURRENT}"),
}
HEAD = (
    "| clients | grid | runs | winner | seed 0 | seeds that judge | best of 10 drawn from it |\n"
    "|---|---|---|---|---|---|---|\n"
)


def markdown(stored: Path, images: Path, home: Path) -> str:
    """A line and a heat map for each grid of which runs are stored; pictures go below ``images``."""
    lines, shown = list[str](), list[str]()
    records = stored_records(stored)
    for clients, grids in GRIDS.items():
        for grid in grids:
            results = _results(grid, records, stored)
            if results is None or not (ranked := ranking(results)):
                continue
            lines.append(_line(clients, results, ranked))
            name = grid.replace(f" {CURRENT}", "_current")
            drawn = pictures.draw(results, images / name)
            shown += [f"![{path.stem} of {name}]({path.relative_to(home)})" for path in _wanted(drawn)]
    return HEAD + "".join(lines) + "\n" + "\n".join(shown) + "\n"


def _results(grid: str, records: Sequence[RunRecord], home: Path) -> Results | None:
    """The grid on the seed that chooses; None where no record can belong to it: planning takes seconds."""
    name, *words = grid.split()
    found = file.read(conf_dir().parent / "sweeps" / f"{name}.yaml")
    experiment = next(word.partition("=")[2] for word in found.fixed if word.startswith("+experiment="))
    wanted = experiment, found.points[0]["algorithm"]
    if not any((run.facts["name"], run.facts["algorithm"]) == wanted for run in records):
        return None
    return Results(plan.make(found, words, [CHOOSING], str(home / "none")), index(records))


def _line(clients: str, results: Results, ranked: Sequence[Ranked]) -> str:
    """How many points ended how, the best of them, and what it is worth on other seeds."""
    counts = Counter(results.state(job) for job in results.plan.jobs)
    runs = ", ".join(f"{count} {'stopped early' if s == 'paused' else s}" for s, count in counts.items())
    first = ranked[0]
    others = list(other_seeds(first, results).values())
    judged = results.show(mean(others)) if others else "not run"
    if len(others) > 1:
        judged += f" ({results.show(min(others))} to {results.show(max(others))}, {len(others)} seeds)"
    cells = [clients, results.plan.algorithm, runs, job_words(results.plan, first.job)]
    cells += [results.show(first.score), judged, "-"]
    if budget := at_budget(results, list(ranked)):
        low, high = results.show(budget.low), results.show(budget.high)
        cells[-1] = f"{results.show(budget.mean)} (90 % of draws: {low} to {high})"
    return f"| {' | '.join(cells)} |\n"


def _wanted(drawn: Sequence[Path]) -> list[Path]:
    """Those that the page shows; the rest lies beside them."""
    return [path for path in drawn if path.stem in ("heatmap", "advantage")]
