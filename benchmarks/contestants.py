"""One process of the sitting: it runs a round of a variant when asked, and tells what it took.

    python -m benchmarks.contestants W1 apart|together|two

`apart` has the allocator as Python finds it, and knows the loops that people write (plain layout; DataLoader
and PIL). `together` keeps its memory, and knows our loop and the hand-written one with the same tricks. `two`
is our loop with two workers. Requests and answers are JSON lines.
"""

import json
import os
import resource
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import nn

from benchmarks.workload import LR, Work, bare_round, loader_round, work
from fedgm.federated.callback import FedGM
from fedgm.federated.cohort import RoundSettings
from fedgm.federated.loop import FederatedLoop
from fedgm.federated.workers import FederatedDDP
from fedgm.lightning import pl
from fedgm.participation import ideal
from fedgm.process.memory import kept
from fedgm.schedule import Constant
from fedgm.server import GeneralMomentum

ROUNDS = 1000  # more than any sitting asks for


def answer(**found: Any) -> None:
    """Tell the sitting."""
    print(json.dumps(found), flush=True)


def measured(run: Callable[[], int]) -> None:
    """Samples, wall clock, CPU and page faults of one call."""
    wall, cpu = time.perf_counter(), time.process_time()
    faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    samples = run()
    faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt - faults
    answer(samples=samples, wall=time.perf_counter() - wall, cpu=time.process_time() - cpu, faults=faults)


def asked() -> str:
    """The next variant; the process ends with its input."""
    line = sys.stdin.readline()
    if not line:
        os._exit(0)
    return json.loads(line)["variant"]


class OnRequest(pl.Callback):
    """Between our rounds, other variants may have their turn; a round of ours starts when it is asked for."""

    def __init__(self, found: Work, workers: int) -> None:
        self.found, self.workers = found, workers
        self.net: nn.Module = found.model().to(memory_format=torch.channels_last)
        self.rounds = 0

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        self._wait(trainer)

    def on_train_epoch_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        loop = trainer.fit_loop
        assert isinstance(loop, FederatedLoop)
        used = torch.tensor([time.process_time() - self.cpu, float(self._faults() - self.faults)])
        used = trainer.strategy.reduce(used, reduce_op="sum").tolist()
        if trainer.is_global_zero:
            samples = round((loop.row["samples_per_s"] or 0) * (loop.row["time/round"] or 0))
            answer(samples=samples, wall=time.perf_counter() - self.wall, cpu=used[0], faults=used[1])
        self._wait(trainer)

    def _faults(self) -> int:
        return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

    def _wait(self, trainer: pl.Trainer) -> None:
        while trainer.is_global_zero and (variant := asked()) != "ours":
            assert variant == "tricks", variant
            self.rounds += 1
            layout, rng = self.found.channels_last, np.random.default_rng(self.rounds)
            cohort = self.found.cohort(self.rounds)
            measured(lambda: bare_round(self.net, self.found, cohort, rng, layout)[0])  # noqa: B023
        trainer.strategy.barrier()
        self.wall, self.cpu, self.faults = time.perf_counter(), time.process_time(), self._faults()


def fit(found: Work, workers: int, rounds: int, callback: pl.Callback) -> None:
    """Our loop, as a run builds it."""
    rule = GeneralMomentum(1.0, 0.9, 0.9)
    trainer = pl.Trainer(
        accelerator="cpu", devices=workers, strategy=FederatedDDP() if workers > 1 else "auto",
        max_epochs=rounds, callbacks=[FedGM(rule, Constant().plan(rounds, rule)), callback],
        logger=False, enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False,
        num_sanity_val_steps=0, use_distributed_sampler=False,
    )  # fmt: skip
    settings = RoundSettings(rounds, seed=0, unit=found.unit, eval_every=rounds)
    scheme = ideal(found.data.count, found.per_round, found.amount, seed=0)
    trainer.fit_loop = FederatedLoop(trainer, found.data, scheme, settings)
    with kept():
        trainer.fit(found.module(LR))


def main() -> None:
    name, kind = sys.argv[1:]
    torch.set_num_threads(1)
    found = work(name)
    if kind != "apart":
        workers = 2 if kind == "two" else 1
        return fit(found, workers, ROUNDS, OnRequest(found, workers))
    net, number = found.model(), 0
    while True:
        variant, number = asked(), number + 1
        cohort, rng = found.cohort(number), np.random.default_rng(number)
        run = {"bare": bare_round, "loader": loader_round}[variant]
        measured(lambda: run(net, found, cohort, rng, False)[0])  # noqa: B023


if __name__ == "__main__":
    main()
