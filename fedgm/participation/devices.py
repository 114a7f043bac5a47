"""The clients' hardware and habits, drawn when asked for: a million clients cost as much as ten.

Times are virtual seconds. A client's speed and phase belong to it; its network delay and whether it drops
out belong to one piece of work, numbered by the clock.
"""

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fedgm.draws import generator
from fedgm.errors import ConfigError, require

LARGEST = 2**28  # bytes of a file of speeds: thirty million clients


@dataclass(frozen=True)
class Devices:
    """How long a client takes, when it can start, and whether it comes back.

    >>> Devices(seed=0, step_time=0.5).seconds(client=3, steps=10, work=1)
    5.0
    """

    seed: int
    step_time: float = 1.0  # seconds of a local step at speed 1
    speed_sigma: float = 0.0  # speeds are log-normal with median 1; 0: all alike
    speeds: str | None = None  # file of speeds, one a client, cycled; replaces the log-normal draw
    network: float = 0.0  # mean seconds of fetching and sending together; exponential
    available: float = 1.0  # fraction of each period in which a client may start
    period: float = 3600.0
    dropout: float = 0.0  # probability that a client that started never returns
    _table: NDArray[np.float64] | None = field(init=False, repr=False, default=None)

    def __post_init__(self) -> None:
        for name, example in (("step_time", 0.1), ("speed_sigma", 0.5), ("network", 1.0)):
            value = getattr(self, name)
            _require(0 <= value < np.inf, name, value, "a number of at least 0", example)
        _require(0 < self.available <= 1, "available", self.available, "0 < available <= 1", 0.5)
        _require(0 < self.period < np.inf, "period", self.period, "a positive number of seconds", 3600)
        _require(0 <= self.dropout < 1, "dropout", self.dropout, "0 <= dropout < 1", 0.1)
        if self.speeds is not None:
            object.__setattr__(self, "_table", read_speeds(self.speeds))

    def speed(self, client: int) -> float:
        """Relative speed: at 2.0 a local step takes half of ``step_time``."""
        if self._table is not None:
            return float(self._table[client % len(self._table)])
        if self.speed_sigma == 0:
            return 1.0
        return float(generator(self.seed, "speed", client=client).lognormal(0.0, self.speed_sigma))

    def seconds(self, client: int, steps: int, work: int) -> float:
        """Seconds of the piece of work with number ``work``: ``steps`` local steps, and the network."""
        compute = steps * self.step_time / self.speed(client)
        if self.network == 0:
            return compute
        return compute + float(generator(self.seed, "network", work, client).exponential(self.network))

    def opening(self, client: int, now: float) -> float:
        """``now`` if the client may start, else when its next window opens."""
        if self.available >= 1:
            return now
        phase = generator(self.seed, "phase", client=client).random() * self.period
        position = (now + phase) % self.period
        return now if position < self.available * self.period else now + self.period - position

    def drops(self, client: int, work: int) -> bool:
        """Whether the client never returns from this piece of work."""
        return self.dropout > 0 and bool(
            generator(self.seed, "dropout", work, client).random() < self.dropout
        )


def read_speeds(path: str) -> NDArray[np.float64]:
    """Positive numbers from an ``.npy`` array, or one a line from text or CSV (after a header or not)."""
    try:
        if not Path(path).is_file():  # reading a pipe might never end
            raise OSError("there is no such file")
        if Path(path).stat().st_size > LARGEST:
            raise OSError(f"it has more than {LARGEST:,} bytes")
        values = np.load(path, allow_pickle=False) if path.endswith(".npy") else _lines(Path(path))
        numbers = np.asarray(values, np.float64).ravel()
    except (OSError, ValueError, MemoryError) as error:  # an array can claim any size
        raise _unreadable(path, str(error)) from None
    if len(numbers) == 0 or not (np.isfinite(numbers).all() and numbers.min() > 0):
        raise _unreadable(path, "it needs at least one speed, and every speed must be a positive number")
    return numbers


def _lines(path: Path) -> list[float]:
    lines = [line.split("#")[0].strip() for line in path.read_text().splitlines()]
    lines = [line for line in lines if line]
    if lines and not any(character.isdigit() for character in lines[0]):
        lines = lines[1:]
    return [float(line) for line in lines]


def _unreadable(path: str, reason: str) -> ConfigError:
    allowed = f"a .npy, .txt or .csv file with one positive number a client ({reason})"
    return ConfigError("participation.speeds", path, allowed, "participation.speeds=null for drawn speeds")


def _require(ok: bool, name: str, value: object, allowed: str, example: object) -> None:
    require(ok, f"participation.{name}", value, allowed, f"participation.{name}={example}")
