"""Algorithms side by side: the same problem and seeds, each at its stored or at one common server rate."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import mean

from fedgm.config.winners import origin
from fedgm.errors import RefusedError, require
from fedgm.results.choose import goal, main_metric
from fedgm.results.curve import sign
from fedgm.results.interval import paired
from fedgm.results.labels import NAMES
from fedgm.results.run import Run
from fedgm.study.figure import Line, Panel, PaperFigure, default_panels
from fedgm.study.figure_runs import CHOOSING, PlannedFigure, as_sweep, plan
from fedgm.study.sweep import stored_runs
from fedgm.study.sweep_progress import Results

USUAL = ("fedavg", "fedavgm", "fedgm")
EXPERIMENT = "fedgm"  # whose grids have chosen values for the usual three
SEEDS = 3
PROBLEM = (  # of a grid
    "data", "model", "task", "clients", "local", "participation", "client", "upload", "sending", "privacy",
    "work",
)  # fmt: skip


@dataclass(frozen=True)
class Comparison:
    """Algorithms with their runs, one for each seed."""

    planned: PlannedFigure
    results: Results

    @property
    def runs(self) -> dict[str, list[Run]]:
        """Line -> its runs that are done, in the order of the seeds."""
        jobs, lines = self.planned.jobs, self.planned.figure.lines
        every = {
            line.key: [self.results.of(jobs[line.key, seed]) for seed in self.planned.seeds] for line in lines
        }
        return {key: [run for run in runs if run is not None and run.is_done] for key, runs in every.items()}

    @property
    def lines(self) -> dict[str, list[Run]]:
        """As tables and pictures show them: the name, with the rates where there are any."""
        names = {line.key: line.name for line in self.planned.figure.lines}
        return {names[key] + rates(self.planned, key): runs for key, runs in self.runs.items() if runs}

    @property
    def name(self) -> str:
        """Of its files: the algorithms, and the profile."""
        keys = [line.key for line in self.planned.figure.lines]
        return "_".join([*keys, self.planned.config(keys[0]).profile.name])

    def sentence(self) -> str:
        """Who leads, by how much, and whether that is more than the noise of seeds."""
        by_line = {key: {run.seed: run for run in runs} for key, runs in self.runs.items()}
        column = main_metric([run for runs in self.runs.values() for run in runs])
        seeds = sorted(set.intersection(*(set(runs) for runs in by_line.values())))
        left_out = [seed for seed in seeds if seed == CHOOSING and self._has_winners and len(seeds) > 1]
        seeds = [seed for seed in seeds if seed not in left_out]
        if column is None or len(seeds) < 1 or len(by_line) < 2:
            return "Nothing to compare: too few runs are done."
        first = by_line[next(iter(by_line))][seeds[0]]
        way, metric = sign(goal(first, column)), first.board.metric(column)
        scores = {key: [runs[seed].score(column) for seed in seeds] for key, runs in by_line.items()}
        names = {line.key: line.name for line in self.planned.figure.lines}
        lost = [names[key] for key, values in scores.items() if None in values]
        if lost:
            return f"Nothing to compare: {', '.join(lost)} diverged, and {column} has no chance level."
        shown = {key: [metric.scale * float(v or 0.0) for v in values] for key, values in scores.items()}
        best, second = sorted(shown, key=lambda key: -way * mean(shown[key]))[:2]
        lead = paired([way * v for v in shown[best]], [way * v for v in shown[second]])
        digits = 1 if metric.unit == "%" else 3
        size, low, high = (f"{value:.{digits}f}" for value in (lead.mean, lead.low, lead.high))
        unit = f" {metric.difference}" if metric.difference else f" of {metric.words('test')}"
        ahead = f"{names[best]} is {size}{unit} ahead of {names[second]}"
        if len(seeds) < 2:
            return f"{ahead} on one seed, which says nothing of the noise of seeds. Try --seeds {SEEDS}."
        inside = f"{low} to {high}, {len(seeds)} seeds"
        chose = f" Seed {CHOOSING} does not count: it has chosen the values." if left_out else ""
        if lead.low > 0:
            return f"{ahead}, beyond the noise of seeds: {inside}.{chose}"
        return f"{ahead}, within the noise of seeds ({inside}): they cannot be told apart.{chose}"

    @property
    def _has_winners(self) -> bool:
        """Whether a grid has chosen the values of a line, on one seed."""
        lines = self.planned.figure.lines
        own = self.planned.figure.has_winners
        return own and any(_origin(self.planned, line.key).startswith("winner") for line in lines)


def rates(planned: PlannedFigure, key: str) -> str:
    """``, eta 5, beta 0.95, nu 0.9``; nothing that an algorithm does not have."""
    algorithm = planned.config(key).algorithm
    words = [f"{name} {algorithm[name]:g}" for name in ("eta", "beta", "nu") if name in algorithm]
    return "".join(f", {word}" for word in words)


def load(
    algorithms: Sequence[str] = (),
    overrides: Sequence[str] = (),
    seeds: int | Sequence[int] = SEEDS,
    eta: float | None = None,
    output_dir: str | Path = "outputs",
    known: Sequence[str | Path] = (),
) -> Comparison:
    """Plan the runs: at the values that a grid has chosen, or all at server rate ``eta``."""
    names = list(dict.fromkeys(algorithms)) or list(USUAL)
    require(len(names) > 1, "algorithms", names[0], "at least two", "fedgm versus fedavg fedgm")
    for word in overrides:
        key = word.lstrip("+~").partition("=")[0]
        if key in ("algorithm", "algorithm.eta", "experiment", "seed", "output_dir"):
            raise RefusedError(
                f"{word}: `fedgm versus` sets {key} itself. Try fedgm versus fedavg fedgm --eta 1"
            )
    rate = [] if eta is None else ["winners=null", f"algorithm.eta={eta:g}"]
    lines = tuple(Line(name, NAMES.get(name, name), (f"algorithm={name}", *rate)) for name in names)
    title = ", ".join(line.name for line in lines)
    figure = PaperFigure(EXPERIMENT, None, title, (), "", (), lines, has_winners=eta is None)
    planned = plan(figure, seeds, overrides, str(output_dir))
    words = default_panels(planned.config(names[0]))  # of the metric that judges this task
    panels = tuple(Panel(column, "") for column in words)
    judged = replace(figure, panels=panels, metric=words[-1].rpartition("/")[2])
    planned = replace(planned, figure=judged)
    results = Results(as_sweep([planned], overrides, str(output_dir)), stored_runs(known))
    return Comparison(planned, results)


def origins(planned: PlannedFigure, eta: float | None, overrides: Sequence[str] = ()) -> list[str]:
    """Where the values of the lines come from, and whether that was another problem."""
    if eta is not None:
        return [f"every algorithm at server rate {eta:g}; `fedgm versus` without --eta takes stored values"]
    lines = planned.figure.lines
    notes = [f"{line.name}{rates(planned, line.key)} ({_origin(planned, line.key)})" for line in lines]
    keys = {word: word.lstrip("+~").split("=")[0] for word in overrides}
    changed = [word for word, key in keys.items() if key.split(".")[0] in PROBLEM and key != "data.root"]
    if not changed or not any(_origin(planned, line.key).startswith("winner") for line in lines):
        return notes
    command = shlex.join(["fedgm", "suggest", *overrides])
    return [*notes, f"chosen without {' '.join(changed)}; `{command}` finds FedGM's values for this problem"]


def _origin(planned: PlannedFigure, key: str) -> str:
    cfg = planned.config(key)
    found = origin(cfg.best, cfg.winners, cfg.algorithm, cfg.participation) or ""
    return found if found.startswith("winner") else "values of its yaml, not tuned"
