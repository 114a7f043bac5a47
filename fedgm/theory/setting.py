"""What the theorems are about: a problem, a federated setting, and the symbols derived from it.

Local work and ages are read off the very tasks that a run's participation scheme hands out, so K, tau and m
are those of the configured run, whatever the scheme.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf, isclose
from typing import NamedTuple

from fedgm.errors import RefusedError, require
from fedgm.participation import ClientTask, Participation
from fedgm.participation.task import Steps
from fedgm.schedule import Plan
from fedgm.server.plan import Decided


@dataclass(frozen=True)
class Problem:
    """Constants of the assumptions, for f = mean of f_i.

    Every f_i is L-smooth; a stochastic gradient of f_i has variance at most ``sigma_l``^2; and
    mean_i ||grad f_i(x) - grad f(x)||^2 <= ``sigma_g``^2 at every x. ``sigma_max`` bounds the same norm for
    every single client, which only the corollary asks for; None where it is not known.
    """

    L: float
    sigma_l: float
    sigma_g: float
    f0_minus_fstar: float
    sigma_max: float | None = None

    def __post_init__(self) -> None:
        require(0 < self.L < inf, "L", self.L, "a positive number", "L=1.0")
        for key in ("sigma_l", "sigma_g", "f0_minus_fstar"):
            value = getattr(self, key)
            require(0 <= value < inf, key, value, "a number from 0 on", f"{key}=1.0")
        ok = self.sigma_max is None or self.sigma_g * (1 - 1e-9) <= self.sigma_max < inf
        allowed = f"at least sigma_g={self.sigma_g:g}: no mean exceeds the largest"
        require(ok, "sigma_max", self.sigma_max, allowed, f"sigma_max={self.sigma_g:g}")


class TheoryStage(NamedTuple):
    """One stage of Alg. 3: ``T`` rounds at (eta, beta, nu)."""

    T: int
    eta: float
    beta: float
    nu: float


@dataclass(frozen=True)
class Setting:
    """``m`` of ``n`` clients a round, ``K`` local steps of rate ``eta_l``, the stages of the server.

    ``tau`` is the largest delay, and ``K_law`` the (K, probability) pairs of the autonomous case
    (Alg. 4); an empty law means that every client makes ``K`` steps. ``spread`` is the smallest and the
    largest w_i K_i: an update counts as w_i K_i times delta_i/K_i. ``notes`` say what was simplified.
    """

    n: int
    m: int
    K: int
    eta_l: float
    stages: Sequence[tuple[int, float, float, float]]
    tau: int = 0
    K_law: Sequence[tuple[int, float]] = ()
    spread: tuple[float, float] = (1.0, 1.0)
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "stages", tuple(TheoryStage(*s) for s in self.stages))
        object.__setattr__(self, "K_law", tuple((int(K), float(p)) for K, p in self.K_law))
        require(self.n >= 1, "n", self.n, "at least one client", "n=100")
        require(1 <= self.m <= self.n, "m", self.m, f"1 to n={self.n}", f"m={self.n}")
        require(self.K >= 1, "K", self.K, "at least one local step", "K=75")
        require(0 < self.eta_l < inf, "eta_l", self.eta_l, "a positive number", "eta_l=0.01")
        require(self.tau >= 0, "tau", self.tau, "a delay from 0 on", "tau=4")
        require(
            len(self.stages) > 0, "stages", [], "at least one (T, eta, beta, nu)", "stages=[(500,1,.9,.9)]"
        )
        good = all(T >= 1 and 0 < eta < inf and 0 <= beta < 1 for T, eta, beta, _ in self.stages)
        require(good, "stages", self.stages, "T >= 1, eta > 0, 0 <= beta < 1", "stages=[(500,1,.9,.9)]")
        law = [p for _, p in self.K_law] or [1.0]
        good = min(law) >= 0 and isclose(sum(law), 1, abs_tol=1e-9) and all(K >= 1 for K, _ in self.K_law)
        require(
            good,
            "K_law",
            self.K_law,
            "steps K >= 1 with probabilities that sum to 1",
            "K_law=[(25,.5),(50,.5)]",
        )

    def scaled(self, factor: float) -> "Setting":
        """The same setting with every eta times ``factor``.

        Theorem 3 divides a client's update by its K. A run that multiplies it by K_ref/K instead is
        the theorem's algorithm at eta K_ref, so ask for ``setting.scaled(K_ref)``.
        """
        return replace(self, stages=tuple((T, factor * eta, beta, nu) for T, eta, beta, nu in self.stages))


class Symbols(NamedTuple):
    """The paper's abbreviations."""

    S: int  # stages
    T: int  # rounds
    bar: float  # mean eta_s
    h2: float  # mean eta_s^2
    h3: float  # mean eta_s^3
    C: float  # eta_1 / eta_S
    Cb: float  # (1 - beta_1) / (1 - beta_S): how much longer the last stage remembers than the first
    W1: float  # eta_s beta_s nu_s / (1 - beta_s); its largest size, where Eq. 3 is broken
    W2: float  # T_s eta_s; its smallest value, where rounding makes it vary
    phi1: float  # mean K
    phi2: float  # mean K^2
    phi3: float  # mean 1/K
    Kmax: int


def momentum_constants(setting: Setting) -> list[float]:
    """W1 of each stage; Eq. 3 asks for one value."""
    return [eta * beta * nu / (1 - beta) for _, eta, beta, nu in setting.stages]


