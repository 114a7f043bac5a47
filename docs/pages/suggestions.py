"""How well theory's numbers fit stored runs: the tables of docs/suggest.md.

python -m docs.pages.suggestions     # rewrites them from docs/results
"""

from collections.abc import Callable, Iterator, Sequence
from math import isfinite, log
from pathlib import Path
from statistics import mean
from typing import NamedTuple

import numpy as np

from fedgm.results import archive
from fedgm.results.run import Run
from fedgm.server.momentum import Momentum
from fedgm.study.report import replace_between
from fedgm.theory.noise import lag, stationary_variance
from fedgm.theory.stability import IDEAL, READINGS, Reading, response
from fedgm.theory.suggestion import EDGE_AT_ONE, edge_of, steps_of, suggest

PAGE = Path("docs/suggest.md")
HOME = Path("docs/results")
LITERAL = next(reading for reading in READINGS if reading.name == "delay 5, literal")
FAMILY = ("fedavg", "fedavgm", "fednag", "fedgm")
TEST, WINDOW = "test/acc", 5  # evaluations that are averaged
DRAWS = 500  # of points, for an interval


class Problem(NamedTuple):
    """Where the runs of a problem are stored, and what picks FedAvg's at its best eta."""

    name: str
    suggested: str  # a file of docs/results/suggest
    fedavg: tuple[str, ...]
    eta: float  # FedAvg's best on seed 0
    rounds: int
    reading: Reading = IDEAL
    figure: str | None = None  # experiment of FedAvg's runs, where a file has several
    alpha: float | None = None
    grid: tuple[str, ...] = ()
    edge: float = EDGE_AT_ONE  # of the grid's seed


SMALL, TINY = "small/figures.jsonl", tuple(f"tiny/tiny_{name}.jsonl" for name in FAMILY if name != "fednag")
IDEAL_GRID = tuple(f"small/{name}_grid.jsonl" for name in FAMILY if name != "fednag")
LITERAL_GRID = tuple(f"small/literal_{name}_grid.jsonl" for name in ("fedavg", "fedgm"))
PROBLEMS = (
    Problem(
        "CIFAR-10 `small`", "cifar10", (SMALL, "small/fig1ab_seeds456.jsonl"), 1.0, 125,
        figure="fedgm", grid=IDEAL_GRID,
    ),
    Problem("HAPT", "hapt", ("leaderboard/hapt.jsonl",), 1.5, 30, grid=("leaderboard/hapt.jsonl",)),
    Problem(
        "CIFAR-10, alpha 0.3", "alpha03", (SMALL,), 1.0, 125, figure="heterogeneity", alpha=0.3,
        grid=("suggest/alpha03_grid.jsonl",), edge=0.99,
    ),
    Problem(
        "CIFAR-10, VGG-11", "vgg", (SMALL,), 1.0, 125, figure="vgg",
        grid=("suggest/vgg_grid.jsonl",), edge=0.99,
    ),
    Problem(
        "CIFAR-10, delay 5, literal", "delay5", ("small/autonomous_literal.jsonl",), 0.5, 125, LITERAL,
        grid=LITERAL_GRID,
    ),
    Problem("`tiny`", "tiny", TINY, 3.0, 80, grid=TINY, edge=5.7),
)  # fmt: skip


class Speed(NamedTuple):
    """What the model says of one seed, and how many times as many rounds FedAvg took."""

    said: float
    measured: float | None


def load(files: Sequence[str], keep: Callable[[Run], bool] = lambda run: True) -> list[Run]:
    """Runs of some files below docs/results."""
    return [run for file in files for run in archive.read(HOME / file) if run.is_done and keep(run)]


def momentum(run: Run) -> Momentum | None:
    """The values of a run that has one stage of Eq. 2."""
    stages = run.facts["stages"]
    if not stages or len(stages) > 1 or not {"eta", "beta", "nu"} <= set(stages[0]):
        return None
    return Momentum(*(float(stages[0][key]) for key in ("eta", "beta", "nu")))


def speeds(problem: Problem) -> dict[int, Speed]:
    """By seed: FedAvg's last level, and the round in which the suggested run is there for good measure."""
    stored = load([f"suggest/{problem.suggested}.jsonl"])
    tests = {run.seed: run for run in stored if run.facts["name"] == "range_test"}
    fedavg = {run.seed: run for run in load(problem.fedavg, lambda run: _is_fedavg(run, problem))}
    found = dict[int, Speed]()
    for seed in sorted(set(tests) & set(fedavg)):
        advice = suggest(edge_of(steps_of(tests[seed].evaluations)), problem.rounds, problem.reading)
        run = next(run for run in stored if run.seed == seed and momentum(run) == advice.momentum)
        *_, (end, level) = smooth(fedavg[seed])
        there = next((round for round, value in smooth(run) if value >= level), None)
        found[seed] = Speed(advice.model_gain(problem.rounds), end / there if there else None)
    return found


