"""Stages given one by one, held against Eq. 3."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import inf, isfinite
from warnings import warn

from fedgm.errors import require, require_fits
from fedgm.schedule.plan import Plan, Stage, stage_lengths
from fedgm.server.momentum import GeneralMomentum, Momentum, momentum_constant, staged_beta
from fedgm.server.rule import Hyper, ServerRule

W1_TOLERANCE = 0.005  # relative: betas typed with four digits pass


def length_constant(stage: Stage) -> float:
    """W2 = T_s eta_s, which Eq. 3 keeps constant over stages.

    >>> length_constant(Stage(143, {"eta": 2.0}))
    286.0
    """
    return stage.rounds * stage.hyper["eta"]


def violations(stages: Sequence[Stage]) -> list[str]:
    """Each constraint of Eq. 3 that the stages break, and by how much; empty if they keep all.

    Whole rounds keep W2 only to within max(eta), so that much is allowed.

    >>> violations([Stage(10, {"eta": 1.0}), Stage(5, {"eta": 2.0})])
    ['eta must not increase, but rises by 1 in stage 2']
    """
    broken: list[str] = []
    for number, (a, b) in enumerate(pairwise(stages), start=2):
        rise = b.hyper["eta"] - a.hyper["eta"]
        if rise > 0:
            broken.append(f"eta must not increase, but rises by {rise:.4g} in stage {number}")
        fall = a.hyper.get("beta", 0.0) - b.hyper.get("beta", 0.0)
        if fall > 1e-12:
            broken.append(f"beta must not decrease, but falls by {fall:.4g} in stage {number}")
    return broken + _moved_momentum(stages) + _moved_length(stages)


def _moved_momentum(stages: Sequence[Stage]) -> list[str]:
    """Where W1 leaves its value in stage 1."""
    triples = [Momentum(**s.hyper) for s in stages if s.hyper.keys() == {"eta", "beta", "nu"}]
    constants = [momentum_constant(m) for m in triples]
    return [
        f"W1 = eta*beta*nu/(1-beta) must stay {constants[0]:.4g}, but is {W1:.4g} in stage {number}"
        for number, W1 in enumerate(constants, start=1)
        if abs(W1 - constants[0]) > W1_TOLERANCE * max(abs(constants[0]), 1e-9)
    ]


def _moved_length(stages: Sequence[Stage]) -> list[str]:
    """Where W2 is further than max(eta) from the common value that fills the same rounds."""
    etas = [s.hyper["eta"] for s in stages]
    common = sum(s.rounds for s in stages) / sum(1 / eta for eta in etas)
    return [
        f"W2 = T_s*eta_s must be {common:.4g} to within max(eta) = {max(etas):g}, "
        f"but is {length_constant(stage):.4g} in stage {number}"
        for number, stage in enumerate(stages, start=1)
        if abs(length_constant(stage) - common) > max(etas) + 1e-9
    ]


@dataclass(frozen=True)
class Stages:
    """Parallel lists, one entry for each stage; what is None follows from Eq. 3.

    ``betas`` follow W1 from the algorithm's own beta, ``nus`` are the algorithm's, ``lengths`` follow W2.
    In FedGM's family ``etas`` are eta; another rule's eta, which has its own scale, is multiplied by them.
    Lists that break Eq. 3 are run as they are, with a warning.

    >>> from fedgm.server import GeneralMomentum
    >>> plan = Stages([2.0, 1.0], lengths=[1, 2]).plan(3, GeneralMomentum(eta=2.0, beta=0.5, nu=0.5))
    >>> [stage.hyper["beta"] for stage in plan.stages]
    [0.5, 0.6666666666666666]
    """

    etas: Sequence[float]
    betas: Sequence[float] | None = None
    nus: Sequence[float] | None = None
    lengths: Sequence[int] | None = None

    def __post_init__(self) -> None:
        legal = bool(self.etas) and all(0 < eta < inf for eta in self.etas)
        require(legal, "schedule.etas", list(self.etas), "positive numbers", "schedule.etas=[2.0,1.0,0.5]")
        for name, values in (("betas", self.betas), ("nus", self.nus), ("lengths", self.lengths)):
            self._check_count(name, values)
        legal = all(0 <= beta < 1 for beta in self.betas or ())
        require(
            legal, "schedule.betas", self.betas, "each 0 <= beta < 1", "schedule.betas=null, to follow W1"
        )
        legal = all(isfinite(nu) for nu in self.nus or ())
        require(legal, "schedule.nus", self.nus, "finite numbers", "schedule.nus=null, to keep algorithm.nu")
        legal = all(length >= 1 for length in self.lengths or ())
        require(
            legal, "schedule.lengths", self.lengths, "each at least 1", "schedule.lengths=null, for Eq. 3"
        )

    def plan(self, rounds: int, rule: ServerRule) -> Plan:
        """The stages as given, with a warning for every constraint of Eq. 3 that they break."""
        lengths = [*self.lengths] if self.lengths else stage_lengths(rounds, self.etas)
        allowed = f"schedule.lengths=[{','.join(map(str, lengths))}] add up to {sum(lengths)}"
        hint = f"rounds={sum(lengths)}, or schedule.lengths=null for those of Eq. 3"
        require_fits(sum(lengths) == rounds, "rounds", rounds, allowed, hint)
        stages = tuple(map(Stage, lengths, self._hypers(rule)))
        if broken := violations(stages):
            warn(f"schedule=stages breaks Eq. 3, and runs as it is: {'; '.join(broken)}", stacklevel=2)
        return Plan(stages)

    def _hypers(self, rule: ServerRule) -> list[Hyper]:
        """Hyperparameters of each stage."""
        unit = 1.0 if isinstance(rule, GeneralMomentum) else rule.hyper["eta"]
        followed = [rule.follow(unit * eta, first=unit * self.etas[0]) for eta in self.etas]
        if self.betas is None and self.nus is None:
            return followed
        general = isinstance(rule, GeneralMomentum)
        key = "schedule.betas" if self.betas else "schedule.nus"
        require_fits(
            general, key, self.betas or self.nus, "this algorithm has no beta and nu to set", f"{key}=null"
        )
        assert isinstance(rule, GeneralMomentum)  # for the type checker
        nus = [float(nu) for nu in self.nus or self._nus_of(rule)]
        betas = [float(beta) for beta in self.betas or self._followed_betas(rule.beta, nus)]
        return [
            {"eta": float(eta), "beta": beta, "nu": nu}
            for eta, beta, nu in zip(self.etas, betas, nus, strict=True)
        ]

    def _nus_of(self, rule: GeneralMomentum) -> Sequence[float]:
        """The algorithm's nu in every stage, or the given betas where nu is tied to beta (FedNAG)."""
        return self.betas if rule.nu_is_beta and self.betas else [rule.nu] * len(self.etas)

    def _followed_betas(self, beta: float, nus: Sequence[float]) -> list[float]:
        """The betas that keep the first stage's W1 under the given nus."""
        W1 = momentum_constant(Momentum(float(self.etas[0]), beta, nus[0]))
        same = [beta] * len(nus)
        return same if W1 == 0 else [staged_beta(W1, eta, nu) for eta, nu in zip(self.etas, nus, strict=True)]

    def _check_count(self, name: str, values: Sequence[float] | None) -> None:
        """One entry for each stage."""
        n = len(self.etas)
        ok = values is None or len(values) == n
        require_fits(
            ok,
            f"schedule.{name}",
            values,
            f"schedule.etas has {n} entries",
            f"{n} entries, or schedule.{name}=null",
        )