def symbols(setting: Setting) -> Symbols:
    """S, T, bar, h2, h3, C, W1, W2 and the moments of K (Section 5 of the paper)."""
    etas = [eta for _, eta, _, _ in setting.stages]
    S = len(etas)
    law = [(K, p) for K, p in setting.K_law if p > 0] or [(setting.K, 1.0)]
    return Symbols(
        S=S,
        T=sum(T for T, _, _, _ in setting.stages),
        bar=sum(etas) / S,
        h2=sum(eta**2 for eta in etas) / S,
        h3=sum(eta**3 for eta in etas) / S,
        C=etas[0] / etas[-1],
        Cb=(1 - setting.stages[0][2]) / (1 - setting.stages[-1][2]),
        W1=max(abs(W1) for W1 in momentum_constants(setting)),
        W2=min(T * eta for T, eta, _, _ in setting.stages),
        phi1=sum(p * K for K, p in law),
        phi2=sum(p * K**2 for K, p in law),
        phi3=sum(p / K for K, p in law),
        Kmax=max(K for K, _ in law),
    )


def theory_stages(plan: Plan) -> tuple[TheoryStage, ...]:
    """The stages of a run's plan; the theorems cover no server rule but FedGM."""
    if isinstance(plan, Decided):
        raise RefusedError(
            "the theorems cover stages that are known before the first round; those of this schedule are "
            "decided during the run. Try schedule=constant, multistage or stages"
        )
    if plan.at(plan.ends[-1])[1] != plan.stages[-1].hyper:
        raise RefusedError(
            "the theorems cover stages of constant eta, beta and nu; this schedule changes them every round. "
            "Try schedule=constant, multistage or stages"
        )
    for stage in plan.stages:
        if not {"eta", "beta", "nu"} <= stage.hyper.keys():
            raise RefusedError(
                f"the theorems cover FedGM, whose stages have eta, beta and nu; this plan has "
                f"{sorted(stage.hyper)}. Try algorithm=fedgm, or one of its special cases"
            )
    return tuple(TheoryStage(s.rounds, s.hyper["eta"], s.hyper["beta"], s.hyper["nu"]) for s in plan.stages)


TASKS = 20_000  # as many are looked at; 4,000 rounds of the paper


class Work(NamedTuple):
    """What the theorems need to know of who does how much; ``factor`` multiplies the etas of Theorem 3."""

    m: int
    K: int
    K_law: tuple[tuple[int, float], ...]  # empty: Alg. 3
    tau: int
    factor: float
    spread: tuple[float, float]  # the smallest and the largest w_i K_i, of which ``factor`` is the mean
    notes: tuple[str, ...]


def local_work(scheme: Participation, steps: Steps, rounds: int) -> Work:
    """Alg. 3 where no client is late and all do the same epochs unweighted, else Alg. 4.

    m is the smallest cohort, since fewer clients make a larger bound. Theorem 3 divides an update by its K;
    what a run does instead, w_i delta_i = (w_i K_i) delta_i / K_i, is a factor of its etas. Clients with
    different w_i K_i are weighed unequally, so that the run does not minimise f: no theorem holds then.
    """
    cohorts = _cohorts(scheme, rounds)
    tasks = [task for cohort in cohorts for task in cohort]
    counts = [steps(task.client, task.epochs) for task in tasks]
    factors = [task.weight * K for task, K in zip(tasks, counts, strict=True)]
    K, factor = sum(counts) / len(counts), sum(factors) / len(factors)
    m, tau = min(map(len, cohorts)), scheme.history - 1
    spread, notes = (min(factors), max(factors)), _cut(len(cohorts), rounds)
    if not isclose(*spread):
        uneven = f"updates count as {spread[0]:.3g} to {spread[1]:.3g} times delta/K, {factor:.3g} on average"
        notes = (*notes, f"{uneven}, which stands in the bound. local.unit=steps makes them equal.")
    if tau == 0 and len({task.epochs for task in tasks}) == 1 and all(task.weight == 1 for task in tasks):
        return Work(m, round(K), (), 0, factor, spread, notes)
    law = tuple((K, seen / len(counts)) for K, seen in sorted(Counter(counts).items()))
    return Work(m, round(K), law, tau, factor, spread, notes)


def setting(work: Work, n: int, eta_l: float, stages: Sequence[tuple[int, float, float, float]]) -> Setting:
    """The theorems' setting of a run with this work."""
    plain = Setting(n, work.m, work.K, eta_l, stages, work.tau, work.K_law, work.spread, work.notes)
    return plain.scaled(work.factor) if work.K_law else plain


def arrives_uniformly(scheme: Participation) -> bool:
    """Whether every client is as likely as any other to be averaged; an unknown scheme may do anything."""
    return bool(getattr(scheme, "arrives_uniformly", False))


def _cohorts(scheme: Participation, rounds: int) -> list[list[ClientTask]]:
    """The rounds' tasks from the first on, until ``TASKS`` of them were seen."""
    cohorts, seen = list[list[ClientTask]](), 0
    for t in range(1, rounds + 1):
        cohorts.append(scheme.tasks(t))
        seen += len(cohorts[-1])
        if seen >= TASKS:
            break
    return cohorts


def _cut(looked_at: int, rounds: int) -> tuple[str, ...]:
    """Say so where not all rounds were looked at."""
    return () if looked_at == rounds else (f"K is that of the first {looked_at} of {rounds} rounds.",)
