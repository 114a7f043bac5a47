"""Hydra's multirun where a job that fails does not stop the others, and an experiment names its own lines.

Hydra takes sweepers from the namespace package ``hydra_plugins`` alone, hence this place.
"""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, cast

from hydra._internal.core_plugins.basic_sweeper import BasicSweeper
from hydra.core.config_store import ConfigStore
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from omegaconf import open_dict, read_write
from rich.table import Table
from rich.text import Text

from fedgm.config import refusal
from fedgm.config.refusals import ERRORS
from fedgm.errors import RefusedError
from fedgm.plain import message, plain
from fedgm.screen import Screen
from fedgm.starting import ready

GOOD = ("finished", "diverged", "paused")


@dataclass
class TolerantSweeperConf:
    """``hydra/sweeper=fedgm``, the default of this project."""

    _target_: str = "hydra_plugins.fedgm_multirun.TolerantSweeper"
    max_batch_size: int | None = None
    params: dict[str, str] = field(default_factory=dict[str, str])


ConfigStore.instance().store(group="hydra/sweeper", name="fedgm", node=TolerantSweeperConf, provider="fedgm")


class TolerantSweeper(BasicSweeper):
    """Starts nothing where a job cannot work, else runs all; ends with a table, and code 1 if any failed."""

    def __init__(self, max_batch_size: int | None, params: dict[str, str]) -> None:
        super().__init__(max_batch_size, cast(Any, params))

    def split_arguments(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, overrides: list[Override], max_batch_size: int | None
    ) -> list[list[list[str]]]:
        """Every line times every combination of the command line, whose values win; no job twice."""
        assert self.hydra_context is not None
        parser = OverridesParser.create(config_loader=self.hydra_context.config_loader)
        jobs: list[list[str]] = []
        for line in self._lines() or [""]:
            fixed = parser.parse_overrides(line.split())
            [combinations] = BasicSweeper.split_arguments([*fixed, *overrides], None)
            jobs += [job for job in combinations if job not in jobs]
        self._require_working(jobs)
        ready()  # it has imported what jobs need: Ctrl-C is theirs from now on
        return list(BasicSweeper.split_overrides_to_chunks(jobs, max_batch_size))

    def _lines(self) -> list[str]:
        """Overrides of each line of the experiment's figure, blank-separated."""
        figure = (self.config or {}).get("figure") or {}
        return [str(line["overrides"]) for line in figure.get("lines") or []]

    def _require_working(self, jobs: Sequence[list[str]]) -> None:
        """Refuse all where one cannot work: otherwise that shows after hours, when its turn comes."""
        distinct, refused = _distinct(jobs), dict[str, list[str]]()
        for job in jobs:
            if reason := self._reason(job):
                refused.setdefault(reason, []).append(distinct(job))
        if refused:
            count = sum(map(len, refused.values()))
            print(f"error: {count} of {len(jobs)} jobs cannot work, so none is started", file=sys.stderr)
            for reason, names in refused.items():
                more = f" and {len(names) - 1} more" if len(names) > 1 else ""
                told = reason if reason.startswith(f"{names[0]}: ") else f"{names[0]}{more}: {reason}"
                print(f"  {message(told)}", file=sys.stderr)
            raise SystemExit(2)

    def _reason(self, job: list[str]) -> str | None:
        """Why a job cannot work, as far as its configuration shows."""
        from fedgm.running.start import require_working

        assert self.config is not None
        assert self.hydra_context is not None
        loader = self.hydra_context.config_loader
        try:
            cfg = loader.load_sweep_config(master_config=self.config, sweep_overrides=job)
        except ERRORS as error:
            return str(refusal(error, job))
        with read_write(cfg), open_dict(cfg):
            del cfg["hydra"]
        try:
            require_working(cfg, job)
        except RefusedError as error:
            return str(error)
        return None

    def validate_batch_is_legal(self, batch: Sequence[Sequence[str]]) -> None:
        """All batches have been checked before the first."""

    def sweep(self, arguments: list[str]) -> Any:
        """Run all legal jobs, then print how each of them ended."""
        returns = super().sweep(arguments)
        jobs = [job for batch in returns for job in batch]
        distinct = _distinct([job.overrides or [] for job in jobs])
        outcomes = [(distinct(job.overrides or []), cast(dict[str, Any], job.return_value)) for job in jobs]
        console = Screen()
        console.print(_table(outcomes))
        for overrides, outcome in outcomes:
            if reason := outcome.get("reason"):
                console.say(Text(outcome["status"], "bold red"), message(f"{overrides}: {reason}"))
        if picture := _compare(outcomes):
            console.say(f"  {picture}")
        if code := _code([outcome["status"] for _, outcome in outcomes]):
            raise SystemExit(code)
        return returns


def _code(statuses: list[str]) -> int:
    """0: every job ended well; 2: all others were refused; 1: some failed, or another process has them."""
    ends = set(statuses) - set(GOOD)
    return 0 if not ends else 2 if ends == {"refused"} else 1


def _compare(outcomes: list[tuple[str, dict[str, Any]]]) -> Path | None:
    """Draw all runs that have rows into one picture; seeds of a line become a band.

    The folder is named after the runs, so another multirun does not draw over it, and the same one does.
    """
    good = [outcome for _, outcome in outcomes if outcome["status"] in GOOD and outcome["shown"] != "-"]
    if len(good) < 2:
        return None
    from fedgm.figures.style import save
    from fedgm.results.find import find
    from fedgm.results.labels import lines
    from fedgm.study.compare import picture

    folders = [Path(outcome["folder"]) for outcome in good]
    names = sorted("/".join(folder.parts[-3:]) for folder in folders)
    home = folders[0].parent.parent / f"multirun-{sha256(' '.join(names).encode()).hexdigest()[:8]}"
    home.mkdir(exist_ok=True)
    return save(picture(lines(find(folders))), home / "compare.png")


def _distinct(jobs: Sequence[Sequence[str]]) -> Callable[[Sequence[str]], str]:
    """What tells a job from the others: its overrides without those that all have."""
    shared = set(jobs[0]).intersection(*jobs) if len(jobs) > 1 else set[str]()
    return lambda overrides: " ".join(word for word in overrides if word not in shared)


def _table(outcomes: list[tuple[str, dict[str, Any]]]) -> Table:
    table = Table(header_style="bold", title="multirun")
    headline = next((o["metric"] for _, o in outcomes if "metric" in o), "result")
    for name in ("job", "status", headline, "folder"):
        table.add_column(name, overflow="fold", justify="right" if name == headline else "left")
    for overrides, outcome in outcomes:
        where = "/".join(Path(outcome.get("folder", "-")).parts[-2:])
        table.add_row(plain(overrides), outcome["status"], outcome.get("shown", "-"), where)
    return table
