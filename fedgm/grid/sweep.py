"""A sweep from file to result: plan it, check every point, run what is missing, say who won."""

import csv
import os
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from io import StringIO
from pathlib import Path
from statistics import median
from typing import Any

from rich.console import Console

from fedgm.config import conf_dir, validate
from fedgm.errors import require
from fedgm.files import write_atomically
from fedgm.grid import file, plan
from fedgm.grid.display import Display, as_rows, closing
from fedgm.grid.plan import SweepPlan
from fedgm.grid.progress import Results, index
from fedgm.grid.ranking import require_winner, write_best
from fedgm.grid.runner import Runner
from fedgm.track import archive, rows


@dataclass(frozen=True)
class Sweep:
    """A sweep file with what the command line adds, and what is known of its runs."""

    results: Results
    console: Console

    @property
    def plan(self) -> SweepPlan:
        """Its runs."""
        return self.results.plan

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
        from fedgm.job import assemble, launch

        del launch, curves
        threads = torch.get_num_threads()
        torch.set_num_threads(1)  # what the runs are forked with
        for cfg in self.plan.configs:
            config = validate(cfg)
            assemble.build_server(config)
            self._require_measured(assemble.scoreboard_of(config).columns)
        torch.set_num_threads(threads)

    def _require_measured(self, columns: Sequence[str]) -> None:
        """Refuse a metric that no run will have."""
        file = self.plan.file
        near = (get_close_matches(file.metric, columns, n=1) or list(columns)[-1:])[0]
        key, hint = f"{file.path.name}: metric.name", f"metric: {{name: {near}, goal: {file.goal}}}"
        require(file.metric in columns, key, file.metric, f"one of {', '.join(columns)}", hint)

    def status(self) -> None:
        """How far it is, on the screen alone."""
        closing(self.console, self.results, {})

    def conclude(self, failed: dict[tuple[str, int], str], send: bool = True) -> None:
        """Table and pictures, in the sweep's folder, on the screen and (where runs go there) in W&B."""
        closing(self.console, self.results, failed)
        from fedgm.grid import pictures, wandb_pictures

        drawn = pictures.draw(self.results)
        for path in [*write_table(self.results), *drawn]:
            self.console.print(f"  {path}", highlight=False, soft_wrap=True)
        if send and (note := wandb_pictures.send(self.plan, drawn)):
            self.console.print(f"  {note}", highlight=False, soft_wrap=True)

    def write_winner(self) -> Path:
        """Keep the winner in ``conf/best``."""
        path = conf_dir() / "best" / f"{self.plan.profile}.yaml"
        write_best(path, self.plan, require_winner(self.results))
        return path

    def export(self, path: Path) -> int:
        """Store the rows of all runs that are done or paused in one compact file; how many there were.

        Runs that a rung has stopped are among them: maps and budgets count them.
        """
        records = [self.results.of(job) for job in self.plan.jobs]
        known = [found for found in records if found is not None and found.evaluations]
        measured = [found for found in known if found.is_done or found.status == "paused"]
        archive.write(path, measured)
        return len(measured)

    def expected_hours(self, workers: int) -> float:
        """From the measured rounds of its runs; where there are none, from a first round run now."""
        measured: dict[str, list[float]] = {}
        left: dict[str, int] = {}
        for job, cfg in zip(self.plan.jobs, self.plan.configs, strict=True):
            model = str(cfg.model.name)  # a round of another model takes another time
            measured.setdefault(model, []).extend(_seconds(job.folder))
            left[model] = left.get(model, 0) + job.rounds - self.results.rounds(job)
        every = [s for seconds in measured.values() for s in seconds] or [self._first_round()]
        return (
            sum(median(measured[model] or every) * rounds for model, rounds in left.items()) / workers / 3600
        )

    def _first_round(self) -> float:
        """Seconds of a round, evaluation included, run in a folder that is thrown away."""
        from tempfile import TemporaryDirectory

        from fedgm.config import compose
        from fedgm.job.launch import execute

        with TemporaryDirectory() as folder:
            words = [
                *self.plan.jobs[0].overrides,
                f"output_dir={folder}",
                "stop_after=2",
                "track.mode=disabled",
            ]
            started = time.perf_counter()
            result = execute(compose(words), words, Console(quiet=True), alone=False)
            measured = _seconds(result.folder)
        return measured[-1] if measured else time.perf_counter() - started


def load(
    path: str | Path,
    overrides: Sequence[str] = (),
    seeds: Sequence[int] = (0,),
    output_dir: str | Path = "outputs",
    stored: Iterable[str | Path] = (),
    console: Console | None = None,
) -> Sweep:
    """Read and plan a sweep; runs in the files or folders of ``stored`` count as done."""
    planned = plan.make(file.read(Path(path)), overrides, seeds, str(output_dir))
    known = [record for place in stored for record in archive.read(Path(place))]
    return Sweep(Results(planned, index(known)), console or Console())


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


def _seconds(folder: Path) -> list[float]:
    """Seconds of each recorded round, evaluations spread over the rounds between them."""
    own = rows.read(folder / "metrics.jsonl")
    if not own:
        return []
    evaluation = sum(row["time/eval"] or 0.0 for row in own) / len(own)
    return [(row["time/round"] or 0.0) + evaluation for row in own]
