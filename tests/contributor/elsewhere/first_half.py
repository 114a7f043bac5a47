"""A claim: one line is ahead of another in the first half of the rounds."""

from fedgm.results.run import Run
from fedgm.study.claim_parts import Better
from fedgm.study.claims import Claim


def _first_half(run: Run) -> tuple[float, float]:
    return 0, run.rounds / 2


def claim(a: str, b: str) -> Claim:
    """By the area under test accuracy."""
    part = Better(a, b, over=_first_half, period="over the first half")
    return Claim("mine", f"{a} is faster than {b} at first", (part,))


AHEAD = claim("fedavgm", "fedavg")
