"""From the name of a figure to its picture and its verdict: plan, run what is missing, draw, judge."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from shlex import quote
from typing import Any

from rich.console import Console
from rich.table import Table

from fedgm.errors import ConfigError, FedGMError
from fedgm.figures.style import save_all
from fedgm.files import write_json
from fedgm.results import archive
from fedgm.results.judged_run import TEST, JudgedRun
from fedgm.results.record import RunRecord
from fedgm.study import evidence, judge, longer
from fedgm.study.figure import choose
from fedgm.study.figure_picture import picture
from fedgm.study.figure_runs import PlannedFigure, as_sweep, make
from fedgm.study.points import Job
from fedgm.study.sweep import Sweep, default_workers
from fedgm.study.sweep_progress import Key, Results, index

COLOURS = {"holds": "green", "does not hold": "red", "undecided": "yellow"}


@dataclass
class Reproduction:
    """The figures that were asked for, and what is known of their runs."""

    planned: list[PlannedFigure]
    overrides: tuple[str, ...]
    output_dir: str
    console: Console
    stored: dict[Key, RunRecord] | None = None  # None: run folders below output_dir
    known: dict[str, PlannedFigure] = field(default_factory=dict[str, PlannedFigure])
    seeds: int | Sequence[int] = 3
    elsewhere: dict[Key, RunRecord] = field(default_factory=dict[Key, RunRecord])
    begun: dict[Key, RunRecord] = field(default_factory=dict[Key, RunRecord])
    wholes: dict[Key, RunRecord] = field(default_factory=dict[Key, RunRecord])

    def __post_init__(self) -> None:
        for one in self.planned:
            self._add_parts(one)
        self.known |= {one.figure.experiment: one for one in self.planned}
        plan = as_sweep(self.planned, self.overrides, self.output_dir)
        self.sweep = Sweep(Results(plan, self.elsewhere), self.console)
        self.grids = cache(self._grid)

    def lookup(self, job: Job) -> RunRecord | None:
        """The record of a job, from archives alone where those were asked for."""
        return self.stored.get(job.key) if self.stored is not None else self.sweep.results.of(job)

    def _add_parts(self, one: PlannedFigure) -> None:
        """What a longer run holds counts as done; ``wholes`` remembers which run that is."""
        known = self.elsewhere if self.stored is None else self.stored
        whole_runs = {key: run for key, run in (self.begun | known).items() if key not in self.wholes}
        for key, (part, whole) in longer.parts(one, whole_runs).items():
            known[key], self.wholes[key] = part, whole

    def _grid(self, grid: str, judged: str) -> list[JudgedRun | None]:
        """Runs of the sweep behind a winner; none where the command's overrides do not fit its file."""
        try:
            known = None if self.stored is None else self.stored.values()
            return evidence.grid_runs(grid, self.overrides, self.lookup, self.output_dir, judged, known)
        except ConfigError:
            return []

    @property
    def missing(self) -> list[Job]:
        """Jobs that are not done."""
        found = [(job, self.lookup(job)) for job in self.sweep.plan.jobs]
        return [job for job, run in found if run is None or not run.is_done]

    def show_plan(self, workers: int, timed: bool = True) -> None:
        """Figures, lines, seeds and rounds; how many runs are missing, and how long they will take."""
        table = Table(title=f"profile {self.sweep.plan.profile}", header_style="bold")
        for name in ("figure", "line", "seeds", "rounds", "done"):
            table.add_column(name, justify="right" if name in ("rounds", "done") else "left")
        for one in self.planned:
            for line in one.figure.lines:
                jobs = [one.jobs[line.key, seed] for seed in one.seeds]
                done = sum((run := self.lookup(job)) is not None and run.is_done for job in jobs)
                seeds = ", ".join(map(str, one.seeds))
                table.add_row(one.figure.name, line.name, seeds, str(jobs[0].rounds), f"{done}/{len(jobs)}")
        self.console.print(table)
        for one in self.planned:
            if names := judge.not_winners(one):
                note = f"{one.figure.name}: not at values that a grid has chosen: {', '.join(names)}"
                how = "fedgm sweep FILE --best --write chooses"
                self.console.print(f"  {note}; {how}", style="yellow", highlight=False, soft_wrap=True)
        left = len(self.missing)
        if left and timed:
            hours = self.sweep.expected_hours(workers)
            self.console.print(
                f"{left} runs to do, about {hours:.2f} hours with {workers} workers", highlight=False
            )

    def run(self, workers: int) -> dict[tuple[str, int], str]:
        """Run what is missing; returns what failed."""
        return self.sweep.run(workers) if self.missing else {}

    def conclude(self, out: Path) -> list[dict[str, Any]]:
        """Draw and judge every figure; the verdicts, as verdict.json has them."""
        return [self._conclude(one, out) for one in self.planned]

    def _conclude(self, one: PlannedFigure, out: Path) -> dict[str, Any]:
        others = [self._companion(name) for name in judge.companions(one)]
        known = evidence.gather(one, others, self.lookup)
        lines = judge.lines_of(one, known)
        verdict: dict[str, Any] = {**self._facts(one), "lines": lines, "speed": judge.speed_of(one, known)}
        for line in verdict["lines"] if one.figure.has_winners else ():
            line["seed 0"] = self._chosen(one, line["key"], known.measure.column(TEST))
        verdict["claims"] = judge.judge(one, known, partial(self.grids, judged=known.measure.column(TEST)))
        verdict["missing"] = judge.missing(known, one)
        folder = out / one.figure.name
        paths: list[Path] = []
        if any(self.lookup(job) is not None for job in one.jobs.values()):
            drawn = picture(one, self.lookup, verdict["lines"])
            paths = save_all(drawn, folder / one.figure.name)
        folder.mkdir(parents=True, exist_ok=True)
        write_json(folder / "verdict.json", verdict)
        self._say(one, verdict, [*paths, folder / "verdict.json"])
        return json.loads((folder / "verdict.json").read_text())  # null for ends that are not finite

    def _companion(self, experiment: str) -> PlannedFigure:
        """Another figure whose lines a claim needs: looked up, not run."""
        if experiment not in self.known:
            self.known[experiment] = make(experiment, self.seeds, self.overrides, self.output_dir)
            self._add_parts(self.known[experiment])
        return self.known[experiment]

    def _facts(self, one: PlannedFigure) -> dict[str, Any]:
        """What a verdict is about."""
        first = next(iter(one.configs.values()))
        runs = [run for job in one.jobs.values() if (run := self.lookup(job)) is not None]
        steps = [float(run.facts["local_steps"]) for run in runs if run.facts.get("local_steps")]
        given = [word for word in self.overrides if word != "profile=small"]
        words = [
            quote(word) if word.startswith("hydra.") else word for word in given
        ]  # a path may have blanks
        if self.seeds != 3:
            listed = (
                [self.seeds] if isinstance(self.seeds, int) else [*self.seeds, ""][: max(2, len(self.seeds))]
            )
            words.append(f"--seeds {','.join(map(str, listed))}")
        return {
            "figure": one.figure.number or one.figure.experiment,
            "name": one.figure.name,
            "heading": one.figure.heading,
            "metric": evidence.metric_of(one, self.lookup)._asdict(),
            "title": one.figure.title,
            "experiment": one.figure.experiment,
            "command": " ".join(["fedgm reproduce", one.figure.name, *words]),
            "profile": str(first.profile.name),
            "rounds": int(first.rounds),
            "seeds": list(one.seeds),
            "judged on": list(one.judging),
            "local steps": [min(steps), max(steps)] if steps else None,
            "beginnings": self._beginnings(one),
            "commits": sorted({str(run.facts.get("commit")) for run in runs}),
        }

    def _beginnings(self, one: PlannedFigure) -> dict[str, dict[int, int]]:
        """Lines of which runs begin longer ones: seed -> rounds of the longer run."""
        found: dict[str, dict[int, int]] = {}
        for (line, seed), job in one.jobs.items():
            if (whole := self._whole(self.lookup(job))) is not None:
                found.setdefault(line, {})[seed] = int(whole.facts["rounds"])
        return found

    def _whole(self, run: RunRecord | None) -> RunRecord | None:
        """The longer run that this one is read from, if it is."""
        known = self.elsewhere if self.stored is None else self.stored
        return self.wholes.get(run.key) if run is not None and run is known.get(run.key) else None

    def _chosen(self, one: PlannedFigure, key: str, column: str) -> float | None:
        """A winner's score on the seed that chose it, which enters no interval."""
        found = self.lookup(one.choosing(key))
        return found.mean(column) if found is not None and found.is_done else None

    def _say(self, one: PlannedFigure, verdict: dict[str, Any], paths: list[Path]) -> None:
        """Verdicts and files, in a few lines."""
        for claim in verdict["claims"]:
            colour = COLOURS[claim["verdict"]]
            said = f"[bold]{claim['claim']}[/] [{colour}]{claim['verdict']}[/]: {claim['text']}"
            self.console.print(f"{one.figure.name} {said}", highlight=False, soft_wrap=True)
        for path in paths:
            self.console.print(f"  {path}", highlight=False, soft_wrap=True)

    def export(self, path: Path) -> int:
        """The runs of the figures that are done, a part as the run that it begins; how many there were."""
        found = [self.lookup(job) for job in self.sweep.plan.jobs]
        done = [run for run in found if run is not None and run.is_done]
        whole = archive.once(self._whole(run) or run for run in done)
        archive.write(path, whole)
        return len(whole)


