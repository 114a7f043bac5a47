"""From the start of the process to the first finished round: our command and Flower's simulation, in turn.

    python -m benchmarks.start [--repeats 5] [--page]

Both train W2 (see docs/benchmarks.md), two clients side by side. Ours is `python run.py ...` as a user
types it, with its run folder, evaluation of x_0, row and checkpoint; a round counts when its row is in
metrics.jsonl. Flower's program is benchmarks/peers/flower.py; a round counts when the mean is there. `fedgm
--help` is measured beside them.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.beside_peers import command, ended, prepare, turn
from benchmarks.page import rows, show, spread, taken

RUN = [
    "model=cnn", "model._target_=benchmarks.models.small_cnn", "data.resolution=32", "data.alpha=0.5",
    "data.train_samples=10000", "data.test_samples=1000", "data.augment=none", "clients.count=100",
    "clients.per_round=5", "local.epochs=3", "local.batch_size=32", "local.lr=0.01",
    "eval.train_samples=1000", "track.mode=disabled", "trainer.workers=2", "rounds=2",
]  # fmt: skip
PATIENCE = 300  # seconds
OURS, FLOWER, HELP = "our first round", "Flower's first round", "the end of `fedgm --help`"


def ours() -> float:
    """Seconds until the first row is written."""
    with tempfile.TemporaryDirectory() as home:
        started = time.perf_counter()
        words = [sys.executable, "run.py", *RUN, f"output_dir={home}"]
        process = subprocess.Popen(
            words, env=os.environ | {"PYTHONPATH": str(Path.cwd())}, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, start_new_session=True, text=True,
        )  # fmt: skip
        try:
            while not any(path.stat().st_size for path in Path(home).rglob("metrics.jsonl")):
                assert process.poll() is None, "our run has ended without a round"
                assert time.perf_counter() - started < PATIENCE, "our run has no round yet"
                time.sleep(0.02)
            return time.perf_counter() - started
        finally:
            ended(process)


def help_text() -> float:
    """Seconds of `fedgm --help`."""
    started = time.perf_counter()
    subprocess.run([sys.executable, "-m", "fedgm", "--help"], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - started


def table(seconds_by_start: dict[str, list[float]]) -> str:
    """Medians and ranges."""
    lines = [[name, spread(seconds, 2)] for name, seconds in seconds_by_start.items()]
    return rows(("from its start to", "seconds"), lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--page", action="store_true", help="keep the results, and put them on the page")
    given = parser.parse_args()
    stamp = taken()
    seconds_by_start: dict[str, list[float]] = {OURS: [], FLOWER: [], HELP: []}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "work.npz"
        prepare("W2", 2, path)
        for _ in range(given.repeats):
            seconds_by_start[OURS].append(ours())
            seconds_by_start[FLOWER].append(turn(command("Flower", "W2", str(path), 2), 2)["first"])
            seconds_by_start[HELP].append(help_text())
    print(table(seconds_by_start))
    if given.page:
        show("start", {"taken": stamp, "seconds": seconds_by_start}, table(seconds_by_start))


if __name__ == "__main__":
    main()
