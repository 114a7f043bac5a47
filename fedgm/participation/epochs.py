"""How long a client trains: uniform in an inclusive range, by (seed, round, client)."""

from collections.abc import Sequence

from fedgm.draws import generator
from fedgm.errors import require

KEY = "participation.epochs"


def epoch_range(epochs: Sequence[int]) -> tuple[int, int]:
    """The range as (low, high), or the error that says what to type."""
    allowed = "two whole numbers [low, high] with 0 <= low <= high and high >= 1"
    ok = len(epochs) == 2 and 0 <= epochs[0] <= epochs[1] >= 1
    require(ok, KEY, list(epochs), allowed, f"{KEY}=[1,6]")
    return epochs[0], epochs[1]


def draw_epochs(bounds: tuple[int, int], seed: int, t: int, client: int, attempt: int = 0) -> int:
    """Local epochs of ``client`` in round ``t``; a later ``attempt`` is a further draw of the same stream."""
    low, high = bounds
    if low == high:
        return low
    return int(generator(seed, "epochs", t, client).integers(low, high + 1, size=attempt + 1)[-1])