def load(
    figure: str,
    overrides: Sequence[str] = (),
    seeds: int | Sequence[int] = 3,
    output_dir: str | Path = "outputs",
    stored: str | Path | None = None,
    console: Console | None = None,
    known: Sequence[str | Path] = (),
) -> Reproduction:
    """Plan the figures; with ``stored``, only results of that file or folder count.

    Results in ``known`` count as done beside those of run folders.
    """
    alone = index(evidence.stored_records(Path(stored))) if stored is not None else None
    begun = index(run for place in known for run in evidence.stored_records(Path(place)))
    elsewhere = {key: run for key, run in begun.items() if run.is_done}  # others have no checkpoint here
    planned = [make(experiment, seeds, overrides, str(output_dir)) for experiment in choose(figure)]
    return Reproduction(
        planned, tuple(overrides), str(output_dir), console or Console(), alone, seeds=seeds,
        elsewhere=elsewhere, begun=begun,
    )  # fmt: skip


def reproduce(
    figure: str = "all",
    overrides: Sequence[str] = (),
    *,
    seeds: int | Sequence[int] = 3,
    workers: int | None = None,
    output_dir: str | Path = "outputs",
    stored: str | Path | None = None,
    out: str | Path | None = None,
    console: Console | None = None,
    known: Sequence[str | Path] = (),
) -> list[dict[str, Any]]:
    """Do what ``fedgm reproduce FIGURE`` does; returns what each verdict.json holds."""
    work = load(figure, overrides, seeds, output_dir, stored, console, known)
    count = workers or default_workers()
    work.show_plan(count, timed=stored is None)
    failed = work.run(count) if stored is None else {}
    verdicts = work.conclude(Path(out) if out else folder_of(work))
    if failed:
        reasons = "; ".join(sorted(set(failed.values())))
        raise FedGMError(f"{len(failed)} runs failed ({reasons}); the same command tries them again")
    return verdicts


def folder_of(work: Reproduction) -> Path:
    """``<output_dir>/figures/<profile>[,overrides]``."""
    words = [word for word in work.overrides if not word.startswith(("profile=", "hydra."))]
    name = ",".join([work.sweep.plan.profile, *words]).replace("/", "-")
    return Path(work.output_dir) / "figures" / name
