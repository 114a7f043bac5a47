"""The standings of a leaderboard: what each tuned rule reaches on other seeds, how fast, at what price."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean

from fedgm.results.curve import rounds_to, sign
from fedgm.results.interval import Interval, Pooled, mean_interval, pool
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
        """Mean of the last ten evaluations; chance for a run that diverged."""
        found = {seed: run.score(self.column) for seed, run in self.judged.items()}
        return {seed: score for seed, score in found.items() if score is not None}

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
        """Sent and received by all clients of a round, together: from the last measured round."""
        rows = [run.evaluations[-1] for run in self.judged.values() if run.evaluations]
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
    """All rules, best first; those without a judged run come last."""

    board: Board
    lines: list[Standing]
    metric: Metric

    @property
    def judged(self) -> list[Standing]:
        """Rules with a run on every judging seed."""
        return [line for line in self.lines if set(line.scores) == {*self.board.judge}]

    def behind(self, line: Standing, other: Standing) -> list[float]:
        """By how much ``line`` is worse than ``other``, seed by seed."""
        way = sign(self.board.goal)
        return [way * (other.scores[seed] - line.scores[seed]) for seed in self.board.judge]

    @property
    def pooled(self) -> Pooled | None:
        """One variance of the differences to the first rule of the file, where Bartlett's test allows it."""
        base = self.base
        if base is None:
            return None
        found = pool([self.behind(line, base) for line in self.judged if line is not base])
        return found if found is not None and found.allowed else None

    @property
    def base(self) -> Standing | None:
        """The first rule of the file, with which the others are compared: FedAvg."""
        first = self.board.rules[0].key
        return next((line for line in self.judged if line.rule.key == first), None)

    def gap(self, line: Standing, other: Standing) -> Interval:
        """``other`` minus ``line`` with its interval, by the pooled variance where there is one."""
        differences, pooled = self.behind(line, other), self.pooled
        return pooled.interval(differences) if pooled is not None else mean_interval(differences)

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


def _place(line: Standing, board: Board) -> tuple[bool, float]:
    """Whole lines by their mean, then the others."""
    whole = set(line.scores) == {*board.judge}
    return (not whole, -sign(board.goal) * mean(line.scores.values()) if whole else 0.0)


def _metric(lines: Sequence[Standing], column: str) -> Metric:
    from fedgm.tasks.metric import described

    boards = [run.board for line in lines for run in line.tuned]
    return described(column.rpartition("/")[2], boards)
