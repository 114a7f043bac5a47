"""The plan of a run: stages of constant (eta, beta, nu), and which of them a round belongs to."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, NamedTuple

from fedgm.server.rule import Hyper


class Stage(NamedTuple):
    """``rounds`` server rounds at constant hyperparameters."""

    rounds: int
    hyper: Hyper


@dataclass(frozen=True)
class Plan:
    """Which hyperparameters hold in which round.

    >>> plan = Plan((Stage(2, {"eta": 2.0}), Stage(3, {"eta": 1.0})))
    >>> plan.ends
    [2, 5]
    >>> plan.at(3)
    (2, {'eta': 1.0})
    """

    stages: tuple[Stage, ...]

    @property
    def ends(self) -> list[int]:
        """The last round of each stage; the last end is T."""
        return list(accumulate(s.rounds for s in self.stages))

    def at(self, t: int) -> tuple[int, Hyper]:
        """Stage number (from 1) and hyperparameters of round ``t`` (from 1)."""
        for number, (end, stage) in enumerate(zip(self.ends, self.stages, strict=True), start=1):
            if t <= end:
                return number, stage.hyper
        raise ValueError(
            f"round {t} has no stage: the schedule's {len(self.stages)} stages end after round "
            f"{self.ends[-1]}. Set rounds={self.ends[-1]}, or lengthen the last stage."
        )

    def after(self, t: int) -> Hyper:
        """Hyperparameters of the step that follows round ``t``; after the last, those of the last."""
        return self.at(min(t + 1, self.ends[-1]))[1]


@dataclass(frozen=True)
class Decided(Plan, ABC):
    """A plan whose later stages are decided during the run: the stages are those that are known by now.

    The last of them is taken to last until the end, which is what happens unless a round changes it.
    """

    @property
    def is_over(self) -> bool:
        """Whether nothing is left to decide."""
        return False

    @abstractmethod
    def observe(self, row: Mapping[str, float | int | None]) -> None:
        """After a round: end the stage, or let it go on."""

    @abstractmethod
    def state_dict(self) -> dict[str, Any]:
        """What a checkpoint keeps."""

    @abstractmethod
    def load_state_dict(self, content: Mapping[str, Any]) -> None:
        """Continue with it."""

    def next_stage(self, t: int, hyper: Hyper) -> None:
        """From round t + 1 on ``hyper`` holds; after the last round nothing changes."""
        rounds = self.ends[-1]
        if t < rounds:
            *before, last = self.stages
            kept = Stage(last.rounds - (rounds - t), last.hyper)
            object.__setattr__(self, "stages", (*before, kept, Stage(rounds - t, hyper)))
