"""Throughput of a round against the loop one would write by hand, interleaved in one process.

    python -m benchmarks.against_bare [ROUNDS]

One thread each; the same clients in the same layout. Medians, minima and their ratios are printed: above
1 we are faster. Then the same with two workers against two forked bare loops.
"""

import os
import statistics
import sys
import time
from multiprocessing import get_context

import numpy as np
import torch
from rich.console import Console
from rich.table import Table

from benchmarks.models import MODELS
from benchmarks.workload import LR, Work, bare_round, work
from fedgm.federated.callback import FedGM
from fedgm.federated.cohort import RoundSettings
from fedgm.federated.loop import FederatedLoop
from fedgm.federated.workers import FederatedDDP
from fedgm.lightning import pl
from fedgm.participation import ideal
from fedgm.running.trainer import WorkerShare
from fedgm.schedule import Constant
from fedgm.server import GeneralMomentum

Rates = dict[str, list[float]]


class Interleave(pl.Callback):
    """After each of our rounds, the same cohort in a bare loop."""

    def __init__(self, workload: Work, workers: int) -> None:
        self.workload, self.workers = workload, workers
        self.net = workload.model().to(memory_format=torch.channels_last)
        self.rates: Rates = {"ours": [], "bare": []}

    def on_train_epoch_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        loop = trainer.fit_loop
        assert isinstance(loop, FederatedLoop)
        t = int(loop.row["round"] or 0)
        cohort = [task.client for task in loop.participation.tasks(t)]
        if self.workers == 1:
            samples, seconds = bare_round(self.net, self.workload, cohort, np.random.default_rng(t))
            self.rates["bare"].append(samples / seconds)
        elif trainer.is_global_zero:
            self.rates["bare"].append(_two_bare(self.net, self.workload, cohort, t))
        trainer.strategy.barrier()
        self.rates["ours"].append(float(loop.row["samples_per_s"] or 0))


def _two_bare(net: torch.nn.Module, workload: Work, cohort: list[int], t: int) -> float:
    """Two forked processes with the clients dealt out in turn; the slower one decides."""
    context = get_context("fork")
    results = context.Queue()

    def work(part: list[int]) -> None:
        results.put(bare_round(net, workload, part, np.random.default_rng(t))[0])

    started = time.perf_counter()
    processes = [context.Process(target=work, args=(cohort[i::2],)) for i in range(2)]
    for process in processes:
        process.start()
    samples = sum(results.get() for _ in processes)
    for process in processes:
        process.join()
    return samples / (time.perf_counter() - started)


def measure(name: str, rounds: int, workers: int) -> Rates:
    """Samples per second of each round, ours and bare."""
    torch.set_num_threads(1)
    workload = work(name)
    fed, module = workload.data, workload.module(LR)
    rule = GeneralMomentum(1.0, 0.9, 0.9)
    interleave = Interleave(workload, workers)
    trainer = pl.Trainer(
        accelerator="cpu", devices=workers, strategy=FederatedDDP() if workers > 1 else "auto",
        max_epochs=rounds, callbacks=[FedGM(rule, Constant().plan(rounds, rule)), interleave],
        logger=False, enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False,
        num_sanity_val_steps=0, use_distributed_sampler=False,
    )  # fmt: skip
    settings = RoundSettings(rounds, seed=0, eval_every=rounds)
    scheme = ideal(fed.count, workload.per_round, workload.amount, seed=0)
    trainer.fit_loop = FederatedLoop(trainer, fed, scheme, settings)
    shares = [WorkerShare(trainer, part, split) for split, part in fed.evaluations().items()]
    trainer.fit(module, train_dataloaders=range(workload.per_round), val_dataloaders=shares)
    return interleave.rates


def main() -> None:
    """Print the table."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 6
    table = Table("work", "workers", "ours, samples/s", "bare", "ratio of medians", "range of ratios")
    for workers in (1, min(2, os.cpu_count() or 1)):
        for name in MODELS:
            rates = measure(name, rounds, workers)
            ours, bare = rates["ours"][1:], rates["bare"][1:]  # the first round warms up
            ratios = [a / b for a, b in zip(ours, bare, strict=True)]
            a, b = statistics.median(ours), statistics.median(bare)
            table.add_row(
                name,
                str(workers),
                f"{a:,.0f}",
                f"{b:,.0f}",
                f"{a / b:.2f}",
                f"{min(ratios):.2f} - {max(ratios):.2f}",
            )
    Console().print(table)


if __name__ == "__main__":
    main()
