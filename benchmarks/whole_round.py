"""Seconds of a whole round from the cost model of a step, against runs that it has not seen.

    python -m benchmarks.whole_round

A round = the local steps of the most loaded worker x seconds of a step (benchmarks.cost_model, fitted here on
other models) + the fixed cost of a round (benchmarks.fixed_cost). Rounds without evaluation are compared.
"""

import statistics
import tempfile
from io import StringIO

import numpy as np
import torch
from rich.console import Console

from benchmarks.cost_model import SEEN, Cost, cost, fit, seconds
from fedgm.config import compose, validate
from fedgm.data.clients import local_steps
from fedgm.federated.workers import share_out
from fedgm.job import assemble
from fedgm.job.launch import execute
from fedgm.process.memory import kept
from fedgm.track import rows

FIXED = 0.0105  # seconds, docs/benchmarks.md
ROUNDS = 7  # the first warms up
CASES = [(14, 24, 16, 20), (20, 16, 16, 10), (14, 16, 32, 16)]  # depth, width, side, batch


def words(point: tuple[int, int, int, int], workers: int, home: str) -> list[str]:
    """A run of the small profile with another model."""
    depth, width, side, batch = point
    return [
        "track=none", f"model.depth={depth}", f"model.width={width}", f"data.resolution={side}",
        f"local.batch_size={batch}", "local.epochs=1", f"rounds={ROUNDS}", f"eval.every={ROUNDS}",
        f"trainer.workers={workers}", f"output_dir={home}",
    ]  # fmt: skip


def busiest(given: list[str], workers: int) -> list[int]:
    """Local steps of the most loaded worker in each round."""
    config = validate(compose(given))
    data = assemble.load_federation(config)
    scheme = assemble.build_participation(config, data)
    found: list[int] = []
    for t in range(2, ROUNDS):
        steps = [local_steps(data, task.client, task.epochs, "epochs") for task in scheme.tasks(t)]
        shares = share_out(steps, workers)
        found.append(max(sum(steps[slot] for slot in own if slot is not None) for own in shares))
    return found


def measured(given: list[str]) -> list[float]:
    """Seconds of the same rounds."""
    result = execute(compose(given), given, Console(file=StringIO()))
    return [float(row["time/round"] or 0) for row in rows.read(result.folder / "metrics.jsonl")][1:-1]


def main() -> None:
    torch.set_num_threads(1)
    with kept():
        step = fit([cost(point) for point in SEEN], [seconds(point) for point in SEEN])
    for point in CASES:
        counted: Cost = cost(point)
        for workers in (1, 2):
            with tempfile.TemporaryDirectory() as home:
                given = words(point, workers, home)
                said = [n * float(np.dot(step, counted)) + FIXED for n in busiest(given, workers)]
                took = measured(given)
            a, b = statistics.median(said), statistics.median(took)
            print(
                f"depth {point[0]}, width {point[1]}, {point[2]}x{point[2]}, batch {point[3]}, {workers} "
                f"worker(s): model {a:.2f} s, measured {b:.2f} s a round, {100 * (a / b - 1):+.0f} %",
                flush=True,
            )


if __name__ == "__main__":
    main()
