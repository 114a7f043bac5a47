"""What benchmarks keep: JSON below docs/results/, and tables between two marks of a page."""

import json
import os
import statistics
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

RESULTS, PAGE = Path("docs/results"), Path("docs/benchmarks.md")


def put(name: str, table: str, page: Path = PAGE) -> None:
    """Replace what stands between the two marks of this name."""
    mark = f"<!-- {name} -->\n"
    before, first, rest = page.read_text().partition(mark)
    _, second, after = rest.partition(mark)
    assert all((first, second)), f"{page} has no two lines {mark.strip()}"
    page.write_text(before + mark + table + mark + after)


def taken() -> dict[str, Any]:
    """Commit, day and load average, to be asked for before a measurement starts."""
    commit = _git("rev-parse", "--short", "HEAD")
    if commit and _git("status", "--porcelain", "--untracked-files=no", "--", ":!docs"):
        commit += "-dirty"  # not by the page that the measurements before this one have written
    day = time.strftime("%Y-%m-%d", time.gmtime())
    return {"commit": commit or None, "date": day, "load": round(os.getloadavg()[0], 2)}


def _git(*words: str) -> str:
    return subprocess.run(["git", *words], capture_output=True, text=True, check=False).stdout.strip()


def when(stamp: dict[str, Any]) -> str:
    """The stamp as words; what an old result does not know is left out."""
    formats = {"commit": "commit {}", "date": "{}", "load": "load at start {}"}
    return ", ".join(text.format(stamp[key]) for key, text in formats.items() if stamp.get(key) is not None)


def path(name: str) -> Path:
    """Where the results of this name are kept."""
    return RESULTS / f"benchmarks_{name}.json"


def keep(name: str, result: dict[str, Any]) -> None:
    """As JSON."""
    path(name).write_text(json.dumps(result, indent=1) + "\n")


def kept(name: str) -> dict[str, Any]:
    """What was kept; empty where nothing was."""
    return json.loads(path(name).read_text()) if path(name).exists() else {}


def show(name: str, result: dict[str, Any], table: str, page: Path = PAGE) -> None:
    """Keep the result and put its table, and when it was taken, onto the page."""
    keep(name, result)
    put(name, f"{table}\nTaken at {when(result['taken'])}.\n", page)


def rows(head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """A table in Markdown."""
    written = [head, ["---"] * len(head), *lines]
    return "".join(f"| {' | '.join(line)} |\n" for line in written)


def spread(values: Sequence[float], digits: int = 0) -> str:
    """The median and the range."""
    low, middle, high = min(values), statistics.median(values), max(values)
    return f"{middle:,.{digits}f} ({low:,.{digits}f} - {high:,.{digits}f})"
