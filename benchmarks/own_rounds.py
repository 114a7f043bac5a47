"""Our loop, telling each finished round as the programs in benchmarks/peers do.

    python -m benchmarks.own_rounds W1 ROUNDS WORKERS

`tiny` is a whole run, with its row and its checkpoint (not synced) after every round.
"""

import sys
import tempfile

import torch

from benchmarks.contestants import fit
from benchmarks.logistic import TINY
from benchmarks.peers.given import tell
from benchmarks.workload import work
from fedgm.config import compose
from fedgm.federated.loop import FederatedLoop
from fedgm.lightning import pl
from fedgm.running.start import execute
from fedgm.screen import Screen


class Told(pl.Callback):
    """Every finished round, from the first worker."""

    def on_train_epoch_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        loop = trainer.fit_loop
        assert isinstance(loop, FederatedLoop)
        if trainer.is_global_zero:
            samples = round((loop.row["samples_per_s"] or 0) * (loop.row["time/round"] or 0))
            tell(int(loop.row["round"] or 0), samples)


def whole_run(rounds: int, workers: int) -> None:
    """As `fedgm run` does it."""
    with tempfile.TemporaryDirectory() as home:
        words = [*TINY, f"rounds={rounds}", f"trainer.workers={workers}", f"output_dir={home}"]
        words.append("checkpoint.sync=false")
        execute(compose(words), words, Screen(quiet=True), callbacks=[Told()])


def main() -> None:
    name, rounds, workers = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    torch.set_num_threads(1)
    if name == "tiny":
        whole_run(rounds, workers)
    else:
        fit(work(name), workers, rounds, Told())


if __name__ == "__main__":
    main()
