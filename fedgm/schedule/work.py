"""Schedules of local work: epochs, rate and batch size of clients, stage by stage."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import NamedTuple, Protocol

from fedgm.errors import require, require_fits
from fedgm.schedule.plan import Plan, stage_lengths


class Work(NamedTuple):
    """What clients do in a round; None is as ``local.*`` says."""

    epochs: int | None = None
    lr: float | None = None
    batch_size: int | None = None


class Local(NamedTuple):
    """``local.*``, which the first stage starts from."""

    epochs: int
    lr: float
    batch_size: int
    unit: str


AS_CONFIGURED = Work()


class WorkSchedule(Protocol):
    """One small class and one yaml each; ``changes`` lists the keys of ``local`` that it sets."""

    @property
    def changes(self) -> tuple[str, ...]:
        """Of epochs, lr and batch_size those that differ from round to round."""
        ...

    def stages(self, rounds: int, plan: Plan, local: Local) -> list[tuple[int, Work]]:
        """The last round of each stage, and its work; checked here, before training."""
        ...


def at(stages: Sequence[tuple[int, Work]], t: int) -> Work:
    """The work of round ``t``.

    >>> at([(3, Work(epochs=1)), (9, Work(epochs=8))], t=4)
    Work(epochs=8, lr=None, batch_size=None)
    """
    return next((work for end, work in stages if t <= end), stages[-1][1])


@dataclass(frozen=True)
class Constant:
    """``work=constant``: local.* in every round."""

    @property
    def changes(self) -> tuple[str, ...]:
        """Nothing."""
        return ()

    def stages(self, rounds: int, plan: Plan, local: Local) -> list[tuple[int, Work]]:
        """One."""
        return [(rounds, AS_CONFIGURED)]


@dataclass(frozen=True)
class Stages:
    """``work=stages``: lists of one entry for each stage; those of the server's plan, or of ``lengths``.

    >>> from fedgm.schedule import Multistage
    >>> from fedgm.server import GeneralMomentum
    >>> rule = GeneralMomentum(eta=2.0, beta=0.9, nu=0.9)
    >>> plan = Multistage([2.0, 1.0]).plan(30, rule)
    >>> Stages(lrs=[0.1, 0.05]).stages(30, plan, Local(3, 0.1, 10, "epochs"))[1]
    (30, Work(epochs=None, lr=0.05, batch_size=None))
    """

    epochs: Sequence[int] | None = None
    lrs: Sequence[float] | None = None
    batch_sizes: Sequence[int] | None = None
    lengths: Sequence[int] | None = None

    def __post_init__(self) -> None:
        for name, values, low in (("epochs", self.epochs, 1), ("batch_sizes", self.batch_sizes, 1)):
            ok = values is None or all(value >= low for value in values)
            require(ok, f"work.{name}", values, f"each at least {low}", f"work.{name}=null")
        ok = self.lrs is None or all(0 < lr < inf for lr in self.lrs)
        require(ok, "work.lrs", self.lrs, "positive numbers", "work.lrs=null")
        ok = self.lengths is None or all(length >= 1 for length in self.lengths)
        require(ok, "work.lengths", self.lengths, "each at least 1", "work.lengths=null")

    @property
    def changes(self) -> tuple[str, ...]:
        """The lists that are given."""
        given = {"epochs": self.epochs, "lr": self.lrs, "batch_size": self.batch_sizes}
        return tuple(name for name, values in given.items() if values is not None)

    def stages(self, rounds: int, plan: Plan, local: Local) -> list[tuple[int, Work]]:
        """One entry of each list for each stage."""
        if self.lengths is None:
            ends = plan.ends
        else:
            ends = [sum(self.lengths[: i + 1]) for i in range(len(self.lengths))]
            reason = f"work.lengths add up to {ends[-1]}"
            require_fits(
                ends[-1] == rounds, "rounds", rounds, reason, f"rounds={ends[-1]}, or work.lengths=null"
            )
        for name, values in (("epochs", self.epochs), ("lrs", self.lrs), ("batch_sizes", self.batch_sizes)):
            ok, reason = values is None or len(values) == len(ends), f"there are {len(ends)} stages"
            require_fits(ok, f"work.{name}", values, reason, f"{len(ends)} entries, or work.{name}=null")
        none = [None] * len(ends)
        rows = zip(self.epochs or none, self.lrs or none, self.batch_sizes or none, strict=True)
        return [(end, Work(*row)) for end, row in zip(ends, rows, strict=True)]


def half_up(value: float) -> int:
    """Rounded half up, at least 1.

    >>> half_up(2.5), half_up(0.2)
    (3, 1)
    """
    return max(1, int(value + 0.5))


@dataclass(frozen=True)
class BatchGrowth:
    """``work=batch_growth``: larger batches instead of a smaller eta (Smith 2018), or in step with eta.

    ``instead``: eta stays, and B_s = round(B_1 eta_1/eta_s) over stages at ``etas``, as long as Eq. 3 makes
    them. ``scale``: the plan's own etas, and B_s = round(B_1 eta_s/eta_1), so that eta/B stays. Smith's noise
    scale eta/((1-beta) B) is of summed momentum; the eta of Eq. 2 is damped, so eta/B is what counts.

    >>> from fedgm.schedule import Constant
    >>> from fedgm.server import GeneralMomentum
    >>> plan = Constant().plan(70, GeneralMomentum(eta=2.0, beta=0.9, nu=0.9))
    >>> growth = BatchGrowth("instead", etas=[2.0, 1.0, 0.5])
    >>> [(end, work.batch_size) for end, work in growth.stages(70, plan, Local(3, 0.1, 10, "epochs"))]
    [(10, 10), (30, 20), (70, 40)]
    """

    form: str = "instead"
    etas: Sequence[float] | None = None

    def __post_init__(self) -> None:
        ok = self.form in ("instead", "scale")
        require(ok, "work.form", self.form, "instead or scale", "work.form=instead")
        ok = self.etas is None or all(0 < eta < inf for eta in self.etas)
        require(ok, "work.etas", self.etas, "positive numbers", "work.etas=[2.0,1.0,0.5]")
        needs = bool(self.etas) == (self.form == "instead")
        reason = "form=instead takes stages from work.etas, form=scale from the schedule"
        require_fits(
            needs, "work.etas", self.etas, reason, "work.etas=[2.0,1.0,0.5], or null with form=scale"
        )

    @property
    def changes(self) -> tuple[str, ...]:
        """The batch size alone."""
        return ("batch_size",)

    def stages(self, rounds: int, plan: Plan, local: Local) -> list[tuple[int, Work]]:
        """B_s of each stage."""
        if self.etas:
            lengths, etas = stage_lengths(rounds, self.etas), [float(eta) for eta in self.etas]
            ends = [sum(lengths[: i + 1]) for i in range(len(lengths))]
            sizes = [half_up(local.batch_size * etas[0] / eta) for eta in etas]
        else:
            ends, etas = plan.ends, [stage.hyper["eta"] for stage in plan.stages]
            sizes = [half_up(local.batch_size * eta / etas[0]) for eta in etas]
        return [(end, Work(batch_size=size)) for end, size in zip(ends, sizes, strict=True)]


@dataclass(frozen=True)
class PostLocal:
    """``work=post_local`` (Lin 2020): one local step in the first ``share`` of the rounds, then local.epochs.

    >>> from fedgm.schedule import Constant
    >>> from fedgm.server import GeneralMomentum
    >>> plan = Constant().plan(10, GeneralMomentum(eta=1.0, beta=0.0, nu=0.0))
    >>> [(end, work.epochs) for end, work in PostLocal(0.5).stages(10, plan, Local(8, 0.1, 10, "steps"))]
    [(5, 1), (10, 8)]
    """

    share: float = 0.5

    def __post_init__(self) -> None:
        require(0 < self.share < 1, "work.share", self.share, "between 0 and 1", "work.share=0.5")

    @property
    def changes(self) -> tuple[str, ...]:
        """Local steps."""
        return ("epochs",)

    def stages(self, rounds: int, plan: Plan, local: Local) -> list[tuple[int, Work]]:
        """One step, then H."""
        reason = "post-local SGD counts local steps, and local.epochs is H"
        require_fits(local.unit == "steps", "work", "post_local", reason, "local.unit=steps")
        switch = half_up(self.share * rounds)
        return [(min(switch, rounds), Work(epochs=1)), (rounds, Work(epochs=local.epochs))]
