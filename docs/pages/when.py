"""When does FedGM help? Where it beats FedAvg's best over eta and delay, from the grids' stored runs.

python -m docs.pages.when                                # rewrites docs/when.md from docs/results/small
python -m docs.pages.when outputs --page mine/when.md    # from runs of your own
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import click

from docs.pages import when_pictures
from fedgm.config.winners import reading
from fedgm.errors import FedGMError
from fedgm.figures.style import save
from fedgm.results.best_of import BestOf, best_of
from fedgm.results.find import find
from fedgm.results.run import Run, Status
from fedgm.results.summary import WELL
from fedgm.study.figure_runs import CHOOSING
from fedgm.study.report import replace_between
from fedgm.tasks.metric import Metric

# Whose grids differ in the server and in the delay, and four points that came later (docs/why.md).
EXPERIMENTS = ("fedgm", "autonomous", "autonomous_delay10", "autonomous_literal", "autonomous_long_memory")
STORED = (Path("docs/results/small"), Path("docs/results/why/autonomous_long_memory.jsonl"))
EPOCHS = [1, 6]  # the local work of autonomous clients; other runs take their simulation apart
NEAR = 3.0  # points below the rule's best at which an eta still counts as usable
LINES = ((0.9, 0.9), (0.95, 0.7))  # beta, nu: the line of every delay, and the long memory


class Regime(NamedTuple):
    """How clients take part: the oldest model they may start from, and the reading of Alg. 4."""

    delay: int
    reading: str

    @property
    def name(self) -> str:
        """For tables and axes."""
        return "ideal clients" if self.delay == 1 else f"delay {self.delay}, {self.reading}"


class Tried(NamedTuple):
    """A point of a grid on the seed that chooses: its score in points, chance where it ended as diverged."""

    algorithm: str
    eta: float
    beta: float
    nu: float
    score: float
    end: str = ""  # chance | diverged | stopped by successive halving: the score so far is too low

    @property
    def paused(self) -> bool:
        """Whether it never reached its end."""
        return self.end == "stopped"


def tried(runs: Iterable[Run]) -> dict[Regime, list[Tried]]:
    """Points of the grids by setting, ideal clients first."""
    by_setting: dict[Regime, list[Tried]] = {}
    for run in runs:
        counts = run.status in WELL and run.seed == CHOOSING and run.facts["name"] in EXPERIMENTS
        score = run.score() if counts else None
        ideal = run.config.get("participation.name") == "ideal"
        delay = 1 if ideal else int(run.config.get("participation.delay") or 1)
        of_a_grid = ideal or (delay > 1 and run.config.get("participation.epochs", EPOCHS) == EPOCHS)
        if score is None or not of_a_grid or run.config.get("schedule.name") != "constant":
            continue
        scheme = {key: run.config.get(f"participation.{key}") for key in ("anchor", "normalize")}
        setting = Regime(delay, "" if ideal else reading(scheme) or "start")
        eta, beta, nu = (float(run.config.get(f"algorithm.{key}") or 0.0) for key in ("eta", "beta", "nu"))
        point = Tried(str(run.facts["algorithm"]), eta, beta, nu, run.board.judge.scale * score, _end(run))
        by_setting.setdefault(setting, []).append(point)
    return {setting: sorted(by_setting[setting]) for setting in sorted(by_setting)}


def _end(run: Run) -> str:
    if run.status == Status.PAUSED:
        return "stopped"
    return "diverged" if run.is_divergent else "chance" if run.near_chance else ""


def best(points: Sequence[Tried], algorithm: str) -> Tried | None:
    """The first of an algorithm: of runs that finished where there is one."""
    of_rule = [point for point in points if point.algorithm == algorithm]
    return max(of_rule, key=lambda point: (not point.paused, point.score, -point.eta), default=None)


def row(points: Sequence[Tried], beta: float, nu: float) -> dict[float, float | str]:
    """By eta: FedGM minus FedAvg's best, in points; how a run ended that has no gain to speak of."""
    baseline = best(points, "fedavg")
    if baseline is None or baseline.paused:
        return {}
    line = [p for p in points if (p.algorithm, p.beta, p.nu) == ("fedgm", beta, nu)]
    return {p.eta: p.end or p.score - baseline.score for p in line}


