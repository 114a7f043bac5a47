"""CPU of a round at another commit and here, in turn: what a change costs where it should cost nothing.

    git worktree add ../before ae5a955
    python -m benchmarks.against_commit ../before [--pairs 15]

One process for each tree trains the same configuration and waits for its turn after every block of rounds, so
that a pair is measured within seconds. The interval is that of the median (binomial, 95 %).
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

TINY = ["profile=tiny", "data.train_samples=1000", "local.batch_size=10", "local.epochs=1"]
W1 = [
    "model=resnet8", "data.resolution=32", "data.train_samples=10000", "data.test_samples=500",
    "data.augment=none", "local.batch_size=32", "eval.train_samples=500",
]  # fmt: skip
WORK = {"tiny round": (TINY, 40), "W1": (W1, 1)}  # configuration, rounds of a block
CHILD = """
import sys, time
import fedgm
from fedgm.lightning import pl

class Turn(pl.Callback):
    def on_train_epoch_start(self, trainer, module):
        if trainer.global_step % BLOCK == 0:
            sys.stdin.readline()
            self.began = time.process_time()

    def on_train_epoch_end(self, trainer, module):
        if trainer.global_step % BLOCK == 0:
            print("CPU", (time.process_time() - self.began) / BLOCK, flush=True)

fedgm.run(WORDS, callbacks=[Turn()])
"""


def start(tree: Path, words: list[str], block: int, blocks: int, home: str) -> "subprocess.Popen[str]":
    """A run in ``tree`` that does a block of rounds for every line it is sent."""
    given = [
        *words, f"rounds={block * blocks}", f"eval.every={block * blocks}", "track=none",
        "trainer.workers=1", "checkpoint.sync=false", f"output_dir={home}",
    ]  # fmt: skip
    program = CHILD.replace("BLOCK", str(block)).replace("WORDS", repr(given))
    return subprocess.Popen(
        [sys.executable, "-c", program], cwd=tree, env=os.environ | {"PYTHONPATH": str(tree)}, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip


def turn(process: "subprocess.Popen[str]") -> float:
    """CPU seconds of a round in the next block."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("go\n")
    process.stdin.flush()
    for line in process.stdout:
        if line.startswith("CPU "):
            return float(line.split()[1])
    raise RuntimeError(f"a run has ended with code {process.wait()}")


def measure(before: Path, words: list[str], block: int, pairs: int) -> list[tuple[float, float]]:
    """CPU seconds (before, here) of each pair; the first pair warms up and is left out."""
    with tempfile.TemporaryDirectory() as home:
        trees = before.resolve(), Path.cwd()
        both = [
            start(tree, words, block, pairs + 1, f"{home}/{side}")
            for side, tree in zip(("before", "here"), trees, strict=True)
        ]
        found: list[tuple[float, float]] = []
        for pair in range(pairs + 1):
            order = (0, 1) if pair % 2 else (1, 0)  # neither is always the first
            seconds = {side: turn(both[side]) for side in order}
            found.append((seconds[0], seconds[1]))
        for process in both:
            process.communicate()
        return found[1:]


def median_interval(values: list[float]) -> tuple[float, float, float]:
    """Median with the order statistics that hold it in at least 95 of 100 cases."""
    ranked, n = sorted(values), len(values)
    chances = statistics.NormalDist(n / 2, (n / 4) ** 0.5)
    k = max(int(chances.inv_cdf(0.025)), 0)
    return statistics.median(ranked), ranked[k], ranked[n - 1 - k]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("before", type=Path, help="a tree of the commit before")
    parser.add_argument("--pairs", type=int, default=15)
    given = parser.parse_args()
    for name, (words, block) in WORK.items():
        found = measure(given.before, words, block, given.pairs)
        middle, low, high = median_interval([here / before for before, here in found])
        seconds = [statistics.median(side) for side in zip(*found, strict=True)]
        print(f"{name}: {middle:.3f} ({low:.3f} to {high:.3f}), {1000 * seconds[0]:.1f} -> "
              f"{1000 * seconds[1]:.1f} ms of CPU, {len(found)} pairs")  # fmt: skip


if __name__ == "__main__":
    main()
