"""What is printed before and after a run."""

from collections.abc import Mapping
from math import isfinite
from pathlib import Path
from typing import Any

from rich.table import Table
from rich.text import Text

from fedgm.plain import plain
from fedgm.results.labels import in_turn, work
from fedgm.results.run import Run
from fedgm.results.summary import Status
from fedgm.screen import Screen
from fedgm.tasks.metric import scoreboard


def headline(console: Screen, summary: dict[str, Any], parameters: int, workers: int, folder: Path) -> None:
    """What runs, with which momentum, where; a line each, none wider than a terminal."""
    s = summary
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    table.add_row(
        plain(s["name"]), f"{s['algorithm']}, {s['rounds']} rounds, seed {s['seed']}, profile {s['profile']}"
    )
    table.add_row("model", f"{s['model']}, {parameters:,} parameters, on {s['data']}")
    for key, values in momentum(s["stages"], s.get("last")).items():
        table.add_row(key, values)
    if s.get("decided"):
        table.add_row("stages", f"decided {s['decided']}")
    if isfinite(s["gain"]):  # an adaptive rule has none
        table.add_row("gain", f"{s['gain']:.4g} (what the first update is multiplied by)")
    table.add_row("workers", str(workers))
    table.add_row("folder", str(folder))
    console.print(table)


def momentum(stages: list[dict[str, float]], last: dict[str, float] | None = None) -> dict[str, str]:
    """Each hyperparameter over the stages (``eta: 2 then 1 then 0.5``), and the rounds in which stages end.

    A schedule that changes in every round has one stage; ``last`` is what it comes to.
    """
    words: dict[str, str] = {}
    for key in (k for k in stages[0] if k != "rounds"):
        words[key] = in_turn([stage[key] for stage in stages])
        if last and (end := f"{last[key]:.4g}") != f"{stages[-1][key]:.4g}":
            words[key] = f"{stages[0][key]:.4g} ... {end}, changing from round to round"
    ends = [str(sum(int(s["rounds"]) for s in stages[: i + 1])) for i in range(len(stages) - 1)]
    return words | ({"stages end": f"after rounds {', '.join(ends)}"} if ends else {})


def caption(summary: dict[str, Any], config: Mapping[str, Any]) -> str:
    """What a picture must say: profile, network, data, rounds, seed, local steps, rates."""
    s = summary
    values = ", ".join(f"{key} {value}" for key, value in momentum(s["stages"], s.get("last")).items())
    values += f", stages decided {s['decided']}" if s.get("decided") else ""
    values += f" ({s['origin']})" if s.get("origin") else ""
    return (
        f"profile {s['profile']}: {work([config])}, {s['rounds_done']} of {s['rounds']} rounds, "
        f"seed {s['seed']},\nK = {s['local_steps']:.1f} local steps on average; {values}"
    )


def closing(console: Screen, summary: dict[str, Any], folder: Path) -> None:
    """The result and where everything is."""
    s = summary
    colour = {Status.FINISHED: "green", Status.FAILED: "red"}.get(s["status"], "yellow")
    table = Table(
        show_header=True,
        header_style="bold",
        title=f"{plain(s['name'])} / {plain(s['algorithm'])} / seed {s['seed']}",
    )
    board, ended = scoreboard(s), ending(s)
    for name in ("", "round", *(column.replace("/", " ") for column in board.columns)):
        table.add_column(name, justify="left" if not name else "right")
    lines = [("start", {"round": 0, **(s.get("initial") or {})}), ("final", ended["final"])]
    lines += [("best", s["best"]), ("mean of last 10", ended["last10"])]
    for name, values in lines:
        if values:
            table.add_row(
                name, str(values.get("round", "")), *(board.show(column, values) for column in board.columns)
            )
    console.print(table)
    reason = f": {plain(s['reason'], 1000)}" if s.get("reason") else ""
    rounds = f"{reason} after {s['rounds_done']} of {s['rounds']} rounds, {s['seconds']:.0f} s"
    more = "; a larger stop_after continues it" if s["status"] == Status.PAUSED else ""
    console.print(Text.assemble((s["status"], f"bold {colour}"), rounds, more))
    for name in ("curves.png", "metrics.jsonl", "summary.json", "model.safetensors", "wandb"):
        if (folder / name).exists():
            console.say(f"  {folder / name}")


def ending(summary: dict[str, Any]) -> dict[str, dict[str, Any] | None]:
    """Final and mean of the last ten as ``Run`` has them: chance where the run ended as diverged."""
    values = {name: summary.get(name) for name in ("final", "last10")}
    run = Run(summary, {}, [])
    if not run.is_divergent:
        return values
    chance = {column: run.chance(column) for column in run.board.columns}
    return {name: {**(stored or {}), **chance} for name, stored in values.items()}


def stopped(console: Screen, summary: dict[str, Any]) -> None:
    """One line after Ctrl-C."""
    done = f"{summary.get('rounds_done', '?')} of {summary['rounds']} rounds"
    console.print(Text.assemble(("stopped", "bold yellow"), f" after {done}; the same command continues"))
