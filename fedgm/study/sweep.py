"""A sweep from file to result: plan it, check every point, run what is missing, say who won."""

import csv
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

from fedgm.config import conf_dir, validate
from fedgm.errors import near, require
from fedgm.files import write_atomically
from fedgm.plain import plain
from fedgm.results import archive
from fedgm.results.find import find
from fedgm.results.index import Index
from fedgm.results.run import Key, Run, once
from fedgm.results.summary import WELL
from fedgm.screen import Screen
from fedgm.study import points, sweep_file
from fedgm.study.display import Display, as_rows, closing
from fedgm.study.hours import expected_hours
from fedgm.study.points import SweepPlan
from fedgm.study.runner import Runner
from fedgm.study.sweep_progress import Results
from fedgm.study.winners import no_winner, ranking, require_winner, write_best


@dataclass(frozen=True)
class Sweep:
    """A sweep file with what the command line adds, and the results of its runs."""

    results: Results
    console: Screen

    @property
    def plan(self) -> SweepPlan:
        """Its runs."""
        return self.results.plan

    @property
    def asks_for_wandb(self) -> bool:
        """Whether ``track.mode=online`` was typed: with a key alone, looking at results sends nothing."""
        return str(self.plan.configs[0].track.mode) == "online"

    def run(self, workers: int) -> dict[tuple[str, int], str]:
        """Run what is missing; returns the runs that failed, with the reason."""
        self._check()
        for job in self.plan.jobs:
            job.folder.parent.mkdir(parents=True, exist_ok=True)
        with Display(self.console, self.results) as display:
            runner = Runner(self.results, workers, display.show, display.report)
            runner.run()
        return runner.failed

    def _check(self) -> None:
        """Every point's parts, before the first run; imports what the runs will share."""
        import torch

        from fedgm.figures import curves
        from fedgm.running import one_run
        from fedgm.running.parts import build_parts
        from fedgm.running.trainer import require_trainer

        del one_run, curves
        threads = torch.get_num_threads()
        try:
            for cfg in self.plan.configs:
                torch.set_num_threads(1)  # what the runs are forked with; a trainer sets its own
                config = validate(cfg)
                self._require_measured(build_parts(config).board.columns)
                if torch.cuda.device_count() == 0:  # else a trainer would open the device, and forks lose it
                    require_trainer(config, 1)
        finally:
            torch.set_num_threads(threads)

    def _require_measured(self, columns: Sequence[str]) -> None:
        """Refuse a metric that no run will have."""
        asked = self.plan.file
        key, hint = (
            f"{asked.path.name}: metric.name",
            f"metric: {{name: {near(asked.metric, columns) or columns[-1]}, goal: {asked.goal}}}",
        )
        require(asked.metric in columns, key, asked.metric, f"one of {', '.join(columns)}", hint)

    def status(self) -> None:
        """How far it is, on the screen alone."""
        with Index(self.plan.folder) as index:
            closing(self.console, Results(self.plan, self.results.stored, index=index), {})

    def conclude(self, failed: dict[tuple[str, int], str], send: bool = True) -> None:
        """Table and pictures, in the sweep's folder, on the screen and (where runs go there) in W&B."""
        closing(self.console, self.results, failed)
        if not ranking(self.results):
            self.console.say(no_winner(self.results))
        from fedgm.study import sweep_pictures

        written = write_table(self.results)  # first: a picture that fails must not cost the table
        drawn = sweep_pictures.draw(self.results)
        for path in [*written, *drawn]:
            self.console.say(f"  {path}")
        if send and (note := sweep_pictures.send(self.plan, drawn)):
            self.console.say(f"  {plain(note)}")

    def write_winner(self) -> Path:
        """Keep the winner in ``conf/best``."""
        path = conf_dir() / "best" / f"{self.plan.profile}.yaml"
        write_best(path, self.plan, require_winner(self.results))
        return path

    def export(self, path: Path) -> int:
        """Store the rows of all runs that are done or paused in one compact file; how many there were.

        Runs that a rung has stopped are among them: maps and budgets count them.
        """
        runs = [run for job in self.plan.jobs if (run := self.results.of(job)) is not None]
        measured = [run for run in runs if run.evaluations and run.status in WELL]
        archive.write(path, measured)
        return len(measured)

    def expected_hours(self, workers: int) -> float:
        """From the measured rounds of its runs, or from first rounds that are run now."""
        return expected_hours(self.results, workers, self.console.say)


def load(
    path: str | Path,
    overrides: Sequence[str] = (),
    seeds: Sequence[int] = (0,),
    output_dir: str | Path = "outputs",
    stored: Iterable[str | Path] = (),
    console: Screen | None = None,
) -> Sweep:
    """Read and plan a sweep; runs in the files or folders of ``stored`` count as done."""
    planned = points.make(sweep_file.read(Path(path)), overrides, seeds, str(output_dir))
    return Sweep(Results(planned, stored_runs(stored)), console or Screen())


def stored_runs(places: Iterable[str | Path]) -> dict[Key, Run]:
    """Every run of files and folders of stored results, by its key; a place without any is an error."""
    return once(find(places))


def default_workers() -> int:
    """One run per core: runs side by side beat one run on all cores."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def write_table(results: Results) -> list[Path]:
    """points.csv in the sweep's folder."""
    lines: list[dict[str, Any]] = as_rows(results)
    folder = results.plan.folder
    folder.mkdir(parents=True, exist_ok=True)
    text = StringIO()
    writer = csv.DictWriter(text, list(lines[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(lines)
    write_atomically(folder / "points.csv", text.getvalue())
    return [folder / "points.csv"]
