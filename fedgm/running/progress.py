"""What a person sees while a run goes on: a bar with ETA on a terminal, plain lines elsewhere."""

from typing import Any

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from fedgm.clock import Stopwatch
from fedgm.federated.callback import StopWhenDecided
from fedgm.federated.events import StageEnd
from fedgm.federated.loop import FederatedLoop, Row, rounds_done
from fedgm.lightning import pl
from fedgm.plain import plain
from fedgm.screen import Screen
from fedgm.tasks import Scoreboard

LINES = 20  # progress lines at most, where there is no terminal


class RoundProgress(pl.Callback):
    """Rounds, ETA and the column that judges the run; only in the first worker."""

    def __init__(
        self, console: Screen, title: str, live: bool, last: int, board: Scoreboard,
        ends: StopWhenDecided | None = None,
    ) -> None:  # fmt: skip
        self.console, self.title, self.live, self.board = console, title, live, board
        self.last, self._ends = min(last, ends.latest) if ends else last, ends
        self._bar: Progress | None = None
        self._task: Any = None
        self._headline = "-"

    @property
    def _name(self) -> str:
        return self.board.headline.replace("/", " ")

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Start the bar where the run starts or continues."""
        self._watch, self._first = Stopwatch(), rounds_done(trainer)
        if not trainer.is_global_zero or not self.live:
            return
        self._bar = Progress(
            TextColumn("{task.description}", style="bold", markup=False),
            BarColumn(bar_width=None),
            MofNCompleteColumn(),
            TextColumn("{task.fields[metric]}", markup=False),
            TextColumn("{task.fields[headline]}", style="bold", markup=False),
            TimeElapsedColumn(),
            TextColumn("ETA"),
            TimeRemainingColumn(),
            console=self.console,
        )
        self._task = self._bar.add_task(
            plain(self.title), total=self.last, completed=self._first, headline=self._headline,
            metric=plain(self._name),
        )  # fmt: skip
        self._bar.start()

    def on_train_epoch_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """One more round."""
        loop = trainer.fit_loop
        if not trainer.is_global_zero or not isinstance(loop, FederatedLoop):
            return
        if (value := loop.row.get(self.board.headline)) is not None:
            self._headline = self.board.judge.show(value, digits=3)
        t, rounds = rounds_done(trainer), self.last
        if self._bar is not None:
            self._bar.update(self._task, completed=t, headline=self._headline)
        elif t in (1, rounds) or t * LINES // rounds > (t - 1) * LINES // rounds:
            self.console.print(self._line(t, rounds, loop.row), soft_wrap=True)

    def on_stage_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule, end: StageEnd) -> None:
        """A drop is news: it goes above the bar, or between the lines."""
        if trainer.is_global_zero and not (self._ends and self._ends.is_over(trainer)):
            self.console.print(f"{self.title}  {end}", soft_wrap=True)

    def _line(self, t: int, rounds: int, row: Row) -> str:
        """For logs and pipes."""
        per_round = self._watch.seconds() / (t - self._first)
        minutes, seconds = divmod(round(per_round * (rounds - t)), 60)
        return (
            f"{self.title}  round {t}/{rounds}  stage {row['server/stage']}  loss {row['local/loss']:.3f}  "
            f"{self._name} {self._headline}  {per_round:.2f} s/round  ETA {minutes}:{seconds:02d}"
        )

    def teardown(self, trainer: pl.Trainer, pl_module: pl.LightningModule, stage: str) -> None:
        """Leave the finished bar on the screen."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

    def on_exception(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, exception: BaseException
    ) -> None:
        """Give the terminal its cursor back; Lightning calls no teardown after an error."""
        self.teardown(trainer, pl_module, "fit")
