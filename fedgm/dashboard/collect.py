"""The runs of a page, and what is not on it."""

import os
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from fedgm.results.find import READ, Walker
from fedgm.results.run import Key, Run, Status, once


@dataclass
class Collection:
    """The runs, sorted, and what was left out: names by reason."""

    runs: list[Run]
    left_out: dict[str, list[str]]


class Collector:
    """Reads again only what has changed since the last time, so that a page can follow running jobs."""

    def __init__(self, paths: Iterable[Path]) -> None:
        self.walker = Walker(paths, all_rows=True)

    def collect(self) -> Collection:
        """All runs; of two with the same hash and seed the one that went further."""
        named: list[tuple[str, Run]] = []
        left_out: dict[str, list[str]] = {}
        for place, path, run in self.walker.walk():
            name = _relative(path, place)
            if isinstance(run, str):
                left_out.setdefault(run, []).append(name)
            elif odd := _odd_file(run.folder):
                reason = f"{odd} is not a regular file; links are not followed"
                left_out.setdefault(reason, []).append(name)
            elif run.status == Status.DAMAGED or (run.is_done and not run.evaluations and not run.rows):
                left_out.setdefault("its rows are not the ones that the run wrote", []).append(name)
            else:
                named.append((name, run))
        kept: dict[Key, Run] = once(run for _, run in named)
        if twice := [name for name, run in named if kept[run.key] is not run]:
            left_out["the same run (hash and seed) is already on the page"] = twice
        return Collection(sorted(kept.values(), key=_order), left_out)


def is_plain(path: Path) -> bool:
    """Whether it is a regular file itself: not a link to one, a pipe or a device."""
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except OSError:
        return False


def _odd_file(folder: Path | None) -> str | None:
    """A file that would put something on the page that is not in the run folder."""
    paths = [folder / name for name in READ] if folder is not None else []
    return next((path.name for path in paths if os.path.lexists(path) and not is_plain(path)), None)


def _order(run: Run) -> tuple[str, str, str, int]:
    return str(run.facts.get("name")), str(run.facts.get("algorithm")), *run.key


def _relative(path: Path, start: Path) -> str:
    """The path as the user would type it."""
    return str(start) if path == start else f"{start.name or start}/{path.relative_to(start)}"