def map_rows(by_setting: Mapping[Regime, Sequence[Tried]]) -> dict[str, dict[float, float | str]]:
    """Rows of a map, by setting and line of the grid."""
    return {
        f"{setting.name}: β {beta:g}, ν {nu:g}": found
        for setting, points in by_setting.items()
        for beta, nu in LINES
        if (found := row(points, beta, nu))
    }


def unfinished(rows: Mapping[str, Mapping[float, float | str]]) -> list[str]:
    """Rows of which no run reached its end."""
    return [name for name, cells in rows.items() if {*cells.values()} == {"stopped"}]


def usable(points: Sequence[Tried]) -> dict[tuple[str, float, float], list[float]]:
    """Etas at which a rule ends within ``NEAR`` points of its best, by (algorithm, beta, nu)."""
    rules: dict[tuple[str, float, float], list[Tried]] = {}
    for point in points:
        rules.setdefault((point.algorithm, point.beta, point.nu), []).append(point)
    etas: dict[tuple[str, float, float], list[float]] = {}
    for rule, of_rule in rules.items():
        ended = [point for point in of_rule if not point.paused]
        top = max((point.score for point in ended), default=0.0)
        etas[rule] = [p.eta for p in ended if p.score >= top - NEAR and not p.end]
    return etas


def outcomes(points: Sequence[Tried]) -> dict[tuple[str, float, float], dict[float, str]]:
    """How each eta of a rule ended: usable, not usable, near chance (or diverged), or stopped."""
    ends: dict[tuple[str, float, float], dict[float, str]] = {}
    for rule, etas in usable(points).items():
        for p in (p for p in points if (p.algorithm, p.beta, p.nu) == rule):
            ends.setdefault(rule, {})[p.eta] = p.end or ("usable" if p.eta in etas else "learned")
    return ends


def at_equal_budget(points: Sequence[Tried], algorithm: str) -> BestOf | None:
    """The expected best of a draw of FedAvg's size from an algorithm's grid."""
    scores = [point.score for point in points if point.algorithm == algorithm]
    k = sum(point.algorithm == "fedavg" for point in points)
    return best_of(scores, k) if 0 < k < len(scores) else None


def markdown(
    by_setting: Mapping[Regime, Sequence[Tried]], pictures: Mapping[str, str], scale: str, metric: Metric
) -> str:
    """The tables and pictures of the page; what they mean is for people to write around them."""
    unit = "in percent" if metric.scale == 100 else metric.unit
    what = f"{metric.label.capitalize()} is the mean of the last ten evaluations on the test set"
    lines = [f"{scale} {what}, {unit}.", ""]
    lines += [f"![{name}]({path})" for name, path in pictures.items()]
    lines += ["", "| clients | FedAvg's best | FedAvgM's best | FedGM's best | FedGM at FedAvg's budget |"]
    lines += ["|---|---|---|---|---|"]
    for setting, points in by_setting.items():
        cells = [_cell(best(points, algorithm)) for algorithm in ("fedavg", "fedavgm", "fedgm")]
        lines.append(f"| {setting.name} | {' | '.join(cells)} | {_budget(points)} |")
    lines += ["", f"Etas that end within {NEAR:g} points of the rule's own best, of those that were run:", ""]
    lines += ["| clients | rule | usable eta | run |", "|---|---|---|---|"]
    for setting, points in by_setting.items():
        for (algorithm, beta, nu), etas in usable(points).items():
            of_rule = [p for p in points if (p.algorithm, p.beta, p.nu) == (algorithm, beta, nu)]
            name = algorithm if algorithm == "fedavg" else f"{algorithm}, beta {beta:g}, nu {nu:g}"
            shown = ", ".join(f"{e:g}" for e in etas) or "-"
            lines.append(f"| {setting.name} | {name} | {shown} | {len(of_rule)}{_early(of_rule)} |")
    return "\n".join(lines) + "\n"


