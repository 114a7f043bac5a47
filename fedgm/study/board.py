"""A leaderboard from file to standings: tune every rule on one seed, judge the chosen points on others.

It runs through the sweep's runner: the same folders, locks, resuming and stored results.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from omegaconf import DictConfig

from fedgm.errors import require_fits
from fedgm.results import archive
from fedgm.results.run import Key, Run, once
from fedgm.screen import Screen
from fedgm.study import board_file, points
from fedgm.study.board_file import Board, Rule
from fedgm.study.points import Job, SweepPlan
from fedgm.study.sweep import Sweep, stored_runs
from fedgm.study.sweep_file import SweepFile
from fedgm.study.sweep_progress import Results
from fedgm.study.winners import Ranked, ranking


@dataclass
class Leaderboard:
    """A board with what the command line adds, and the runs that are there."""

    board: Board
    extra: tuple[str, ...]
    output_dir: str
    console: Screen
    stored: dict[Key, Run] = field(default_factory=dict[Key, Run])

    @cached_property
    def tuning(self) -> dict[str, Results]:
        """The points of every rule on the seed that tunes."""
        return {rule.key: self._results_of(rule, None, (self.board.tune,)) for rule in self.board.rules}

    def winner(self, rule: Rule) -> Ranked | None:
        """The best of a rule's points, once all of them are done; None before, or where none finished."""
        results = self.tuning[rule.key]
        runs = [results.of(job) for job in results.plan.jobs]
        is_tuned = all(run is not None and run.is_done for run in runs)
        return next(iter(ranking(results)), None) if is_tuned else None

    def judging(self) -> dict[str, Results]:
        """The chosen point of every rule that has one on the seeds that judge."""
        return {
            rule.key: self._results_of(rule, winner, self.board.judge)
            for rule in self.board.rules
            if (winner := self.winner(rule)) is not None
        }

    def run(self, workers: int) -> dict[Key, str]:
        """Tune, then judge; runs that are there are not run again. Returns those that failed."""
        failed = self._run(self.tuning, "tuning", workers)
        return failed | self._run(self.judging(), "judging", workers)

    def export(self, path: Path) -> int:
        """Store the rows of all runs that are done in one compact file; how many there were."""
        runs = [run for run in self.runs() if run.is_done]
        archive.write(path, runs)
        return len(runs)

    def runs(self) -> list[Run]:
        """Every run of the board that is there, once."""
        plans = [*self.tuning.values(), *self.judging().values()]
        found = (results.of(job) for results in plans for job in results.plan.jobs)
        return list(once(run for run in found if run is not None).values())

    def _results_of(self, rule: Rule, winner: Ranked | None, seeds: Sequence[int]) -> Results:
        chosen = None if winner is None else [winner.job.values]
        file = self.board.sweep(rule, chosen)
        return Results(points.make(file, self.extra, seeds, self.output_dir), self.stored)

    def _run(self, parts: dict[str, Results], what: str, workers: int) -> dict[Key, str]:
        together = joined(parts.values(), f"{self.board.name}, {what}")
        if together is None:
            return {}
        missing = f"{len(together.jobs)} runs of {what} are missing and begin now; --show prints the table"
        self.console.say(f"{missing} without them")
        return Sweep(Results(together, self.stored), self.console).run(workers)


def joined(parts: Iterable[Results], name: str) -> SweepPlan | None:
    """What is missing of several sweeps as one sweep, each run once; None where nothing is.

    One runner and one live table serve all rules.
    """
    jobs: dict[Key, Job] = {}
    configs: dict[Key, DictConfig] = {}
    first: SweepPlan | None = None
    for results in parts:
        plan = results.plan
        for number, job in enumerate(plan.jobs):
            if results.is_through(job, job.rounds) or job.key in jobs:
                continue
            first = first or plan
            point = ", ".join(f"{key.rpartition('.')[2]} {value}" for key, value in job.values.items())
            jobs[job.key] = replace(job, point=len(jobs), values={"rule": f"{plan.file.name}, {point}"})
            configs[job.key] = plan.configs[number]
    if first is None:
        return None
    values = tuple(job.values for job in jobs.values())
    file = SweepFile(first.file.path, name, "grid", first.file.metric, first.file.goal, (), values, None)
    return replace(first, file=file, jobs=tuple(jobs.values()), configs=tuple(configs.values()))


def load(
    place: str | Path,
    overrides: Sequence[str] = (),
    output_dir: str | Path = "outputs",
    stored: Iterable[str | Path] = (),
    added: Iterable[Path] = (),
    only: Sequence[str] = (),
    console: Screen | None = None,
) -> Leaderboard:
    """Read a board and the rules that join it; runs in the files or folders of ``stored`` count as done."""
    board = board_file.read(place)
    for path in added:
        board = board.with_rules(path)
    _require_free(board, overrides)
    board = board.only(only) if only else board
    known = stored_runs(stored)
    return Leaderboard(board, tuple(overrides), str(output_dir), console or Screen(), known)


def _require_free(board: Board, overrides: Sequence[str]) -> None:
    """Refuse words for all rules that would undo what makes a rule that rule, or the board a board."""
    hint = "the command without it, or a board of your own"
    for key, value in map(board_file.pair_of, overrides):
        require_fits(key != "seed", key, value, "tune and judge of the board set it", "a board of your own")
        require_fits(key != "stop_after", key, value, "a board compares whole runs", hint)
        for rule in board.rules:
            for own, said in rule.sets.items():
                same = own == key or own.startswith(f"{key}.")
                require_fits(not same, key, value, f"{rule.key} of the board sets {own} ({said})", hint)
