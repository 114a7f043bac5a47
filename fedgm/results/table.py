"""Stored runs in a table, and one of them in full."""

import os
import shutil
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fedgm.plain import plain
from fedgm.results.summary import Status

if TYPE_CHECKING:
    from fedgm.results.run import Run
    from fedgm.screen import Listing, Screen

UNSEALED, OLDER = "*", "of an older version: changes to its files do not show"
PATH = 4096  # characters of a path: it is there to be copied
PRUNED = (Status.FAILED, Status.KILLED, Status.STOPPED)  # paused and diverged runs are results


def of_runs(runs: "Sequence[Run]") -> "Listing":
    """A line for each run."""
    from fedgm.results import labels
    from fedgm.results.choose import main_metric, shown
    from fedgm.screen import Listing

    metric = main_metric(runs)
    sizes = [size(run.folder) for run in runs]
    whole = f"{len(runs)} runs" + (f", {_bytes(sum(sizes))}" if any(sizes) else "")
    last = ("size",) if any(sizes) else ()
    numbers = ("seed", "round", *(("last 10", "final") if metric else ()), *last)
    head = ("experiment", "run", "seed", "status", *numbers[1:])
    families: dict[tuple[str, str], list[Run]] = {}
    for run in runs:
        families.setdefault(_family(run), []).append(run)
    keys = {
        family: list(dict.fromkeys([*labels.RATES, *labels.telling(some)]))
        for family, some in families.items()
    }
    lines: list[Sequence[str]] = []
    for run, stored in zip(runs, sizes, strict=True):
        facts = run.facts
        scores = (
            (shown(run, metric, run.score(metric)), shown(run, metric, run.final(metric))) if metric else ()
        )
        rounds = f"{facts['rounds_done']}/{facts['rounds']}"
        name, words = plain(facts["name"], 60), labels.label(run, keys[_family(run)])
        room = (_bytes(stored),) if last else ()
        lines.append((name, words, str(facts["seed"]), _status(run), rounds, *scores, *room))
    notes = [f"{plain(metric)}: mean of the last 10 evaluations, and the last"] if metric else []
    notes += [f"{UNSEALED} {OLDER}"] if not all(run.is_sealed for run in runs) else []
    return Listing(whole, head, lines, numbers, "; ".join(notes))


def _family(run: "Run") -> tuple[str, str]:
    """Runs that are told apart by what differs among them: an experiment's, with one algorithm."""
    return str(run.facts["name"]), str(run.facts.get("algorithm"))


def _status(run: "Run") -> str:
    return run.status if run.is_sealed else f"{run.status} {UNSEALED}"


def size(folder: Path | None) -> int:
    """Bytes of a run folder; 0 for a run of an archive."""
    total, folders = 0, [str(folder)] if folder else []
    for place in folders:  # grows while it is read
        with suppress(OSError), os.scandir(place) as entries:  # gone, or one that we may not read
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
                else:
                    total += entry.stat(follow_symlinks=False).st_size
    return total


def _bytes(count: int) -> str:
    """In the unit that people read."""
    for unit in ("B", "kB", "MB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if count else "-"
        count = round(count / 1000)
    return f"{count} GB"


def prune(runs: "Sequence[Run]") -> None:
    """Delete, after a confirmation, folders of runs that ended badly and that no process works on."""
    from fedgm.lock import is_alive

    chosen = [run for run in runs if run.folder and run.status in PRUNED and not is_alive(run.folder)]
    if not chosen:
        click.echo("nothing to prune: it deletes only runs that failed, were killed or stopped")
        return
    for run in chosen:
        click.echo(f"  {run.status:9} {plain(run.folder, PATH)}")
    if not click.confirm(f"delete these {len(chosen)} runs?", default=False):
        click.echo("nothing deleted")
        return
    for run in chosen:
        assert run.folder is not None
        shutil.rmtree(run.folder)
        if not any(run.folder.parent.iterdir()):
            run.folder.parent.rmdir()
    click.echo(f"{len(chosen)} runs deleted")


def show(run: "Run", console: "Screen") -> None:
    """Print one run in full."""
    from rich.table import Table
    from rich.text import Text

    from fedgm.results import labels
    from fedgm.results.choose import metrics, shown

    facts = run.facts
    rounds = f"{facts['rounds_done']} of {facts['rounds']} rounds, {facts.get('seconds') or 0:.0f} s"
    reason = f": {plain(facts['reason'], 1000)}" if facts.get("reason") else ""
    keys = [*labels.RATES, "schedule.name", "participation.name", "client.name"]
    name = Text(plain(facts["name"]), "bold")
    console.print(Text.assemble(name, f": {labels.label(run, keys)}, seed {facts['seed']}"))
    console.print(f"{run.status}{reason} after {rounds}; commit {plain(facts.get('commit'))}")
    if not run.is_sealed:
        console.print(f"{UNSEALED} {OLDER}")
    numbers = Table(header_style="bold")
    for name in ("metric", "start", "final", "mean of last 10"):
        numbers.add_column(name, justify="left" if name == "metric" else "right")
    for metric in metrics([run]):
        values = ((facts.get("initial") or {}).get(metric), run.final(metric), run.score(metric))
        numbers.add_row(plain(metric), *(shown(run, metric, value) for value in values))
    console.print(numbers)
    config = Table.grid(padding=(0, 2, 0, 0))
    for key, value in run.config.items():
        config.add_row(plain(key), plain(value, 1000))
    console.print(config)
    for path in sorted(run.folder.iterdir()) if run.folder else ():
        console.say(f"  {plain(path, PATH)}")
