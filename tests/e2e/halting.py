"""A callback that halts its own process at a moment that a test wants to meet."""

import os
import signal

from fedgm.lightning import pl


class HaltInValidation(pl.Callback):
    """SIGSTOP to itself before the second batch of the validation of round $FEDGM_TEST_HALT."""

    def __init__(self):
        self.round = int(os.environ.get("FEDGM_TEST_HALT", "0"))

    def on_validation_batch_start(self, trainer, pl_module, batch, batch_idx, dataloader_idx=0):
        if self.round and batch_idx == 1 and trainer.global_step == self.round - 1:  # a step ends a round
            os.kill(os.getpid(), signal.SIGSTOP)
