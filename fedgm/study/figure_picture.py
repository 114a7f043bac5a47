"""A figure drawn as the paper would print it, with a caption that says what it rests on."""

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.figure import Figure
from omegaconf import DictConfig, OmegaConf

from fedgm.config.identity import resolved
from fedgm.figures import dots
from fedgm.figures.lines import RESIDUALS, SEEDS, STAGES, draw
from fedgm.figures.pane import Drawn, Pane
from fedgm.results.labels import work
from fedgm.results.run import Run, mean_steps
from fedgm.results.summary import DONE
from fedgm.study import rates
from fedgm.study.figure import RESIDUAL, WINDOWS
from fedgm.study.figure_runs import Lookup, PlannedFigure
from fedgm.study.rates import Rated
from fedgm.tasks.metric import column

PERIODS = {
    "": "",
    "first quarter": "first quarter of the rounds",
    "last quarter": "last quarter of the rounds",
    RESIDUAL: "last quarter, minus its trend",
}
SCALES = {  # what of the paper's setting is the paper's
    "full": "The paper states images, clients, epochs, local rate, rounds; depth, norm, batch are ours.",
    "small": "The paper has 50,000 images of 32x32.",
}
MORE_ROUNDS = {
    "small": "The paper has 50,000 images of 32x32 and four times the rounds."
}  # in its own figures


def picture(planned: PlannedFigure, lookup: Lookup, lines: Sequence[dict[str, Any]]) -> Figure:
    """Every line with the runs that are there; ``lines`` are those of the verdict."""
    figure = planned.figure
    runs = _runs(planned, lookup)
    rounds = next(iter(planned.jobs.values())).rounds
    drawn = [
        Drawn(
            _named(line.name, runs[line.key], len(planned.seeds)),
            tuple(runs[line.key]),
            str(planned.config(line.key).algorithm.name),
            line.row,
            _strength(planned.config(line.key)),
        )
        for line in figure.lines  # also those without runs, so that colours stay
    ]
    every = [run for of_line in runs.values() for run in of_line]
    boards = [run.board for run in every]
    words = caption(planned, runs, lines)
    if figure.kind == "dots":
        columns = [column(panel.metric, boards) for panel in figure.panels]
        return dots.draw(drawn, columns, figure.heading, words)
    panes: list[Pane] = []
    for panel in figure.panels:
        low, high = WINDOWS[panel.period](Run({"rounds": rounds}, {}, []))
        is_residual = panel.period == RESIDUAL
        panes.append(
            Pane(column(panel.metric, boards), low, high, title=PERIODS[panel.period], residual=is_residual)
        )
    return draw(drawn, panes, figure.heading, words, _stage_ends(every))


def _runs(planned: PlannedFigure, lookup: Lookup) -> dict[str, list[Run]]:
    """The runs of each line that are there."""
    return {
        line.key: [run for seed in planned.seeds if (run := lookup(planned.jobs[line.key, seed])) is not None]
        for line in planned.figure.lines
    }


def _stage_ends(runs: Sequence[Run]) -> list[int]:
    return sorted({end for run in runs for end in run.stage_ends[:-1]})


def _strength(cfg: DictConfig) -> tuple[bool, float]:
    """What the darkest line of an algorithm has: ideal clients, then the largest eta."""
    etas = OmegaConf.select(cfg, "schedule.etas") or [cfg.algorithm.get("eta") or 0.0]
    return cfg.participation.name == "ideal", float(max(etas))


def _named(name: str, runs: Sequence[Run], seeds: int) -> str:
    """The line's name, with what is not as planned."""
    lost, done = sum(run.is_divergent for run in runs), sum(run.is_done for run in runs)
    words = [f"{done} of {seeds} seeds"] if done < seeds else []
    words += [f"{lost} diverged"] if lost else []
    return f"{name} ({', '.join(words)})" if words else name


def caption(
    planned: PlannedFigure, by_line: Mapping[str, Sequence[Run]], lines: Sequence[dict[str, Any]]
) -> list[str]:
    """Profile, work, rounds, K, seeds, rates, what the marks mean, what is incomplete."""
    first, figure = next(iter(planned.configs.values())), planned.figure
    runs = [run for of_line in by_line.values() for run in of_line]
    K, rows = mean_steps(runs), {line.key: line.row for line in figure.lines}
    scales = {**SCALES, **MORE_ROUNDS} if figure.number else SCALES
    seeds = ", ".join(map(str, planned.seeds))
    setting = work([resolved(planned.config(line.key)) for line in figure.lines])
    words = [
        f"Profile {first.profile.name}: {setting}, {first.rounds} rounds{K}; "
        f"seed{'s' if len(planned.seeds) > 1 else ''} {seeds}.",
        scales.get(str(first.profile.name), "") if first.data.name == "cifar10" else "",
        rates.said(
            [
                Rated(line["name"], by_line.get(line["key"], ()), line["values"], rows.get(line["key"], ""))
                for line in lines
            ]
        ),
        figure.note,
    ]
    if figure.kind == "dots":
        words.append(dots.SEEDS)
    elif len(planned.seeds) > 1:
        words.append(SEEDS)
    if figure.kind != "dots" and _stage_ends(runs):
        words.append(STAGES)
    if any(panel.period == RESIDUAL for panel in figure.panels):
        words.append(RESIDUALS)
    if any(run.is_divergent for run in runs):
        words.append("A cross: a run ended as diverged.")
    marked = {line["name"]: list(line["seeds"].values()).count("near chance") for line in lines}
    if planned.figure.claims and any(marked.values()):
        said = [f"{name} ({count} of {len(planned.seeds)} seeds)" for name, count in marked.items() if count]
        words.append(f"Near chance by the rule of docs/claims.md: {'; '.join(said)}.")
    open_lines = [
        f"{line['name']}, seed {seed} ({state})"
        for line in lines
        for seed, state in line["seeds"].items()
        if state not in (*DONE, "near chance")
    ]
    if open_lines:
        shown = "; ".join(open_lines[:6]) + (
            f" and {len(open_lines) - 6} more" if len(open_lines) > 6 else ""
        )
        words.append(f"Not complete: {shown}.")
    return words
