"""Seconds of a whole round from a cost model, against runs of models that it has not seen.

    python -m benchmarks.whole_round [--page]

A round = the local steps of the busiest worker x seconds of a step (benchmarks.cost_model) + what a round
takes besides (benchmarks.overhead: fixed, by weights and clients of that worker, by weights). Both are fitted
here, on other models. Measured from the start of a round to the start of the next; none is evaluated.
"""

import argparse
import statistics
import tempfile
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks import overhead
from benchmarks.cost_model import Point, checked, cost, steps_fitted
from benchmarks.fixed_cost import Clock
from benchmarks.page import rows, show, taken
from fedgm.config import compose, validate
from fedgm.data.clients import local_steps
from fedgm.federated.workers import share_out
from fedgm.running.memory import kept
from fedgm.running.parts import build_parts
from fedgm.running.start import execute
from fedgm.screen import Screen

ROUNDS = 7  # the first warms up
# depth, width, side, batch; the last one has 1.9 million weights, a size that neither fit has
CASES: list[Point] = [(14, 24, 16, 20), (20, 16, 16, 10), (14, 16, 32, 16), (8, 80, 16, 20)]
PAGE = Path("docs/scale.md")


def words(point: Point, workers: int, home: str) -> list[str]:
    """A run of the small profile with another model."""
    depth, width, side, batch = point
    return [
        "track=none", f"model.depth={depth}", f"model.width={width}", f"data.resolution={side}",
        f"local.batch_size={batch}", "local.epochs=1", f"rounds={ROUNDS}", f"eval.every={ROUNDS}",
        f"trainer.workers={workers}", "checkpoint.sync=false", f"output_dir={home}",
    ]  # fmt: skip


def busiest(given: list[str], workers: int) -> list[tuple[int, int]]:
    """Local steps and clients of the most loaded worker in each round."""
    config = validate(compose(given))
    parts = build_parts(config)
    data, scheme = parts.load(config), parts.participation
    loads: list[tuple[int, int]] = []
    for t in range(2, ROUNDS):
        steps = [local_steps(data, task.client, task.epochs, "epochs") for task in scheme.tasks(t)]
        shares = [[steps[slot] for slot in slots if slot is not None] for slots in share_out(steps, workers)]
        loads.append(max((sum(share), len(share)) for share in shares))
    return loads


def measured(given: list[str]) -> list[float]:
    """Seconds of the same rounds, row and checkpoint included."""
    clock = Clock()
    execute(compose(given), given, Screen(quiet=True), callbacks=[clock])
    return [b - a for a, b in pairwise(clock.wall)][1:]


def predicted(
    point: Point, loads: list[tuple[int, int]], step: np.ndarray, beside: np.ndarray
) -> list[float]:
    """What the model says of the same rounds."""
    one, weights = float(np.dot(step, cost(point))), overhead.size(*point[:2])
    return [n * one + float(np.dot(beside, overhead.terms(weights, clients))) for n, clients in loads]


def compared(step: np.ndarray, beside: np.ndarray) -> list[dict[str, Any]]:
    """Medians of every case, with one worker and two."""
    comparisons: list[dict[str, Any]] = []
    for point in CASES:
        for workers in (1, 2):
            with tempfile.TemporaryDirectory() as home:
                given = words(point, workers, home)
                guess = statistics.median(predicted(point, busiest(given, workers), step, beside))
                took = statistics.median(measured(given))
            comparisons.append({"point": point, "workers": workers, "said": guess, "measured": took})
            print(comparisons[-1], flush=True)
    return comparisons


def formula(step: np.ndarray, beside: np.ndarray) -> str:
    """Both parts of the model, with their constants."""
    rate = f"FLOPs / {1e-9 / step[1]:.1f} GFLOP/s" if step[1] else "0 x FLOPs"
    return (
        f"    step  = {1e6 * step[0]:.0f} us x layers + {rate} + {1e9 * step[2]:.2f} ns x activations\n"
        f"    round = steps of the busiest worker x step + {1e3 * beside[0]:.1f} ms\n"
        f"            + {1e9 * beside[1]:.2f} ns x weights x clients of that worker"
        f" + {1e9 * beside[2]:.2f} ns x weights\n"
    )


def _model(point: Point) -> str:
    depth, width, side, batch = point
    return f"depth {depth}, width {width}, {side}x{side}, batch {batch}"


def table(result: dict[str, Any]) -> str:
    """The formula, steps that it has not seen, and whole rounds."""
    step, beside = np.array(result["step"]), np.array(result["beside"])
    errors = [one["said"] / one["measured"] - 1 for one in result["steps"] if one["seen"]]
    unseen = [
        [_model(one["point"]), f"{1e3 * one['said']:.0f} ms", f"{1e3 * one['measured']:.0f} ms",
         f"{100 * (one['said'] / one['measured'] - 1):+.0f} %"]
        for one in result["steps"] if not one["seen"]
    ]  # fmt: skip
    whole = [
        [_model(one["point"]), str(one["workers"]), f"{one['said']:.2f} s", f"{one['measured']:.2f} s",
         f"{100 * (one['said'] / one['measured'] - 1):+.0f} %"]
        for one in result["rounds"]
    ]  # fmt: skip
    return (
        f"{formula(step, beside)}\nErrors of the steps that it was fitted to: {100 * min(errors):+.0f} to "
        f"{100 * max(errors):+.0f} %.\n\n"
        f"{rows(('a step it has not seen', 'predicted', 'measured', ''), unseen)}\n"
        f"{rows(('a round it has not seen', 'workers', 'predicted', 'measured', ''), whole)}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--page", action="store_true", help="keep the results, and put them on the page")
    given = parser.parse_args()
    torch.set_num_threads(1)
    stamp = taken()
    with kept():
        step, times = steps_fitted()
    beside = overhead.fitted()
    result = {"taken": stamp, "step": step.tolist(), "beside": beside.tolist(), "steps": checked(step, times)}
    result["rounds"] = compared(step, beside)
    print(table(result))
    if given.page:
        show("cost", result, table(result), PAGE)


if __name__ == "__main__":
    main()
