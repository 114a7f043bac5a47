"""Fixed cost of a whole round: five tiny clients, server step, row and checkpoint, as a run does them.

    python -m benchmarks.fixed_cost [--rounds 200] [--repeats 5] [--page]

The model is logistic regression on 8x8 colour images, a client has two images and takes one step. These five
steps are in the number, as is all else that a run does in a round; a checkpoint after every round is the
default. With `checkpoint.sync` on and off, and with 100 to 1,000,000 clients; every turn is a process of its
own, and the cases take turns. Shown are medians over rounds, the first ten of a turn left out, and PSS.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from itertools import pairwise
from typing import Any

from benchmarks.logistic import TINY
from benchmarks.page import rows, show, taken
from benchmarks.processes import pss
from fedgm.config import compose
from fedgm.lightning import pl
from fedgm.running.start import execute
from fedgm.screen import Screen

CASES = [(100, "false"), (100, "true"), (10_000, "false"), (1_000_000, "false"), (1_000_000, "true")]
WARM = 10
Turn = dict[str, Any]


class Clock(pl.Callback):
    """When each round began, on the wall and in CPU time, and the memory after the last."""

    def __init__(self) -> None:
        self.wall: list[float] = []
        self.cpu: list[float] = []
        self.pss = 0.0

    def on_train_epoch_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        self.wall.append(time.perf_counter())
        self.cpu.append(time.process_time())

    def on_train_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        self.pss = pss(os.getpid())


def run(clients: int, sync: str, rounds: int) -> Turn:
    """Seconds from round to round, wall and CPU; everything a round does is in it."""
    clock = Clock()
    with tempfile.TemporaryDirectory() as home:
        words = [
            *TINY,
            "trainer.workers=1",
            f"rounds={rounds}",
            f"clients.count={clients}",
            f"checkpoint.sync={sync}",
        ]
        words.append(f"output_dir={home}")
        execute(compose(words), words, Screen(quiet=True), callbacks=[clock])
    wall, cpu = ([b - a for a, b in pairwise(times[WARM:])] for times in (clock.wall, clock.cpu))
    return {"wall": wall, "cpu": cpu, "pss": clock.pss}


def apart(clients: int, sync: str, rounds: int) -> Turn:
    """The same in a process of its own, so that memory can be compared."""
    words = [sys.executable, "-W", "ignore", "-m", "benchmarks.fixed_cost", "--case", str(clients), sync]
    done = subprocess.run([*words, "--rounds", str(rounds)], check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def summed(turns_by_case: dict[tuple[int, str], list[Turn]]) -> list[dict[str, Any]]:
    """Medians over all rounds of a case, and of the memory over its turns."""
    lines: list[dict[str, Any]] = []
    for (clients, sync), turns in turns_by_case.items():
        line: dict[str, Any] = {"clients": clients, "sync": sync}
        line |= {k: 1e3 * statistics.median(x for turn in turns for x in turn[k]) for k in ("cpu", "wall")}
        lines.append(line | {"pss": statistics.median(turn["pss"] for turn in turns)})
    return lines


def table(lines: list[dict[str, Any]]) -> str:
    """A line a case."""
    head = ("clients", "`checkpoint.sync`", "CPU, ms a round", "wall, ms a round", "PSS, MB")
    shown = [
        [f"{one['clients']:,}", one["sync"], *(f"{one[key]:,.1f}" for key in ("cpu", "wall", "pss"))]
        for one in lines
    ]
    return rows(head, shown)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--case", nargs=2, help="clients and checkpoint.sync: one turn, as JSON")
    parser.add_argument("--page", action="store_true", help="keep the results, and put them on the page")
    given = parser.parse_args()
    if given.case:
        print(json.dumps(run(int(given.case[0]), given.case[1], given.rounds)))
        return
    stamp = taken()
    turns: dict[tuple[int, str], list[Turn]] = {case: [] for case in CASES}
    for _ in range(given.repeats):
        for case in CASES:
            turns[case].append(apart(*case, given.rounds))
    lines = summed(turns)
    print(table(lines))
    if given.page:
        show("fixed", {"taken": stamp, "cases": lines}, table(lines))


if __name__ == "__main__":
    main()
