"""``stop_after=R``: end a run early with a checkpoint, so that a larger R continues it bit for bit."""

from fedgm.federated.loop import rounds_done
from fedgm.lightning import pl


class PauseAfter(pl.Callback):
    """Stops the loop after ``last`` rounds; it adds no evaluation and leaves rounds and stage ends alone."""

    def __init__(self, last: int) -> None:
        self.last = last

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """A run that was killed after its last round has nothing left to do."""
        self._stop_where_due(trainer)

    def on_train_epoch_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """One more round."""
        self._stop_where_due(trainer)

    def _stop_where_due(self, trainer: pl.Trainer) -> None:
        if rounds_done(trainer) >= self.last:
            trainer.should_stop = True
