"""RoundLog: the record of a run. It owns metrics.jsonl and the loggers: opening, replaying, finishing."""

import hashlib
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from fedgm.errors import FedGMError
from fedgm.federated.events import FederatedCallback, StageEnd
from fedgm.federated.loop import FederatedLoop, rounds_done
from fedgm.files import write_atomically
from fedgm.lightning import Logger, pl
from fedgm.results import rows


class RoundLog(FederatedCallback):
    """Writes the row of each round once; rows beyond the checkpoint that a run resumes from are dropped.

    The loop sends new rows to the trainer's loggers; those of an earlier start are replayed from here.
    """

    def __init__(
        self, path: Path, loggers: Sequence[Logger], config: dict[str, Any], sync: bool = False
    ) -> None:
        self.path, self.loggers, self.config, self.sync = path, loggers, config, sync
        self._file: IO[str] | None = None
        self._open = False
        self._digest = hashlib.blake2b(digest_size=32)  # of all rows, as fedgm.files.digest

    def state_dict(self) -> dict[str, Any]:
        """A checksum of the rows so far: a checkpoint is only used with the rows that it was written with."""
        return {"rows": self._digest.hexdigest()} if self._file is not None else {}

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Keep the rows up to the round we continue after."""
        if not trainer.is_global_zero:
            return
        kept = rows.read(self.path)[: rounds_done(trainer)]
        text = "".join(rows.dump(row) for row in kept)
        write_atomically(self.path, text, self.sync)
        self._digest = hashlib.blake2b(text.encode(), digest_size=32)
        self._file = self.path.open("a")
        loop = trainer.fit_loop
        self.replay(kept, loop.initial if isinstance(loop, FederatedLoop) else {})

    def replay(self, stored: list[rows.Row], initial: Mapping[str, float]) -> None:
        """Open the loggers with the configuration, the untrained model as round 0, and all rows so far.

        Of a fresh run nothing is known yet: the loop sends round 0 when x_0 has been measured.
        """
        self._open = True
        before: list[rows.Row] = [{"round": 0, **initial}] if initial else []
        for logger in self.loggers:
            logger.log_hyperparams(self.config)
            for row in [*before, *stored]:
                measured = {name: value for name, value in row.items() if value is not None}
                logger.log_metrics(measured, step=int(row["round"] or 0))
            logger.save()

    def ensure_whole(self, initial: Mapping[str, float]) -> None:
        """A run that continues after its last round trains no more, but its record must be whole."""
        if not self._open:
            stored = rows.read(self.path)
            text = "".join(rows.dump(row) for row in stored)
            if self.path.read_bytes() != text.encode():  # what follows the last whole row
                write_atomically(self.path, text, self.sync)
            self.replay(stored, initial)

    def on_train_epoch_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Append the round's row."""
        loop = trainer.fit_loop
        if self._file is None or not isinstance(loop, FederatedLoop):
            return
        self.require_folder()
        line = rows.dump(loop.row)
        self._file.write(line)
        self._file.flush()
        if self.sync:
            os.fsync(self._file.fileno())
        self._digest.update(line.encode())

    def require_folder(self) -> None:
        """Rows written into a folder that was removed would be lost silently."""
        try:
            named = self.path.stat()
            opened = os.fstat(self._file.fileno()) if self._file is not None else named
        except OSError:
            named = opened = None
        if named is None or opened is None or not os.path.samestat(named, opened):
            raise FedGMError(
                f"{self.path} was removed or replaced while the run was writing it. "
                "The rounds so far are lost; the same command starts the run again"
            )

    def on_stage_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule, end: StageEnd) -> None:
        """Loggers that can announce something do."""
        for logger in self.loggers if trainer.is_global_zero else ():
            if announce := getattr(logger, "announce", None):
                announce(end)

    def finish(self, summary: dict[str, Any], failed: bool) -> None:
        """Close all loggers in any case, or the next job of a multirun would write into them."""
        for logger in self.loggers:
            if close := getattr(logger, "close", None):
                close(summary, failed)
            else:
                logger.finalize("failed" if failed else "success")

    def teardown(self, trainer: pl.Trainer, pl_module: pl.LightningModule, stage: str) -> None:
        """Close the file; loggers are closed by whoever knows how the run ended."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def on_exception(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, exception: BaseException
    ) -> None:
        """Lightning calls no teardown after an error; on a full disk closing fails as writing did."""
        with suppress(OSError):
            self.teardown(trainer, pl_module, "fit")
