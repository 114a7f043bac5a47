"""RoundLog: the one writer of rows, to metrics.jsonl and to W&B."""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO

from fedgm.files import write_atomically
from fedgm.lightning import pl
from fedgm.loop import FederatedLoop, rounds_done
from fedgm.track import rows
from fedgm.track.wandb_run import WandbRecord


class RoundLog(pl.Callback):
    """Writes the row of each round once; rows beyond the checkpoint that a run resumes from are dropped."""

    def __init__(self, path: Path, open_record: Callable[[], WandbRecord]) -> None:
        self.path = path
        self.record: WandbRecord | None = None
        self._open_record = open_record
        self._file: IO[str] | None = None

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Keep the rows up to the round we continue after."""
        if not trainer.is_global_zero:
            return
        done = rounds_done(trainer)
        kept = rows.read(self.path)[:done]
        write_atomically(self.path, "".join(rows.dump(row) for row in kept))
        self._file = self.path.open("a")
        self.record = self._open_record()
        for row in kept:
            self.record.log(row)

    def ensure_record(self) -> None:
        """A run that continues after its last round trains no more, but its record must be whole."""
        if self.record is None:
            self.record = self._open_record()
            for row in rows.read(self.path):
                self.record.log(row)

    def on_train_epoch_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Append the round's row."""
        loop = trainer.fit_loop
        if self._file is None or self.record is None or not isinstance(loop, FederatedLoop):
            return
        self._file.write(rows.dump(loop.row))
        self._file.flush()
        self.record.log(loop.row)

    def teardown(self, trainer: pl.Trainer, pl_module: pl.LightningModule, stage: str) -> None:
        """Close the file; the record is closed by whoever knows how the run ended."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def on_exception(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, exception: BaseException
    ) -> None:
        """Lightning calls no teardown after an error; on a full disk closing fails as writing did."""
        with suppress(OSError):
            self.teardown(trainer, pl_module, "fit")
