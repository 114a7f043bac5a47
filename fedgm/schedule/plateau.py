"""Stages that end when the loss saturates: a plan that is decided during the run."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Any

from fedgm.errors import require
from fedgm.schedule.plan import Stage
from fedgm.server.plan import Decided
from fedgm.server.rule import ServerRule


@dataclass(frozen=True)
class Watched(Decided):
    """A plan that drops eta where the losses that it watches no longer fall."""

    rule: ServerRule = field(repr=False)
    rates: "Plateau" = field(repr=False)
    losses: list[float] = field(default_factory=list[float])  # since the last drop

    def observe(self, row: Mapping[str, float | int | None]) -> None:
        """eta drops once the mean of the last p losses is not ``threshold`` below that of the p before."""
        loss, t = row.get(self.rates.watch), row.get("round")
        if loss is None or t is None:
            return
        self.losses.append(float(loss))
        p = self.rates.patience
        if len(self.losses) < 2 * p:
            return
        late, early = self.losses[-p:], self.losses[-2 * p : -p]
        if sum(early) / p - sum(late) / p < self.rates.threshold:
            self.losses.clear()
            first, eta = self.stages[0].hyper["eta"], self.stages[-1].hyper["eta"] * self.rates.factor
            self.next_stage(int(t), self.rule.follow(eta, first))

    def state_dict(self) -> dict[str, Any]:
        """Stages so far, and the losses since the last drop."""
        return {
            "stages": [[stage.rounds, dict(stage.hyper)] for stage in self.stages],
            "losses": [*self.losses],
        }

    def load_state_dict(self, content: Mapping[str, Any]) -> None:
        """Continue with the stages of a checkpoint."""
        stages = tuple(Stage(rounds, dict(hyper)) for rounds, hyper in content["stages"])
        object.__setattr__(self, "stages", stages)
        self.losses[:] = content["losses"]


@dataclass(frozen=True)
class Plateau:
    """The paper's "decay whenever the loss saturates"; what saturates means is this project's choice.

    ``watch`` is a column of the rows; it is looked at in the rounds that measure it. Over the last 2 p of its
    values since the last drop: once the mean of the later p is not at least ``threshold`` below that of the
    earlier p, eta becomes ``factor`` eta, and beta keeps W1, as in Eq. 3.

    >>> from fedgm.server import GeneralMomentum
    >>> rule = GeneralMomentum(eta=2.0, beta=0.5, nu=0.5)
    >>> plan = Plateau(patience=1, threshold=0.1, factor=0.5).plan(9, rule)
    >>> for t, loss in enumerate([3.0, 2.0, 1.95, 1.0], start=1):
    ...     plan.observe({"round": t, "train/loss": loss})
    >>> plan.ends, plan.at(4)
    ([3, 9], (2, {'eta': 1.0, 'beta': 0.6666666666666666, 'nu': 0.5}))
    """

    patience: int = 5
    threshold: float = 0.01
    factor: float = 0.5
    watch: str = "train/loss"

    def __post_init__(self) -> None:
        ok = self.patience >= 1
        require(ok, "schedule.patience", self.patience, "at least 1 evaluation", "schedule.patience=5")
        ok = 0 <= self.threshold < inf
        require(ok, "schedule.threshold", self.threshold, "a number of at least 0", "schedule.threshold=0.01")
        ok = 0 < self.factor < 1
        require(ok, "schedule.factor", self.factor, "between 0 and 1", "schedule.factor=0.5")
        columns = ("train/loss", "test/loss", "local/loss")
        allowed = " or ".join(columns)
        require(self.watch in columns, "schedule.watch", self.watch, allowed, "schedule.watch=train/loss")

    def plan(self, rounds: int, rule: ServerRule) -> Watched:
        """One stage, until a round ends it."""
        return Watched((Stage(rounds, rule.hyper),), rule, self)
