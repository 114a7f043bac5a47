"""Our loop with two workers, telling each finished round as the programs in benchmarks/peers do.

python -m benchmarks.own_rounds W1 ROUNDS WORKERS
"""

import sys

import torch

from benchmarks.contestants import fit
from benchmarks.peers.given import tell
from benchmarks.workload import work
from fedgm.federated.loop import FederatedLoop
from fedgm.lightning import pl


class Told(pl.Callback):
    """Every finished round, from the first worker."""

    def on_train_epoch_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        loop = trainer.fit_loop
        assert isinstance(loop, FederatedLoop)
        if trainer.is_global_zero:
            samples = round((loop.row["samples_per_s"] or 0) * (loop.row["time/round"] or 0))
            tell(int(loop.row["round"] or 0), samples)


if __name__ == "__main__":
    torch.set_num_threads(1)
    fit(work(sys.argv[1]), workers=int(sys.argv[3]), rounds=int(sys.argv[2]), callback=Told())
