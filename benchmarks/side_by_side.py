"""Eight runs that differ in the seed alone: `fedgm sweep` with two workers against one after another.

    python -m benchmarks.side_by_side [--repeats 3] [--rounds 10] [--page]

One thread per run on both sides, interleaved; the ratio of medians is what a grid gains from a second core.
"""

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.page import rows, show, spread, taken

FILE = """
method: grid
metric: {{name: test/acc, goal: maximize}}
parameters:
  seed: {{values: [0, 1, 2, 3, 4, 5, 6, 7]}}
command: ["${{program}}", track.mode=disabled, rounds={rounds}, "${{args_no_hyphens}}"]
"""


def seconds(workers: int, rounds: int) -> float:
    """Of a whole `fedgm sweep`, imports included."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "seeds.yaml"
        path.write_text(FILE.format(rounds=rounds))
        command = [sys.executable, "-m", "fedgm", "sweep", str(path), "--output-dir", folder]
        started = time.perf_counter()
        subprocess.run([*command, "--workers", str(workers)], check=True, capture_output=True)
        return time.perf_counter() - started


def table(times: dict[int, list[float]], rounds: int) -> str:
    """Medians and ranges, and what the second worker gains."""
    one = statistics.median(times[1])
    head = (f"`fedgm sweep` of 8 runs of {rounds} rounds", "seconds", "against one after another")
    lines = [
        [f"--workers {workers}", spread(seconds_each, 1), f"{one / statistics.median(seconds_each):.2f}"]
        for workers, seconds_each in times.items()
    ]
    return rows(head, lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--page", action="store_true", help="keep the results, and put them on the page")
    given = parser.parse_args()
    stamp = taken()
    times: dict[int, list[float]] = {1: [], 2: []}
    for _ in range(given.repeats):
        for workers, seconds_each in times.items():
            seconds_each.append(seconds(workers, given.rounds))
            print(f"{workers} workers: {seconds_each[-1]:.1f} s", flush=True)
    print(table(times, given.rounds))
    if given.page:
        result = {"taken": stamp, "rounds": given.rounds, "seconds": times}
        show("sweep", result, table(times, given.rounds))


if __name__ == "__main__":
    main()