def _budget(points: Sequence[Tried]) -> str:
    """FedGM's best at FedAvg's number of runs, and how many of its points never reached their end."""
    sizes = [sum(p.algorithm == rule for p in points) for rule in ("fedavg", "fedgm")]
    drawn, early = at_equal_budget(points, "fedgm"), _early([p for p in points if p.algorithm == "fedgm"])
    if drawn is not None:
        return f"{drawn.mean:.1f} ({drawn.low:.1f} to {drawn.high:.1f}){early}"
    return f"budgets are equal{early}" if 0 < sizes[1] == sizes[0] else "-"


def _early(points: Sequence[Tried]) -> str:
    count = sum(point.paused for point in points)
    return f", {count} stopped early" if count else ""


def _cell(point: Tried | None) -> str:
    if point is None:
        return "not run"
    rates = f"eta {point.eta:g}" + (
        f", {point.beta:g}, {point.nu:g}" if point.algorithm == "fedgm" else
        f", {point.beta:g}" if point.algorithm == "fedavgm" else ""
    )  # fmt: skip
    return f"{point.score:.1f} ({rates})"


@click.command()
@click.argument("results", type=click.Path(path_type=Path, exists=True), nargs=-1)
@click.option("--page", type=click.Path(path_type=Path), default="docs/when.md", show_default=True,
              help="The page whose tables are replaced.")  # fmt: skip
def command(results: tuple[Path, ...], page: Path) -> None:
    """Where FedGM beats FedAvg's best over eta and delay; RESULTS hold runs of the grids."""
    runs = find(list(results or STORED))
    by_setting = tried(runs)
    if not by_setting:
        shown = ", ".join(map(str, results or STORED))
        raise FedGMError(f"{shown}: no run of the grids on seed 0. Try fedgm sweep sweeps/fedgm_grid.yaml")
    first = next(run for run in runs if run.facts["name"] in EXPERIMENTS)
    scale = f"Profile {first.facts['profile']}, {first.rounds} rounds, seed 0."
    rows = map_rows(by_setting)
    lost = unfinished(rows)
    gains = {name: cells for name, cells in rows.items() if name not in lost}
    page.parent.mkdir(parents=True, exist_ok=True)
    links: dict[str, str] = {}
    if gains:
        about = [
            scale,
            "Means of the last 10 evaluations.",
            "Grey: not run, or stopped by successive halving.",
        ]
        about += [
            "Hatched: ended near chance by the rule of claims.md, or diverged, and has no gain to compare."
        ]
        about += [f"No run reached its end: {'; '.join(lost)}."] if lost else []
        figure = when_pictures.draw_gains(gains, about)
        links["Gain over FedAvg by eta and delay"] = save(figure, page.with_name("when_gain.png")).name
    ranges = {
        setting.name: {_name(*rule): (rule[0], ends) for rule, ends in outcomes(points).items()}
        for setting, points in by_setting.items()
    }
    about = (
        f"{scale} Usable: ends within {NEAR:g} points of the rule's own best. Stopped: by successive halving."
    )
    figure = when_pictures.draw_ranges(ranges, about)
    links["Usable server rates"] = save(figure, page.with_name("when_ranges.png")).name
    body = markdown(by_setting, links, scale, first.board.judge)
    replace_between(page, "docs.pages.when", body, "When does FedGM help?")
    for path in (page, *(page.with_name(name) for name in links.values())):
        click.echo(path)


def _name(algorithm: str, beta: float, nu: float) -> str:
    return "FedAvg" if algorithm == "fedavg" else (
        f"FedAvgM, β {beta:g}" if algorithm == "fedavgm" else f"FedGM, β {beta:g}, ν {nu:g}"
    )  # fmt: skip


if __name__ == "__main__":
    command()
