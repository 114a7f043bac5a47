"""The one clock of the project: no duration is negative, and no rate divides by a clock that stood still.

Clocks of virtual machines may step by 4 ms or more, stand still for a whole round, or go back.
"""

import time


class Stopwatch:
    """Seconds since it was started, in steps as coarse as the machine's clock."""

    def __init__(self) -> None:
        self._start = time.perf_counter()

    def seconds(self) -> float:
        """Since the start; 0 where the clock stood still or went back."""
        return max(0.0, time.perf_counter() - self._start)


def rate(amount: float, seconds: float) -> float | None:
    """Amount a second; None where no time has passed."""
    return amount / seconds if seconds > 0 else None


def wall() -> float:
    """Seconds since 1970, by a clock that anyone may set back."""
    return time.time()


def steady() -> float:
    """Seconds since some moment, by a clock that nobody sets back: for deadlines."""
    return time.monotonic()
