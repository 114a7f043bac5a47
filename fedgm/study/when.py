"""When does FedGM help? Where it beats FedAvg's best over eta and delay, from the grids' stored runs."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from fedgm.results.best_of import BestOf, best_of
from fedgm.results.record import RunRecord
from fedgm.study.figure_runs import CHOOSING
from fedgm.study.judged import counted, is_divergent
from fedgm.tasks.metric import Metric

EXPERIMENTS = (
    "fedgm",
    "autonomous",
    "autonomous_delay10",
)  # whose grids differ in the server and in the delay
EPOCHS = [1, 6]  # the local work of autonomous clients; other runs take their simulation apart
NEAR = 3.0  # points below its own best at which an eta still counts as usable
TIED = 0.9  # beta = nu of the line that every delay has


class Regime(NamedTuple):
    """How clients take part: the oldest model they may start from, and the reading of Alg. 4."""

    delay: int
    reading: str

    @property
    def name(self) -> str:
        """For tables and axes."""
        return "ideal clients" if self.delay == 1 else f"delay {self.delay}, {self.reading}"


class Tried(NamedTuple):
    """A point of a grid on the seed that chooses: its score in points, chance where it diverged."""

    algorithm: str
    eta: float
    beta: float
    nu: float
    score: float
    divergent: bool
    paused: bool  # by successive halving: the score so far is too low


def tried(records: Iterable[RunRecord]) -> dict[Regime, list[Tried]]:
    """Points of the grids by setting, ideal clients first."""
    found: dict[Regime, list[Tried]] = {}
    for run in records:
        usable = run.status in ("finished", "diverged", "paused") and run.facts["seed"] == CHOOSING
        board = run.board
        score = counted(run, board.headline) if usable and run.facts["name"] in EXPERIMENTS else None
        ideal = run.config.get("participation.name") == "ideal"
        delay = 1 if ideal else int(run.config.get("participation.delay") or 1)
        of_a_grid = ideal or (delay > 1 and run.config.get("participation.epochs", EPOCHS) == EPOCHS)
        if score is None or not of_a_grid or run.config.get("schedule.name") != "constant":
            continue
        setting = Regime(delay, "" if ideal else str(run.config.get("participation.anchor") or "start"))
        eta, beta, nu = (float(run.config.get(f"algorithm.{key}") or 0.0) for key in ("eta", "beta", "nu"))
        rule, paused = str(run.facts["algorithm"]), run.status == "paused"
        lost, points = is_divergent(run, board.headline), board.judge.scale * score
        point = Tried(rule, eta, beta, nu, points, lost, paused)
        found.setdefault(setting, []).append(point)
    return {setting: sorted(found[setting]) for setting in sorted(found)}


def best(points: Sequence[Tried], algorithm: str) -> Tried | None:
    """The first of an algorithm: of runs that finished where there is one."""
    own = [point for point in points if point.algorithm == algorithm]
    return max(own, key=lambda point: (not point.paused, point.score, -point.eta), default=None)


def advantage(points: Sequence[Tried]) -> dict[float, float]:
    """FedGM (beta = nu = .9) minus FedAvg's best, by eta, in points, of runs that went to their end."""
    baseline = best(points, "fedavg")
    if baseline is None or baseline.paused:
        return {}
    return {p.eta: p.score - baseline.score for p in _tied(points) if not p.paused}


def stopped(points: Sequence[Tried]) -> list[float]:
    """Etas at which a rung of successive halving has stopped FedGM (beta = nu = .9)."""
    return [p.eta for p in _tied(points) if p.paused]


def map_rows(found: Mapping[Regime, Sequence[Tried]]) -> dict[str, dict[float, float]]:
    """Gains by setting, for a map; the row is empty where all points were stopped."""
    rows = {setting.name: advantage(points) for setting, points in found.items()}
    lost = [s.name for s, points in found.items() if stopped(points) and all(p.paused for p in _tied(points))]
    return {name: gains for name, gains in rows.items() if gains or name in lost}


def _tied(points: Sequence[Tried]) -> list[Tried]:
    return [p for p in points if p.algorithm == "fedgm" and p.beta == p.nu == TIED]


def usable(points: Sequence[Tried]) -> dict[tuple[str, float, float], list[float]]:
    """Etas at which a rule ends within ``NEAR`` points of its own best, by (algorithm, beta, nu)."""
    rules: dict[tuple[str, float, float], list[Tried]] = {}
    for point in points:
        rules.setdefault((point.algorithm, point.beta, point.nu), []).append(point)
    found: dict[tuple[str, float, float], list[float]] = {}
    for rule, own in rules.items():
        ended = [point for point in own if not point.paused]
        top = max((point.score for point in ended), default=0.0)
        found[rule] = [p.eta for p in ended if p.score >= top - NEAR and not p.divergent]
    return found


def at_equal_budget(points: Sequence[Tried], algorithm: str) -> BestOf | None:
    """What a draw of FedAvg's size from an algorithm's grid would have found."""
    scores = [point.score for point in points if point.algorithm == algorithm]
    k = sum(point.algorithm == "fedavg" for point in points)
    return best_of(scores, k) if 0 < k < len(scores) else None


def markdown(
    found: Mapping[Regime, Sequence[Tried]], pictures: Mapping[str, str], scale: str, metric: Metric
) -> str:
    """The tables and pictures of the page; what they mean is for people to write around them."""
    unit = "in percent" if metric.scale == 100 else metric.unit
    what = f"{metric.label.capitalize()} is the mean of the last ten evaluations on the test set"
    lines = [f"{scale} {what}, {unit}.", ""]
    lines += [f"![{name}]({path})" for name, path in pictures.items()]
    lines += ["", "| clients | FedAvg's best | FedAvgM's best | FedGM's best | FedGM at FedAvg's budget |"]
    lines += ["|---|---|---|---|---|"]
    for setting, points in found.items():
        cells = [_cell(best(points, algorithm)) for algorithm in ("fedavg", "fedavgm", "fedgm")]
        lines.append(f"| {setting.name} | {' | '.join(cells)} | {_budget(points)} |")
    lines += ["", f"Etas that end within {NEAR:g} points of the rule's own best, of those that were run:", ""]
    lines += ["| clients | rule | usable eta | run |", "|---|---|---|---|"]
    for setting, points in found.items():
        for (algorithm, beta, nu), etas in usable(points).items():
            own = [p for p in points if (p.algorithm, p.beta, p.nu) == (algorithm, beta, nu)]
            name = algorithm if algorithm == "fedavg" else f"{algorithm}, beta {beta:g}, nu {nu:g}"
            shown = ", ".join(f"{e:g}" for e in etas) or "-"
            lines.append(f"| {setting.name} | {name} | {shown} | {len(own)}{_early(own)} |")
    return "\n".join(lines) + "\n"


def _budget(points: Sequence[Tried]) -> str:
    """FedGM's best at FedAvg's number of runs, and how many of its points never reached their end."""
    sizes = [sum(p.algorithm == rule for p in points) for rule in ("fedavg", "fedgm")]
    found, early = at_equal_budget(points, "fedgm"), _early([p for p in points if p.algorithm == "fedgm"])
    if found is not None:
        return f"{found.mean:.1f} ({found.low:.1f} to {found.high:.1f}){early}"
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
