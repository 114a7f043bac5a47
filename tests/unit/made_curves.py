"""Constructed runs for tests of the claims."""

import numpy as np

from fedgm.results.judged_run import JudgedRun, Measure
from fedgm.study.verdict import Evidence

MEASURE = Measure("acc", "accuracy", 100.0)


def made(
    seed=0, test=(), train=None, loss=None, status="finished", every=5, rounds=None, ends=None
) -> JudgedRun:
    """A run whose evaluations are ``test``; training accuracy is the same unless given."""
    n = len(test)
    measured = tuple(every * (i + 1) for i in range(n))
    values = {"test/acc": tuple(test), "train/acc": tuple(train if train is not None else test)}
    values["train/loss"] = tuple(loss if loss is not None else [1.0] * n)
    total = rounds or every * n
    return JudgedRun(seed, status, total, every, measured, values, tuple(ends or (total,)), "test/acc", 10)


def flat(seed, level, n=25, **more) -> JudgedRun:
    """A run that measures the same value all the time."""
    return made(seed, [level] * n, **more)


def wobbling(seed, amplitude, level=0.5, n=25, **more) -> JudgedRun:
    """A run that jumps around its level by ``amplitude``, up and down in turn; seeds differ a little."""
    size = amplitude * (1 + 0.05 * seed)
    return made(seed, [level + (-1) ** i * size for i in range(n)], **more)


def noisy(rng: np.random.Generator, level: float, spread: float, seed: int) -> JudgedRun:
    """A run whose level is drawn once for its seed."""
    return flat(seed, float(level + spread * rng.standard_normal()))


def evidence(seeds, **lines) -> Evidence:
    """Lines given by their runs; double underscores stand for the slash of another figure's line."""
    runs = {key.replace("__", "/"): {run.seed: run for run in own} for key, own in lines.items()}
    return Evidence(MEASURE, tuple(seeds), runs)
