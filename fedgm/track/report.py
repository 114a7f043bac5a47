"""What is printed before and after a run."""

from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table


def headline(console: Console, summary: dict[str, Any], parameters: int, workers: int, folder: Path) -> None:
    """The run in three lines: what, with which momentum, where."""
    s = summary
    console.print(
        f"[bold]{s['name']}[/]: {s['algorithm']} on {s['data']}, {s['model']} ({parameters:,} parameters), "
        f"profile [bold]{s['profile']}[/], {s['rounds']} rounds, seed {s['seed']}",
        highlight=False,
    )
    console.print(f"  {momentum(s['stages'])}; first-round gain {s['gain']:.4g}", highlight=False)
    console.print(f"  {folder}  ({workers} worker{'s' if workers > 1 else ''})", highlight=False, soft_wrap=True)


def momentum(stages: list[dict[str, float]]) -> str:
    """Hyperparameters over stages, e.g. ``eta 2 > 1 > 0.5, beta 0.9, stages end at 36, 107``."""
    words: list[str] = []
    for key in (k for k in stages[0] if k != "rounds"):
        values = [f"{stage[key]:.4g}" for stage in stages]
        words.append(f"{key} {' > '.join(values) if len(set(values)) > 1 else values[0]}")
    ends = [str(sum(int(s["rounds"]) for s in stages[: i + 1])) for i in range(len(stages) - 1)]
    return ", ".join(words) + (f", stages end at rounds {', '.join(ends)}" if ends else "")


def caption(summary: dict[str, Any]) -> str:
    """What a picture must say: profile, rounds, seed, local steps."""
    s = summary
    return (
        f"profile {s['profile']}: {s['model']} on {s['data']}, {s['rounds_done']} of {s['rounds']} rounds, "
        f"seed {s['seed']}, K = {s['local_steps']:.1f} local steps on average\n{momentum(s['stages'])}"
    )


def closing(console: Console, summary: dict[str, Any], folder: Path) -> None:
    """The result and where everything is."""
    s = summary
    colour = {"finished": "green", "diverged": "yellow", "stopped": "yellow"}.get(s["status"], "red")
    table = Table(show_header=True, header_style="bold", title=f"{s['name']} / {s['algorithm']} / seed {s['seed']}")
    for name in ("", "round", "train loss", "train acc", "test loss", "test acc"):
        table.add_column(name, justify="left" if not name else "right")
    lines = [("start", {"round": 0, **(s.get("initial") or {})}), ("final", s["final"]), ("best", s["best"])]
    lines.append(("mean of last 10", s["last10"]))
    for name, values in lines:
        if values:
            table.add_row(name, str(values.get("round", "")), *(_number(values, k) for k in _COLUMNS))
    console.print(table)
    reason = f": {s['reason']}" if s.get("reason") else ""
    console.print(
        f"[bold {colour}]{s['status']}[/]{reason} after {s['rounds_done']} of {s['rounds']} rounds, "
        f"{s['seconds']:.0f} s",
        highlight=False,
    )
    for name in ("curves.png", "metrics.jsonl", "summary.json", "model.safetensors", "wandb"):
        if (folder / name).exists():
            console.print(f"  {folder / name}", highlight=False, soft_wrap=True)


_COLUMNS = ("train/loss", "train/acc", "test/loss", "test/acc")


def _number(values: dict[str, Any], key: str) -> str:
    value = values.get(key)
    if value is None:
        return "-"
    return f"{100 * value:.2f} %" if key.endswith("acc") else f"{value:.4f}"
