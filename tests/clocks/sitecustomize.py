"""Coarse and unreliable clocks, for every process that has this folder on its PYTHONPATH (``make test-all``).

``FEDGM_CLOCK_STEP=0.02``: clocks step by 20 ms. ``FEDGM_CLOCK_STEP=inf``: ``time.perf_counter`` stands still.
``FEDGM_CLOCK_BACK=0.5``: ``time.time`` jumps back by an hour every half second, and forward again.
"""

import math
import os
import time
from collections.abc import Callable

Clock = Callable[[], float]


def unreliable(step: float, back: float) -> dict[str, Clock]:
    """What stands in for functions of ``time``, by name."""
    perf, monotonic, wall, began = time.perf_counter, time.monotonic, time.time, time.time()
    clocks: dict[str, Clock] = {}
    if step == math.inf:
        still = perf()
        clocks["perf_counter"] = lambda: still
    elif step:
        clocks["perf_counter"] = lambda: math.floor(perf() / step) * step
        clocks["monotonic"] = lambda: math.floor(monotonic() / step) * step
        clocks["time"] = lambda: math.floor(wall() / step) * step
    if back:
        clocks["time"] = lambda: wall() - 3600 * (int((wall() - began) / back) % 2)
    return clocks


for _name, _clock in unreliable(
    float(os.environ.get("FEDGM_CLOCK_STEP", 0)), float(os.environ.get("FEDGM_CLOCK_BACK", 0))
).items():
    setattr(time, _name, _clock)
