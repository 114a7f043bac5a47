"""A figure drawn as the paper would print it, with a caption that says what it rests on."""

from collections.abc import Sequence
from typing import Any

from matplotlib.figure import Figure
from omegaconf import DictConfig, OmegaConf

from fedgm.figures.lines import SEEDS, STAGES, Drawn, Pane, draw
from fedgm.results.run import Run, mean_steps
from fedgm.results.summary import DONE
from fedgm.study.figure import WINDOWS
from fedgm.study.figure_runs import Lookup, PlannedFigure
from fedgm.tasks.metric import column

PERIODS = {
    "": "",
    "first quarter": "first quarter of the rounds",
    "last quarter": "last quarter of the rounds",
}

WORK = ("model.depth", "data.resolution", "data.train_samples")
SCALES = {  # what of the paper's setting is the paper's
    "full": "The paper states images, clients, epochs, local rate, rounds; depth, norm, batch are ours.",
    "small": "The paper has 50,000 images of 32x32 and four times the rounds.",
}


def picture(planned: PlannedFigure, lookup: Lookup, lines: Sequence[dict[str, Any]]) -> Figure:
    """Every line with the runs that are there; ``lines`` are those of the verdict."""
    figure = planned.figure
    runs = {
        line.key: [run for seed in planned.seeds if (run := lookup(planned.jobs[line.key, seed])) is not None]
        for line in figure.lines
    }
    rounds = next(iter(planned.jobs.values())).rounds
    drawn = [
        Drawn(
            _named(line.name, runs[line.key], len(planned.seeds)),
            tuple(runs[line.key]),
            str(planned.config(line.key).algorithm.name),
            line.row,
        )
        for line in figure.lines  # also those without runs, so that colours stay
    ]
    every = [run for of_line in runs.values() for run in of_line]
    boards = [run.board for run in every]
    panes: list[Pane] = []
    for panel in figure.panels:
        low, high = WINDOWS[panel.period](Run({"rounds": rounds}, {}, []))
        panes.append(Pane(column(panel.metric, boards), low, high, title=PERIODS[panel.period]))
    ends = sorted({end for run in every for end in run.stage_ends[:-1]})
    return draw(drawn, panes, figure.heading, caption(planned, every, lines, bool(ends)), ends)


def _work(cfg: DictConfig) -> str:
    """What is trained on what: ``resnet-8 on 10,000 images of cifar10, 16x16``."""
    depth, side, samples = (OmegaConf.select(cfg, key) for key in WORK)
    net = f"{cfg.model.name}-{depth}" if depth else str(cfg.model.name)
    data = f"{samples:,} samples of {cfg.data.name}" if samples else f"all of {cfg.data.name}"
    return f"{net} on {data}, {side}x{side}" if side else f"{net} on {data}"


def _rates(planned: PlannedFigure, runs: Sequence[Run]) -> str:
    """eta, beta and nu of every line, each stage's where there are several."""
    said: list[str] = []
    for line in planned.figure.lines:
        keys = {planned.jobs[line.key, seed].key for seed in planned.seeds}
        stages = next((run.facts.get("stages") for run in runs if run.key in keys), None) or []
        columns = [[stage.get(name) for stage in stages] for name in ("eta", "beta", "nu")]
        if stages and all(value is not None for column in columns for value in column):
            texts = [", ".join(dict.fromkeys(f"{value:.3g}" for value in column)) for column in columns]
            said.append(f"{line.name}: {' | '.join(texts)}")
    return f"Server rates (eta | beta | nu): {'; '.join(said)}." if said else ""


def _named(name: str, runs: Sequence[Run], seeds: int) -> str:
    """The line's name, with what is not as planned."""
    lost, done = sum(run.is_divergent for run in runs), sum(run.is_done for run in runs)
    words = [f"{done} of {seeds} seeds"] if done < seeds else []
    words += [f"{lost} diverged"] if lost else []
    return f"{name} ({', '.join(words)})" if words else name


def caption(
    planned: PlannedFigure, runs: Sequence[Run], lines: Sequence[dict[str, Any]], staged: bool
) -> list[str]:
    """Profile, rounds, K, seeds, where the values come from, what the marks mean, what is incomplete."""
    first = next(iter(planned.configs.values()))
    K = mean_steps(runs)
    seeds = ", ".join(map(str, planned.seeds))
    words = [
        f"Profile {first.profile.name}: {_work(first)}, {first.rounds} rounds{K}; "
        f"seed{'s' if len(planned.seeds) > 1 else ''} {seeds}.",
        SCALES.get(str(first.profile.name), ""),
    ]
    sourced: dict[str, list[str]] = {}
    for line in lines:
        if line["values"]:
            sourced.setdefault(line["values"], []).append(line["name"])
    if sourced:
        said = [f"{' | '.join(names)}: {values}" for values, names in sourced.items()]
        words.append(f"Server rates: {'; '.join(said)}.")
    else:
        words.append(_rates(planned, runs))
    if len(planned.seeds) > 1:
        words.append(SEEDS)
    if staged:
        words.append(STAGES)
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
