"""One variant in a process of its own: it runs its next round when asked, and tells what it took.

    python -m benchmarks.contestants W1 bare|loader|tricks|ours|two

`bare` and `loader` are the loops that people write (plain layout; DataLoader and PIL), with the allocator as
Python finds it. `tricks` is the bare loop in our layout, with memory that stays. `ours` and `two` are our
loop with one worker and two. All of them train the same cohorts in the same order. A line of input asks for a
round, a JSON line answers. Every process imports the same modules (`loader` torchvision, too).
"""

import json
import os
import resource
import sys
import time
from contextlib import nullcontext
from typing import Any

import numpy as np
import torch

from benchmarks.workload import LR, Work, bare_round, loader_round, work
from fedgm.federated.callback import FedGM
from fedgm.federated.cohort import RoundSettings
from fedgm.federated.loop import FederatedLoop
from fedgm.federated.workers import FederatedDDP
from fedgm.lightning import pl
from fedgm.participation import ideal
from fedgm.running.memory import kept
from fedgm.schedule import Constant
from fedgm.server import GeneralMomentum

ROUNDS = 1000  # more than any sitting asks for
OURS = {"ours": 1, "two": 2}  # workers


class Clock:
    """Wall clock, CPU and page faults since it was started."""

    def __init__(self) -> None:
        self.wall, self.cpu, self.faults = time.perf_counter(), time.process_time(), _faults()

    def used(self) -> tuple[float, float, float]:
        return time.perf_counter() - self.wall, time.process_time() - self.cpu, float(_faults() - self.faults)


def _faults() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt


def answer(**fields: Any) -> None:
    """Tell the sitting."""
    print(json.dumps(fields), flush=True)


def asked() -> None:
    """Wait for the next round; the process ends with its input."""
    if not sys.stdin.readline():
        os._exit(0)


class OnRequest(pl.Callback):
    """A round of ours starts when it is asked for."""

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        self._wait(trainer)

    def on_train_epoch_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        loop = trainer.fit_loop
        assert isinstance(loop, FederatedLoop)
        wall, *used = self.clock.used()
        sums = trainer.strategy.reduce(torch.tensor(used, dtype=torch.float64), reduce_op="sum")
        if trainer.is_global_zero:
            samples = round((loop.row["samples_per_s"] or 0) * (loop.row["time/round"] or 0))
            answer(samples=samples, wall=wall, cpu=sums[0].item(), faults=sums[1].item())
        self._wait(trainer)

    def _wait(self, trainer: pl.Trainer) -> None:
        if trainer.is_global_zero:
            asked()
        trainer.strategy.barrier()
        self.clock = Clock()


def fit(workload: Work, workers: int, rounds: int, callback: pl.Callback) -> None:
    """Our loop, as a run builds it."""
    rule = GeneralMomentum(1.0, 0.9, 0.9)
    trainer = pl.Trainer(
        accelerator="cpu", devices=workers, strategy=FederatedDDP() if workers > 1 else "auto",
        max_epochs=rounds, callbacks=[FedGM(rule, Constant().plan(rounds, rule)), callback],
        logger=False, enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False,
        num_sanity_val_steps=0, use_distributed_sampler=False,
    )  # fmt: skip
    settings = RoundSettings(rounds, seed=0, unit=workload.unit, eval_every=rounds)
    scheme = ideal(workload.data.count, workload.per_round, workload.amount, seed=0)
    trainer.fit_loop = FederatedLoop(trainer, workload.data, scheme, settings)
    with kept():
        trainer.fit(workload.module(LR))


def by_hand(workload: Work, variant: str) -> None:
    """Rounds of a hand-written loop, one a request."""
    layout = variant == "tricks" and workload.channels_last
    run = loader_round if variant == "loader" else bare_round
    net = workload.model()
    if layout:
        net = net.to(memory_format=torch.channels_last)  # pyright: ignore[reportCallIssue]
    with kept() if variant == "tricks" else nullcontext():
        for t in range(1, ROUNDS + 1):
            asked()
            clock = Clock()
            samples, _ = run(net, workload, workload.cohort(t), np.random.default_rng(t), layout)
            wall, cpu, faults = clock.used()
            answer(samples=samples, wall=wall, cpu=cpu, faults=faults)


def main() -> None:
    name, variant = sys.argv[1:]
    torch.set_num_threads(1)
    workload = work(name)
    if variant in OURS:
        fit(workload, OURS[variant], ROUNDS, OnRequest())
    else:
        by_hand(workload, variant)


if __name__ == "__main__":
    main()
