"""Constructed runs for tests of the claims."""

from itertools import pairwise

import numpy as np

from fedgm.results.run import Run
from fedgm.study.verdict import Evidence
from fedgm.tasks.metric import ACCURACY


def made(
    seed=0, test=(), train=None, loss=None, status="finished", every=5, rounds=None, ends=None, classes=10
) -> Run:
    """A run whose evaluations are ``test``; training accuracy is the same unless given."""
    n = len(test)
    total = rounds or every * n
    columns = {
        "test/acc": test,
        "train/acc": test if train is None else train,
        "train/loss": loss or [1.0] * n,
    }
    rows = [
        {"round": every * (i + 1), **{key: column[i] for key, column in columns.items()}} for i in range(n)
    ]
    lengths = [b - a for a, b in pairwise((0, *(ends or (total,))))]
    facts = {"hash": str(test), "seed": seed, "status": status, "rounds": total, "rounds_done": every * n}
    facts |= {"classes": classes, "stages": [{"rounds": length} for length in lengths]}
    return Run(facts, {"eval.every": every}, rows)


def flat(seed, level, n=25, **more) -> Run:
    """A run that measures the same value all the time."""
    return made(seed, [level] * n, **more)


def wobbling(seed, amplitude, level=0.5, n=25, **more) -> Run:
    """A run that jumps around its level by ``amplitude``, up and down in turn; seeds differ a little."""
    size = amplitude * (1 + 0.05 * seed)
    return made(seed, [level + (-1) ** i * size for i in range(n)], **more)


def noisy(rng: np.random.Generator, level: float, spread: float, seed: int) -> Run:
    """A run whose level is drawn once for its seed."""
    return flat(seed, float(level + spread * rng.standard_normal()))


def evidence(seeds, **lines) -> Evidence:
    """Lines given by their runs; double underscores stand for the slash of another figure's line."""
    runs = {key.replace("__", "/"): {run.seed: run for run in runs} for key, runs in lines.items()}
    return Evidence(ACCURACY, tuple(seeds), runs)
