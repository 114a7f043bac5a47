"""A figure drawn as the paper would print it, with a caption that says what it rests on."""

from collections.abc import Sequence
from typing import Any

from matplotlib.figure import Figure

from fedgm.figures.lines import BAND, STAGES, Drawn, Pane, draw
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


def picture(planned: PlannedFigure, lookup: Lookup, lines: Sequence[dict[str, Any]]) -> Figure:
    """Every line with the runs that are there; ``lines`` are those of the verdict."""
    figure = planned.figure
    runs = {
        line.key: [run for seed in planned.seeds if (run := lookup(planned.jobs[line.key, seed])) is not None]
        for line in figure.lines
    }
    rounds = next(iter(planned.jobs.values())).rounds
    drawn = [
        Drawn(_named(line.name, runs[line.key], len(planned.seeds)), tuple(runs[line.key]))
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
        f"Profile {first.profile.name}: {first.model.name} on {first.data.name}, {first.rounds} rounds{K}; "
        f"seed{'s' if len(planned.seeds) > 1 else ''} {seeds}."
    ]
    sourced: dict[str, list[str]] = {}
    for line in lines:
        if line["values"]:
            sourced.setdefault(line["values"], []).append(line["name"])
    if sourced:
        said = [f"{' | '.join(names)}: {values}" for values, names in sourced.items()]
        words.append(f"Server rates: {'; '.join(said)}.")
    if len(planned.seeds) > 1:
        words.append(BAND)
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
