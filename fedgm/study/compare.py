"""Runs side by side in a picture and a table, seeds of a configuration as one line."""

from collections.abc import Sequence
from statistics import mean, stdev
from typing import Any

from fedgm.errors import RefusedError
from fedgm.results.record import RunRecord, mean_steps


def rows(grouped: dict[str, list[RunRecord]], target: float | None = None) -> list[dict[str, str]]:
    """A line each: mean and deviation over seeds of the last ten evaluations, rounds to ``target``."""
    from fedgm.results.find import main_metric, metrics

    every = [run for runs in grouped.values() for run in runs]
    main = main_metric(every)
    made: list[dict[str, str]] = []
    for name, runs in grouped.items():
        row = {"line": name, "seeds": ", ".join(str(run.facts["seed"]) for run in runs)}
        for metric in (name for name in metrics(every) if name in pair(main)):
            row[metric] = spread(runs[0].board.metric(metric).scale, [_score(run, metric) for run in runs])
        if target is not None and main is not None:
            reached = [_rounds_to(run, main, target) for run in runs]
            row[f"rounds to {target:g}"] = _reached(reached)
        lost = sum(run.status == "diverged" for run in runs)
        undone = sum(not run.is_done for run in runs)
        row["ended"] = ", ".join(
            f"{count} {word}"
            for count, word in (
                (len(runs) - lost - undone, "finished"),
                (lost, "diverged"),
                (undone, "not done"),
            )
            if count
        )
        made.append(row)
    return made


def _score(run: RunRecord, metric: str) -> float | None:
    """Last10 as claims count it: a divergent run has chance, or nothing where its metric knows no chance."""
    from fedgm.study.judged import as_run

    judged = as_run(run, run.facts["seed"], f"test/{metric.partition('/')[2]}")
    return judged.chance if judged.is_divergent else run.mean(metric)


def _rounds_to(run: RunRecord, metric: str, target: float) -> int | None:
    """The first evaluated round at which a run is as good as ``target``."""
    from fedgm.results.curve import rounds_to
    from fedgm.results.find import goal

    rounds = [int(row["round"] or 0) for row in run.evaluations]
    return rounds_to(rounds, [row.get(metric) for row in run.evaluations], target, goal(run, metric))


def pair(main: str | None) -> tuple[str, ...]:
    """The metric that runs are compared by, and the same on training data."""
    return (f"train/{main.partition('/')[2]}", main) if main else ()


def spread(factor: float, values: Sequence[float | None]) -> str:
    """``44.12 ± 0.31``; shares in percent have two digits less."""
    known = [value for value in values if value is not None]
    if not known:
        return "-"
    digits = 2 if factor == 100 else 4
    around = f" ± {factor * stdev(known):.{digits}f}" if len(known) > 1 else ""
    return f"{factor * mean(known):.{digits}f}{around}"


def _reached(found: Sequence[int | None]) -> str:
    """Mean over the seeds that got there, and how many did where not all."""
    known = [value for value in found if value is not None]
    if not known:
        return "never"
    short = f" ({len(known)} of {len(found)} seeds)" if len(known) < len(found) else ""
    return f"{mean(known):.0f}{short}"


def _head(key: str) -> str:
    from fedgm.figures.points import scale

    return f"{key}, %" if scale(key) == 100 else key


def as_table(made: Sequence[dict[str, str]]) -> Any:
    """For the screen."""
    from rich.table import Table

    table = Table(header_style="bold", caption=CAPTION)
    for key in made[0]:
        table.add_column(_head(key), justify="left" if key == "line" else "right", overflow="fold")
    for row in made:
        table.add_row(*row.values())
    return table


CAPTION = (
    "mean ± standard deviation over seeds, of the last 10 evaluations; a divergent run counts with chance, "
    "or not at all where the metric has none"
)
SPECIAL = {"%": r"\%", "_": r"\_", "&": r"\&", "#": r"\#", "±": r"$\pm$", ">": "$>$"}


def latex_table(made: Sequence[dict[str, str]]) -> str:
    """A booktabs table to paste."""

    def clean(text: str) -> str:
        return "".join(SPECIAL.get(letter, letter) for letter in text)

    keys = list(made[0])
    lines = [
        rf"\begin{{tabular}}{{l{'r' * (len(keys) - 1)}}}",
        r"\toprule",
        " & ".join(clean(_head(key)) for key in keys) + r" \\",
        r"\midrule",
        *(" & ".join(clean(row[key]) for key in keys) + r" \\" for row in made),
        r"\bottomrule",
        r"\end{tabular}",
        f"% {CAPTION.replace('±', 'and')}",
    ]
    return "\n".join(lines)


def picture(grouped: dict[str, list[RunRecord]]) -> Any:
    """Training and test curves of the metric that runs are compared by, and against time under a clock."""
    from fedgm.figures.lines import BAND, STAGES, Drawn, Pane, Trace, draw
    from fedgm.results.find import main_metric, metrics
    from fedgm.results.rows import Row
    from fedgm.study.judged import stage_ends

    every = [run for runs in grouped.values() for run in runs]
    main = main_metric(every)
    if main is None:
        raise RefusedError("these runs have no test metric to draw")
    panes = [Pane(metric) for metric in pair(main) if metric in metrics(every)]
    if all("clock/time" in row for run in every for row in run.evaluations[:1]):
        panes.append(Pane(main, abscissa="clock/time"))

    def trace(run: RunRecord) -> Trace:
        start: Row = {"round": 0, "clock/time": 0.0, **(run.facts.get("initial") or {})}
        return Trace([start, *run.evaluations], run.status == "diverged")

    drawn = [Drawn(name + _open(runs), tuple(trace(run) for run in runs)) for name, runs in grouped.items()]
    ends = sorted({end for run in every for end in stage_ends(run)[:-1]})
    words = [caption(every), BAND if len(every) > len(drawn) else "", STAGES if ends else ""]
    return draw(drawn, panes, title(every), words, ends)


def title(runs: Sequence[RunRecord]) -> str:
    """The experiments that the runs belong to."""
    names = sorted({str(run.facts["name"]) for run in runs})
    return f"{', '.join(names)}: {len(runs)} runs"


def caption(runs: Sequence[RunRecord]) -> str:
    """What a picture must say: profile, rounds, seeds, local steps."""

    def values(key: str) -> str:
        return ", ".join(str(value) for value in sorted({run.facts.get(key) for run in runs}, key=str))

    K = mean_steps(runs)
    lost = " A cross: a run ended as diverged." if any(run.status == "diverged" for run in runs) else ""
    return (
        f"Profile {values('profile')}: {values('model')} on {values('data')}, {values('rounds')} rounds{K}; "
        f"seed{'s' if len({run.facts['seed'] for run in runs}) > 1 else ''} {values('seed')}.{lost}"
    )


def _open(runs: Sequence[RunRecord]) -> str:
    """How many runs of a line are not done, where there are any."""
    undone = sum(not run.is_done for run in runs)
    return f" ({undone} of {len(runs)} not done)" if undone else ""
