"""Fixed cost of a round, and that it does not grow with the number of clients.

    python -m benchmarks.round_cost

Virtual clients of two images and a model of a few hundred weights: what remains is the price of a round.
Populations are interleaved in one process; seconds are medians, memory is the growth of the process.
"""

import resource
import statistics
import time

import torch
from rich.console import Console
from rich.table import Table
from torch import nn

from benchmarks.workload import COHORT
from fedgm.data import synthetic
from fedgm.data.federation import Batching, federation
from fedgm.federated.callback import FedGM
from fedgm.federated.cohort import RoundSettings
from fedgm.federated.loop import FederatedLoop
from fedgm.lightning import pl
from fedgm.participation import ideal
from fedgm.running.trainer import WorkerShare
from fedgm.schedule import Constant
from fedgm.server import GeneralMomentum
from fedgm.tasks.cross_entropy import Classification

POPULATIONS = (100, 10_000, 1_000_000)
ROUNDS, REPEATS = 50, 3


class Times(pl.Callback):
    """Seconds of each round."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    def on_train_epoch_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        loop = trainer.fit_loop
        assert isinstance(loop, FederatedLoop)
        self.seconds.append(float(loop.row["time/round"] or 0))


def run(population: int) -> tuple[float, float, float]:
    """Seconds of set-up, of drawing a cohort, of a round."""
    started = time.perf_counter()
    dataset = synthetic.load(train=2000, test=100, resolution=8)
    fed = federation(
        dataset, clients=population, alpha=0.5, seed=0, min_samples=1, partition="virtual", client_samples=2,
        batching=Batching(batch_size=20),
    )  # fmt: skip
    participation = ideal(population, COHORT, epochs=1, seed=0)
    setup = time.perf_counter() - started
    started = time.perf_counter()
    for t in range(100):
        participation.tasks(t + 1)
    draw = (time.perf_counter() - started) / 100
    net = nn.Sequential(nn.AvgPool2d(4), nn.Flatten(), nn.Linear(12, 10))
    module = Classification(net, lambda params: torch.optim.SGD(params, lr=0.01))
    rule, times = GeneralMomentum(1.0, 0.9, 0.9), Times()
    trainer = pl.Trainer(
        accelerator="cpu", devices=1, max_epochs=ROUNDS,
        callbacks=[FedGM(rule, Constant().plan(ROUNDS, rule)), times], num_sanity_val_steps=0,
        logger=False, enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False,
    )  # fmt: skip
    settings = RoundSettings(ROUNDS, seed=0, eval_every=ROUNDS)
    trainer.fit_loop = FederatedLoop(trainer, fed, participation, settings)
    shares = [WorkerShare(trainer, part, split) for split, part in fed.evaluations().items()]
    trainer.fit(module, train_dataloaders=range(COHORT), val_dataloaders=shares)
    return setup, draw, statistics.median(times.seconds[5:])


def main() -> None:
    """Print the table."""
    torch.set_num_threads(1)
    results: dict[int, list[tuple[float, float, float]]] = {n: [] for n in POPULATIONS}
    memory: dict[int, float] = {}
    for _ in range(REPEATS):
        for population in POPULATIONS:
            results[population].append(run(population))
            memory.setdefault(population, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
    table = Table("clients", "set-up", "drawing a cohort", "a round of 5", "peak memory by then")
    for population, rows in results.items():
        setup, draw, seconds = (statistics.median(column) for column in zip(*rows, strict=True))
        table.add_row(
            f"{population:,}", f"{setup:.2f} s", f"{1e3 * draw:.3f} ms", f"{1e3 * seconds:.1f} ms",
            f"{memory[population]:,.0f} MB",
        )  # fmt: skip
    Console().print(table)


if __name__ == "__main__":
    main()
