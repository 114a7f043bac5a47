"""Coarse and unreliable clocks, for every process that has this folder on its PYTHONPATH (``make test-all``).

``FEDGM_CLOCK_STEP=0.02``: clocks step by 20 ms. ``FEDGM_CLOCK_STEP=inf``: ``time.perf_counter`` stands still.
``FEDGM_CLOCK_BACK=0.5``: ``time.time`` jumps back by an hour every half second, and forward again.
``FEDGM_CLOCK_AHEAD=86400``: ``time.time`` is a day ahead.
"""

import math
import os
import time
from collections.abc import Callable

Clock = Callable[[], float]


def unreliable(step: float, back: float, ahead: float = 0.0) -> dict[str, Clock]:
    """What stands in for functions of ``time``, by name."""
    perf, monotonic, true, began = time.perf_counter, time.monotonic, time.time, time.time()

    def wall() -> float:
        now = true() + ahead - (3600 * (int((true() - began) / back) % 2) if back else 0)
        return math.floor(now / step) * step if 0 < step < math.inf else now

    clocks: dict[str, Clock] = {}
    if step == math.inf:
        still = perf()
        clocks["perf_counter"] = lambda: still
    elif step:
        clocks["perf_counter"] = lambda: math.floor(perf() / step) * step
        clocks["monotonic"] = lambda: math.floor(monotonic() / step) * step
    if back or ahead or 0 < step < math.inf:
        clocks["time"] = wall
    return clocks


for _name, _clock in unreliable(
    *(float(os.environ.get(f"FEDGM_CLOCK_{_word}", 0)) for _word in ("STEP", "BACK", "AHEAD"))
).items():
    setattr(time, _name, _clock)
