"""The standings of a leaderboard: what each tuned rule reaches on other seeds, how fast, at what price."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean

from fedgm.results.curve import rounds_to, sign
from fedgm.results.interval import Interval, mean_interval
from fedgm.results.run import Run
from fedgm.study.board import Leaderboard
from fedgm.study.board_file import Board, Rule
from fedgm.study.winners import Ranked
from fedgm.tasks.metric import HELD_OUT, Metric


@dataclass(frozen=True)
class Standing:
    """A rule at its chosen point. Scores are in the metric's own unit, by judging seed."""

    rule: Rule
    winner: Ranked | None
    tuned: list[Run]  # its points that are done
    judged: dict[int, Run]  # by seed, those that are done
    column: str

    @property
    def scores(self) -> dict[int, float]:
        """Mean of the last ten evaluations; chance for a run that diverged, if there is such a level."""
        found = {seed: run.score(self.column) for seed, run in self.judged.items()}
        return {seed: score for seed, score in found.items() if score is not None}

    @property
    def diverged(self) -> list[int]:
        """Judging seeds on which it diverged."""
        return [seed for seed, run in self.judged.items() if run.is_divergent]

    @property
    def out(self) -> str:
        """Why it will have no score, however long it runs; empty where it has one or may get one."""
        if self.winner is None and len(self.tuned) == len(self.rule.points):
            return "no point of its tuning finished"
        lost = [seed for seed in self.diverged if seed not in self.scores]
        return f"diverged on seed {', '.join(map(str, lost))}" if lost else ""

    @property
    def interval(self) -> Interval | None:
        """Mean over the judging seeds with its 95 % interval."""
        return mean_interval(list(self.scores.values())) if self.scores else None

    def until(self, level: float, goal: str) -> list[int | None]:
        """The round of the first evaluation at the level, by seed."""
        runs = self.judged.values()
        return [None if run.is_divergent else rounds_to(*run.curve(self.column), level, goal) for run in runs]

    @property
    def megabytes(self) -> float | None:
        """Sent and received by all clients of a round, together: the mean of all measured rounds.

        Rounds differ where the number of clients does, or what a client sends.
        """
        rows = [row for run in self.judged.values() for row in run.evaluations if row.get("round")]
        sums = [(row.get("bytes/up") or 0) + (row.get("bytes/down") or 0) for row in rows]
        return mean(sums) / 1e6 if sums else None

    def spread(self, end: str) -> float | None:
        """Mean over seeds of a column of ``eval.held_out`` after the last round: std or p10 over clients."""
        name = f"{HELD_OUT}/{self.column.rpartition('/')[2]}_{end}"
        values = [run.evaluations[-1].get(name) for run in self.judged.values() if run.evaluations]
        known = [value for value in values if value is not None]
        return mean(known) if known else None

    @property
    def cost(self) -> int:
        """Rounds that tuning took."""
        return sum(run.rounds_done for run in self.tuned)

    @property
    def lost(self) -> int:
        """Points of the tuning that diverged."""
        return sum(run.is_divergent for run in self.tuned)


@dataclass(frozen=True)
class Standings:
    """All rules, best first; then those that can have no score, then those whose runs are missing."""

    board: Board
    lines: list[Standing]
    metric: Metric

    @property
    def judged(self) -> list[Standing]:
        """Rules with a score on every judging seed."""
        return [line for line in self.lines if set(line.scores) == {*self.board.judge}]

    @property
    def open(self) -> list[Standing]:
        """Rules of which runs are missing."""
        return [line for line in self.lines if line not in self.judged and not line.out]

    def behind(self, line: Standing, other: Standing) -> list[float]:
        """By how much ``line`` is worse than ``other``, seed by seed."""
        way = sign(self.board.goal)
        return [way * (other.scores[seed] - line.scores[seed]) for seed in self.board.judge]

    @property
    def base(self) -> Standing | None:
        """The first rule of the file, with which the others are compared: FedAvg."""
        first = self.board.rules[0].key
        return next((line for line in self.judged if line.rule.key == first), None)

    def gap(self, line: Standing, other: Standing) -> Interval:
        """``other`` minus ``line`` with the t interval of the differences over seeds.

        No variance is pooled over rules: those of the differences to one rule share its scores.
        """
        return mean_interval(self.behind(line, other))

    @property
    def not_told_apart(self) -> list[Standing]:
        """Rules whose gap to the first place may be zero."""
        return [line for line in self.judged[1:] if self.gap(line, self.judged[0]).low <= 0]


def standings(work: Leaderboard) -> Standings:
    """From the runs that are there."""
    board, judging = work.board, work.judging()
    lines = list[Standing]()
    for rule in board.rules:
        tuned = [run for job in work.tuning[rule.key].plan.jobs if (run := work.tuning[rule.key].of(job))]
        judged: dict[int, Run] = {}
        if rule.key in judging:
            results = judging[rule.key]
            found = ((job.seed, results.of(job)) for job in results.plan.jobs)
            judged = {seed: run for seed, run in found if run is not None and run.is_done}
        done = [run for run in tuned if run.is_done]
        lines.append(Standing(rule, work.winner(rule), done, judged, board.metric))
    lines.sort(key=lambda line: _place(line, board))
    return Standings(board, lines, _metric(lines, board.metric))


def _place(line: Standing, board: Board) -> tuple[int, float]:
    """Whole lines by their mean, then those that diverged, then those whose runs are missing."""
    if set(line.scores) == {*board.judge}:
        return 0, -sign(board.goal) * mean(line.scores.values())
    return (1 if line.out else 2), 0.0


def _metric(lines: Sequence[Standing], column: str) -> Metric:
    from fedgm.tasks.metric import described

    boards = [run.board for line in lines for run in line.tuned]
    return described(column.rpartition("/")[2], boards)
