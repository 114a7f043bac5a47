"""A schedule: eta is halved every few rounds."""

from dataclasses import dataclass

from fedgm.schedule.every_round import Curve


@dataclass(frozen=True)
class Halving(Curve):
    """eta_t = eta / 2^((t-1) // every)."""

    every: int

    def factor(self, t: int, rounds: int) -> float:
        return 0.5 ** ((t - 1) // self.every)
