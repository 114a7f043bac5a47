"""Runs side by side in a picture and a table, seeds of a configuration as one line."""

from collections.abc import Sequence
from statistics import mean, stdev
from typing import Any

from fedgm.errors import RefusedError
from fedgm.plain import plain
from fedgm.results.choose import goal, main_metric, metrics
from fedgm.results.curve import rounds_to
from fedgm.results.labels import work
from fedgm.results.run import Run, Status, mean_steps
from fedgm.study import rates
from fedgm.study.rates import Rated
from fedgm.tasks.metric import column


def rows(grouped: dict[str, list[Run]], target: float | None = None) -> list[dict[str, str]]:
    """A line each: mean and deviation over seeds of the last ten evaluations, rounds to ``target``."""
    every = [run for runs in grouped.values() for run in runs]
    main = main_metric(every)
    made: list[dict[str, str]] = []
    for name, runs in grouped.items():
        row = {"line": name, "seeds": ", ".join(str(run.seed) for run in runs)}
        for key in (name for name in metrics(every) if name in pair(main)):
            metric = runs[0].board.metric(key)
            head = plain(f"{key}, {metric.unit}" if metric.unit else key, 60)
            row[head] = spread(metric.scale, [run.score(key) for run in runs])
        if target is not None and main is not None:
            reached = [_rounds_to(run, main, target) for run in runs]
            row[f"rounds to {target:g}"] = _reached(reached)
        lost = sum(run.is_divergent for run in runs)
        undone = sum(not run.is_done for run in runs)
        row["ended"] = ", ".join(
            f"{count} {word}"
            for count, word in (
                (len(runs) - lost - undone, Status.FINISHED),
                (lost, Status.DIVERGED),
                (undone, "not done"),
            )
            if count
        )
        made.append(row)
    return made


def _rounds_to(run: Run, metric: str, target: float) -> int | None:
    """The first evaluated round at which a run is as good as ``target``."""
    rounds = [int(row["round"] or 0) for row in run.evaluations]
    return rounds_to(rounds, [row.get(metric) for row in run.evaluations], target, goal(run, metric))


def pair(main: str | None) -> tuple[str, ...]:
    """The metric that runs are compared by, and the same on training data."""
    return (f"train/{main.partition('/')[2]}", main) if main else ()


def spread(factor: float, values: Sequence[float | None]) -> str:
    """``44.12 ± 0.31``; shares in percent have two digits less."""
    finite = [value for value in values if value is not None]
    if not finite:
        return "-"
    digits = 2 if factor == 100 else 4
    around = f" ± {factor * stdev(finite):.{digits}f}" if len(finite) > 1 else ""
    return f"{factor * mean(finite):.{digits}f}{around}"


def _reached(rounds: Sequence[int | None]) -> str:
    """Mean over the seeds that got there, and how many did where not all."""
    reached = [t for t in rounds if t is not None]
    if not reached:
        return "never"
    short = f" ({len(reached)} of {len(rounds)} seeds)" if len(reached) < len(rounds) else ""
    return f"{mean(reached):.0f}{short}"


def as_table(made: Sequence[dict[str, str]]) -> Any:
    """For the screen."""
    from rich.table import Table

    table = Table(header_style="bold", caption=CAPTION)
    for key in made[0]:
        table.add_column(key, justify="left" if key == "line" else "right", overflow="fold")
    for row in made:
        table.add_row(*row.values())
    return table


CAPTION = (
    "mean ± standard deviation over seeds, of the last 10 evaluations; a run that ended as diverged counts "
    "with chance, or not at all where the metric has no chance level"
)
SPECIAL = {
    "%": r"\%", "_": r"\_", "&": r"\&", "#": r"\#", "±": r"$\pm$", ">": "$>$", "<": "$<$", "$": r"\$",
    "{": r"\{", "}": r"\}", "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
}  # fmt: skip


def latex_table(made: Sequence[dict[str, str]]) -> str:
    """A booktabs table to paste."""

    def clean(text: str) -> str:
        return "".join(SPECIAL.get(letter, letter) for letter in text)

    keys = list(made[0])
    lines = [
        rf"\begin{{tabular}}{{l{'r' * (len(keys) - 1)}}}",
        r"\toprule",
        " & ".join(clean(key) for key in keys) + r" \\",
        r"\midrule",
        *(" & ".join(clean(row[key]) for key in keys) + r" \\" for row in made),
        r"\bottomrule",
        r"\end{tabular}",
        f"% {CAPTION.replace('±', 'and')}",
    ]
    return "\n".join(lines)


def picture(grouped: dict[str, list[Run]]) -> Any:
    """Training and test curves of the metric that runs are compared by, and against time under a clock."""
    from fedgm.figures.lines import SEEDS, STAGES, draw
    from fedgm.figures.pane import Drawn, Pane

    every = [run for runs in grouped.values() for run in runs]
    main = main_metric(every)
    if main is None:
        raise RefusedError("these runs have no test metric to draw")
    boards = [run.board for run in every]
    panes = [Pane(column(key, boards)) for key in pair(main) if key in metrics(every)]
    if all("clock/time" in row for run in every for row in run.evaluations[:1]):
        panes.append(Pane(column(main, boards), abscissa="clock/time"))
    drawn = [
        Drawn(
            plain(name, 120) + _open(runs),
            tuple(runs),
            plain(runs[0].facts.get("algorithm")),
            strength=_strength(runs[0]),
        )
        for name, runs in grouped.items()
    ]
    ends = sorted({end for run in every for end in run.stage_ends[:-1]})
    said = rates.said([Rated(name, runs) for name, runs in grouped.items()])
    words = [caption(every), said, SEEDS if len(every) > len(drawn) else "", STAGES if ends else ""]
    return draw(drawn, panes, title(every), words, ends)


def _strength(run: Run) -> tuple[bool, float]:
    """What the darkest line of an algorithm has: ideal clients, then the largest eta."""
    etas = [stage.get("eta") for stage in run.facts.get("stages") or []]
    known = [float(eta) for eta in etas if isinstance(eta, int | float)]
    return run.facts.get("participation") == "ideal", max(known, default=0.0)


def title(runs: Sequence[Run]) -> str:
    """The experiments that the runs belong to."""
    names = sorted({plain(run.facts["name"], 60) for run in runs})
    return f"{plain(', '.join(names), 300)}: {len(runs)} runs"


def caption(runs: Sequence[Run]) -> str:
    """What a picture must say: profile, network, data, rounds, seeds, local steps."""

    def values(key: str) -> str:
        return plain(", ".join(sorted({plain(run.facts.get(key), 60) for run in runs})))

    K = mean_steps(runs)
    configs = [
        {"model.name": run.facts.get("model"), "data.name": run.facts.get("data"), **run.config}
        for run in runs
    ]
    lost = " A cross: a run ended as diverged." if any(run.is_divergent for run in runs) else ""
    return (
        f"Profile {values('profile')}: {work(configs)}, {values('rounds')} rounds{K}; "
        f"seed{'s' if len({run.seed for run in runs}) > 1 else ''} {values('seed')}.{lost}"
    )


def _open(runs: Sequence[Run]) -> str:
    """How many runs of a line are not done, where there are any."""
    undone = sum(not run.is_done for run in runs)
    return f" ({undone} of {len(runs)} not done)" if undone else ""