def _is_fedavg(run: Run, problem: Problem) -> bool:
    fits = run.facts["algorithm"] == "fedavg" and run.config.get("client.name", "plain") == "plain"
    fits = fits and run.facts["name"] == (problem.figure or run.facts["name"])
    fits = fits and problem.alpha in (None, run.config.get("data.alpha", problem.alpha))
    own = momentum(run)
    return fits and own is not None and own.eta == problem.eta and run.seed > 0


def smooth(run: Run) -> Iterator[tuple[float, float]]:
    """Means of a few evaluations: their rounds and scores."""
    rounds, values = run.curve(TEST)
    for i in range(WINDOW, len(rounds) + 1):
        yield mean(rounds[i - WINDOW : i]), mean(values[i - WINDOW : i])


def speed_table() -> str:
    """The model's word beside what was measured."""
    lines = [
        "| problem | the model says | measured, seeds 1, 2, 3 | measured over said |",
        "|---|---|---|---|",
    ]
    for problem in PROBLEMS:
        of = speeds(problem).values()
        said = ", ".join(f"{one.said:.1f}" for one in of)
        real = ", ".join(f"{one.measured:.1f}" if one.measured else "never" for one in of)
        shares = ", ".join(f"{one.measured / one.said:.2f}" if one.measured else "-" for one in of)
        lines.append(f"| {problem.name} | {said} | {real} | {shares} |")
    return "\n".join(lines) + "\n"


class Fit(NamedTuple):
    """score = a0 + a ln(c eta (T' - lag)) - b ln(1 + c2 V), with intervals over points."""

    points: int
    a: tuple[float, float, float]
    b: tuple[float, float, float]
    r2: float
    spearman: float  # of the terms with the coefficients of CIFAR-10
    lost: float  # points of its pick


def fit(problem: Problem, ranked_by: tuple[float, float] | None = None) -> Fit:
    """Least squares on a grid's points on seed 0 whose variance is finite."""
    c, rows, scores = EDGE_AT_ONE / problem.edge, list[list[float]](), list[float]()
    for run in load(problem.grid, _is_of_a_grid):
        own, score = momentum(run), run.score(TEST)
        if own is None or score is None or run.is_divergent:
            continue
        pulls = response(problem.reading, (1 - min(c, 1.0)) ** (1 / 3)) * max(c, 1.0)
        variance = c * c * stationary_variance(pulls, own)
        if isfinite(variance):
            flat = log(c * own.eta * max(0.8 * problem.rounds - lag(own), 1.0))
            rows.append([1.0, flat, -log(1 + variance)])
            scores.append(100 * score)
    X, y = np.array(rows), np.array(scores)
    best = np.linalg.lstsq(X, y, rcond=None)[0]
    draws, generator = list[np.ndarray](), np.random.default_rng(0)
    for _ in range(DRAWS):
        some = generator.integers(0, len(y), len(y))
        draws.append(np.linalg.lstsq(X[some], y[some], rcond=None)[0])
    low, high = np.percentile(draws, [2.5, 97.5], axis=0)
    a, b = ((float(best[i]), float(low[i]), float(high[i])) for i in (1, 2))
    order = X[:, 1:] @ np.array(ranked_by or (a[0], b[0]))
    rank = float(np.corrcoef(_ranks(order), _ranks(y))[0, 1])
    r2 = 1 - float(np.var(y - X @ best) / np.var(y))
    return Fit(len(y), a, b, r2, rank, float(y.max() - y[order.argmax()]))


def _is_of_a_grid(run: Run) -> bool:
    plain = run.config.get("client.name", "plain") == "plain" and run.facts["schedule"] == "constant"
    return plain and run.seed == 0 and run.facts["algorithm"] in FAMILY


def _ranks(values: np.ndarray) -> np.ndarray:
    return np.argsort(np.argsort(values))


def fit_table() -> str:
    """The formula's coefficients on each problem, and how the first problem's rank the others."""
    head = "| problem | points | a | b | R² | Spearman | points lost by its pick |"
    lines, first = [head, "|---|---|---|---|---|---|---|"], fit(PROBLEMS[0])
    for problem in PROBLEMS:
        own = fit(problem, (first.a[0], first.b[0]))
        a, b = (f"{value:.1f} ({low:.1f} to {high:.1f})" for value, low, high in (own.a, own.b))
        numbers = f"{own.r2:.2f} | {own.spearman:.2f} | {own.lost:.1f}"
        lines.append(f"| {problem.name} | {own.points} | {a} | {b} | {numbers} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Rewrite both tables."""
    replace_between(PAGE, "python -m docs.pages.suggestions: speed", speed_table())
    replace_between(PAGE, "python -m docs.pages.suggestions: formula", fit_table())


if __name__ == "__main__":
    main()
