"""Figures with their runs: what is missing, the picture and the verdict of each."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from shlex import quote
from typing import Any

from rich.table import Table
from rich.text import Text

from fedgm.errors import ConfigError
from fedgm.figures.style import save_all
from fedgm.files import write_json
from fedgm.results.run import Key, Run
from fedgm.screen import Screen
from fedgm.study import evidence, judge, longer
from fedgm.study.figure_picture import picture
from fedgm.study.figure_runs import PlannedFigure, as_sweep, make
from fedgm.study.hours import in_words
from fedgm.study.points import Job
from fedgm.study.sweep import Sweep
from fedgm.study.sweep_progress import Results
from fedgm.tasks.metric import TEST, Metric

COLOURS = {"holds": "green", "does not hold": "red", "undecided": "yellow"}


@dataclass
class Reproduction:
    """The figures that were asked for, with the runs that are stored."""

    planned: list[PlannedFigure]
    overrides: tuple[str, ...]
    output_dir: str
    console: Screen
    stored: dict[Key, Run] | None = None  # None: run folders below output_dir
    by_name: dict[str, PlannedFigure] = field(default_factory=dict[str, PlannedFigure])
    seeds: int | Sequence[int] | None = None  # None: what each figure's yaml says
    elsewhere: dict[Key, Run] = field(default_factory=dict[Key, Run])
    begun: dict[Key, Run] = field(default_factory=dict[Key, Run])
    wholes: dict[Key, Run] = field(default_factory=dict[Key, Run])

    def __post_init__(self) -> None:
        for one in self.planned:
            self._add_parts(one)
        self.by_name |= {one.figure.experiment: one for one in self.planned}
        plan = as_sweep(self.planned, self.overrides, self.output_dir)
        self.sweep = Sweep(Results(plan, self.elsewhere), self.console)
        self.grids = cache(self._grid)

    def lookup(self, job: Job) -> Run | None:
        """The run of a job, from stored results alone where those were asked for."""
        return self.stored.get(job.key) if self.stored is not None else self.sweep.results.of(job)

    def _add_parts(self, one: PlannedFigure) -> None:
        """What a longer run holds counts as done; ``wholes`` remembers which run that is."""
        runs = self.elsewhere if self.stored is None else self.stored
        whole_runs = {key: run for key, run in (self.begun | runs).items() if key not in self.wholes}
        for key, (part, whole) in longer.parts(one, whole_runs).items():
            runs[key], self.wholes[key] = part, whole

    def _grid(self, grid: str) -> list[Run | None]:
        """Runs of the sweep behind a winner; none where the command's overrides do not fit its file."""
        try:
            stored = None if self.stored is None else self.stored.values()
            return evidence.grid_runs(grid, self.overrides, self.lookup, self.output_dir, stored)
        except ConfigError:
            return []

    @property
    def missing(self) -> list[Job]:
        """Jobs that are not done."""
        runs = [(job, self.lookup(job)) for job in self.sweep.plan.jobs]
        return [job for job, run in runs if run is None or not run.is_done]

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
                self.console.say(f"  {note}; {how}", style="yellow")
        left = len(self.missing)
        if left and timed:
            hours = self.sweep.expected_hours(workers)
            self.console.print(f"{left} runs to do, about {in_words(hours)} with {workers} workers")

    def run(self, workers: int) -> dict[tuple[str, int], str]:
        """Run what is missing; returns what failed."""
        return self.sweep.run(workers) if self.missing else {}

    def conclude(self, out: Path) -> list[dict[str, Any]]:
        """Draw and judge every figure; the verdicts, as verdict.json has them."""
        judged = [self._judge(one) for one in self.planned]
        pooled = judge.add_pooled([part for _, parts in judged for part in parts], self._run_of)
        verdicts: list[dict[str, Any]] = []
        for one, (verdict, _) in zip(self.planned, judged, strict=True):
            verdict["pooled"] = pooled if verdict["claims"] else {}
            verdicts.append(self._write(one.judged_now(self.lookup), verdict, out / one.figure.name))
        return verdicts

    def _judge(self, planned: PlannedFigure) -> tuple[dict[str, Any], list[judge.JudgedPart]]:
        """What verdict.json says but for the pooled intervals, which need the parts of all figures."""
        one = planned.judged_now(self.lookup)
        companions = [self._companion(name) for name in judge.companions(one)]
        gathered = evidence.gather(planned, companions, self.lookup)
        lines = judge.lines_of(one, gathered)
        for line in lines if one.figure.has_winners else ():
            line["seed 0"] = self._chosen(one, line["key"], gathered.metric.column(TEST))
        claims, parts = judge.judge(one, gathered, self.grids)
        absent = gathered.on(planned.judging).absent(*(line.key for line in planned.figure.lines))
        verdict = {
            **self._facts(one, gathered.metric),
            "missing seeds": [seed for seed in planned.seeds if seed not in one.seeds],
            "lines": lines,
            "speed": judge.speed_of(one, gathered),
            "claims": claims,
            "missing": absent,
        }
        return verdict, parts

    def _write(self, one: PlannedFigure, verdict: dict[str, Any], folder: Path) -> dict[str, Any]:
        """The picture, and verdict.json as it is read back."""
        paths: list[Path] = []
        if any(self.lookup(job) is not None for job in one.jobs.values()):
            paths = save_all(picture(one, self.lookup, verdict["lines"]), folder / one.figure.name)
        folder.mkdir(parents=True, exist_ok=True)
        write_json(folder / "verdict.json", verdict)
        self._say(one, verdict, [*paths, folder / "verdict.json"])
        return json.loads((folder / "verdict.json").read_text())  # null for ends that are not finite

    def _companion(self, experiment: str) -> PlannedFigure:
        """Another figure whose lines a claim needs: looked up, not run."""
        if experiment not in self.by_name:
            self.by_name[experiment] = make(experiment, self.seeds, self.overrides, self.output_dir)
            self._add_parts(self.by_name[experiment])
        return self.by_name[experiment]

    def _facts(self, one: PlannedFigure, metric: Metric) -> dict[str, Any]:
        """What a verdict is about."""
        first = next(iter(one.configs.values()))
        jobs = [job for (_, seed), job in one.jobs.items() if seed in one.seeds]
        runs = [run for job in jobs if (run := self.lookup(job)) is not None]
        steps = [float(run.facts["local_steps"]) for run in runs if run.facts.get("local_steps")]
        return {
            "figure": one.figure.number or one.figure.experiment,
            "name": one.figure.name,
            "heading": one.figure.heading,
            "metric": metric._asdict(),
            "title": one.figure.title,
            "experiment": one.figure.experiment,
            "command": " ".join(["fedgm reproduce", one.figure.name, *self._words()]),
            "profile": str(first.profile.name),
            "rounds": int(first.rounds),
            "seeds": list(one.seeds),
            "judged on": list(one.judging),
            "local steps": [min(steps), max(steps)] if steps else None,
            "beginnings": self._beginnings(one),
            "commits": sorted({str(run.facts.get("commit")) for run in runs}),
        }

    def _words(self) -> list[str]:
        """What was typed behind the figure's name; a path may have blanks."""
        words = [word for word in self.overrides if word != "profile=small"]
        words = [quote(word) if word.startswith("hydra.") else word for word in words]
        if self.seeds is None:
            return words
        seeds = [self.seeds] if isinstance(self.seeds, int) else [*self.seeds, ""][: max(2, len(self.seeds))]
        return [*words, f"--seeds {','.join(map(str, seeds))}"]

    def _beginnings(self, one: PlannedFigure) -> dict[str, dict[int, int]]:
        """Lines of which runs begin longer ones: seed -> rounds of the longer run."""
        begun: dict[str, dict[int, int]] = {}
        for (line, seed), job in one.jobs.items():
            if seed in one.seeds and (whole := self._whole(self.lookup(job))) is not None:
                begun.setdefault(line, {})[seed] = whole.rounds
        return begun

    def _whole(self, run: Run | None) -> Run | None:
        """The longer run that this one is read from, if it is."""
        runs = self.elsewhere if self.stored is None else self.stored
        return self.wholes.get(run.key) if run is not None and run is runs.get(run.key) else None

    def _run_of(self, key: Key) -> Key:
        """The run that a key's rows were trained in: itself, or the longer one that it begins."""
        return self.wholes[key].key if key in self.wholes else key

    def _chosen(self, one: PlannedFigure, key: str, column: str) -> float | None:
        """A winner's score on the seed that chose it, which enters no interval."""
        run = self.lookup(one.choosing(key))
        return run.score(column) if run is not None and run.is_done else None

    def _say(self, one: PlannedFigure, verdict: dict[str, Any], paths: list[Path]) -> None:
        """Verdicts and files, in a few lines."""
        for claim in verdict["claims"]:
            name, words = (claim["claim"], "bold"), (claim["verdict"], COLOURS[claim["verdict"]])
            self.console.say(Text.assemble(f"{one.figure.name} ", name, " ", words, f": {claim['text']}"))
        for path in paths:
            self.console.say(f"  {path}")

    @property
    def done(self) -> list[Run]:
        """The runs of the figures that are done, a part as the run that it begins."""
        runs = [self.lookup(job) for job in self.sweep.plan.jobs]
        return [self._whole(run) or run for run in runs if run is not None and run.is_done]
