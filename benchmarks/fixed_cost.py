"""Fixed cost of a whole round: 5 tiny clients, server step, row and checkpoint, as a run does them.

    python -m benchmarks.fixed_cost

With `checkpoint.sync` on and off, and with 100 to 1,000,000 clients, interleaved; medians over rounds. A
checkpoint after every round is the default.
"""

import resource
import statistics
import tempfile
import time
from io import StringIO
from itertools import pairwise

from rich.console import Console
from rich.table import Table

from fedgm.config import compose
from fedgm.job.launch import execute
from fedgm.lightning import pl

RUN = [
    "profile=tiny", "track.mode=disabled", "trainer.workers=1", "data.partition=virtual",
    "data.client_samples=2", "data.train_samples=2000", "data.test_samples=20", "eval.train_samples=20",
    "local.epochs=1", "eval.every=1000", "rounds=60",
]  # fmt: skip
CASES = [(100, "true"), (100, "false"), (10_000, "false"), (1_000_000, "false"), (1_000_000, "true")]


class Clock(pl.Callback):
    """When each round began, on the wall and in CPU time."""

    def __init__(self) -> None:
        self.wall: list[float] = []
        self.cpu: list[float] = []

    def on_train_epoch_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        self.wall.append(time.perf_counter())
        self.cpu.append(time.process_time())


def run(clients: int, sync: str) -> tuple[list[float], list[float]]:
    """Seconds from round to round, wall and CPU; everything a round does is in it."""
    clock = Clock()
    with tempfile.TemporaryDirectory() as home:
        words = [*RUN, f"clients.count={clients}", f"checkpoint.sync={sync}", f"output_dir={home}"]
        execute(compose(words), words, Console(file=StringIO()), callbacks=[clock])
    gaps = [[b - a for a, b in pairwise(times[5:])] for times in (clock.wall, clock.cpu)]
    return gaps[0], gaps[1]


def main() -> None:
    found: dict[tuple[int, str], list[list[float]]] = {case: [[], []] for case in CASES}
    memory: dict[tuple[int, str], float] = {}
    for _ in range(2):
        for case in CASES:
            for kept, gaps in zip(found[case], run(*case), strict=True):
                kept += gaps
            memory.setdefault(case, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
    table = Table("clients", "checkpoint.sync", "CPU, ms a round", "wall, ms a round", "peak memory by then")
    for (clients, sync), (wall, cpu) in found.items():
        ms = [f"{1e3 * statistics.median(values):.1f}" for values in (cpu, wall)]
        table.add_row(f"{clients:,}", sync, *ms, f"{memory[clients, sync]:,.0f} MB")
    Console().print(table)


if __name__ == "__main__":
    main()
