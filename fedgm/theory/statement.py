"""What a theorem says of a setting: its conditions, its bound, its rate."""

from dataclasses import dataclass
from itertools import pairwise
from math import inf, isnan, sqrt
from typing import Literal

from fedgm.theory.setting import Problem, Setting, momentum_constants, symbols

Variant = Literal["printed", "corrected"]
Terms = tuple[float, float, float]  # the optimisation term, Pl, Pg
OURS = "the corrections are ours, unpublished; tests compare them with runs on 200 random quadratics."


@dataclass(frozen=True)
class Condition:
    """``value <= limit``, asked for by a theorem; ``subject`` names the value, which is nan if unknown."""

    text: str
    value: float
    limit: float
    subject: str = "eta_l"

    @property
    def holds(self) -> bool:
        """Whether it is met; a relative 1e-9 is left for rounding. What is unknown is not met."""
        return self.value <= self.limit * (1 + 1e-9)

    @property
    def is_known(self) -> bool:
        """Whether there is a value to compare."""
        return not isnan(self.value)

    @property
    def factor(self) -> float:
        """By what factor it fails, or how often it fits where it holds; at least 1 in both cases."""
        small, large = sorted((self.value, self.limit))
        if large <= 0 or small == large:
            return 1.0
        return large / small if small > 0 else inf


@dataclass(frozen=True)
class Bound:
    """The bound on Gbar, the mean over stages of the stage mean of E||grad f(x_t)||^2, by its terms."""

    optimisation: float  # what is left of f(x_0) - f*
    sigma_l: float  # Pl sigma_l^2, from the noise of the local gradients
    sigma_g: float  # Pg sigma_g^2, from the clients' differences

    @property
    def total(self) -> float:
        """The bound itself."""
        return self.optimisation + self.sigma_l + self.sigma_g


@dataclass(frozen=True)
class Rate:
    """The order of the bound at the best eta_l, without its constants."""

    text: str
    number: float
    regime: str


@dataclass(frozen=True)
class Report:
    """One theorem applied to one setting."""

    theorem: str
    variant: Variant
    setting: Setting
    conditions: tuple[Condition, ...]
    bound: Bound
    rate: Rate
    notes: tuple[str, ...] = ()  # what the statement leaves out, or takes for granted

    @property
    def holds(self) -> bool:
        """Whether every condition is met, so that the bound is a promise."""
        return all(c.holds for c in self.conditions)

    @property
    def eta_l_limit(self) -> float:
        """The largest eta_l that the theorem allows."""
        return min(c.limit for c in self.conditions if c.subject == "eta_l")


def state(
    key: str,
    name: str,
    variant: Variant,
    problem: Problem,
    setting: Setting,
    conditions: tuple[Condition, ...],
    terms: Terms,
    *more: str,
) -> Report:
    """Weigh Pl and Pg with the variances, and add the constraints on the stages."""
    first, Pl, Pg = terms
    bound = Bound(first, Pl * problem.sigma_l**2, Pg * problem.sigma_g**2)
    ours = OURS if variant == "corrected" and key != "1" else ""
    notes = tuple(text for text in (*more, ours, *setting.notes) if text)
    asked = (*conditions, *_alike(setting), *stagewise(setting))
    return Report(name, variant, setting, asked, bound, rate(key, setting, variant), notes)


def _alike(setting: Setting) -> tuple[Condition, ...]:
    """f is the plain mean over clients; an update that counts more makes it another function."""
    low, high = setting.spread
    one = Condition("updates count alike, one w_i K_i for all", high, low, "the largest w_i K_i")
    return () if one.holds else (one,)


def drawn_variance(setting: Setting) -> float:
    """r = (n-m)/(m(n-1)): the variance of the mean of m of n clients, drawn without replacement."""
    n, m = setting.n, setting.m
    return (n - m) / (m * (n - 1)) if n > 1 else 0.0


def stagewise(setting: Setting) -> tuple[Condition, ...]:
    """Eq. 3, the constraints on the stages; none for a single one."""
    if len(setting.stages) == 1:
        return ()
    etas = [eta for _, eta, _, _ in setting.stages]
    betas = [beta for _, _, beta, _ in setting.stages]
    W1 = [abs(w) for w in momentum_constants(setting)]
    W2 = [T * eta for T, eta, _, _ in setting.stages]
    rise, fall = _largest_step(etas), _largest_step(betas[::-1])
    return (
        Condition("eta_s never increases (Eq. 3)", rise, 1.0, "eta_{s+1}/eta_s"),
        Condition("beta_s never decreases (Eq. 3)", fall, 1.0, "beta_s/beta_{s+1}"),
        Condition("W1 = eta_s beta_s nu_s/(1-beta_s) is constant (Eq. 3)", max(W1), min(W1), "W1"),
        Condition(
            "W2 = T_s eta_s is constant up to rounding (Eq. 3)", max(W2) - min(W2), max(etas), "W2's spread"
        ),
    )


def _largest_step(values: list[float]) -> float:
    """The largest ratio of a value to the one before it."""
    return max((b / a if a > 0 else (inf if b > 0 else 1.0)) for a, b in pairwise(values))


def rate(theorem: str, setting: Setting, variant: Variant = "corrected") -> Rate:
    """The rates after Theorems 1 ("1"), 2 ("2"), 3 ("3") and the corollary ("3n").

    Where K varies, mean K stands in the first term of the autonomous rate and mean K^2 in the last.
    """
    s, K = symbols(setting), setting.K
    if theorem == "1":
        regime = "linear speed-up: twice the clients are worth twice the rounds"
        return Rate("O(1/sqrt(T K n))", 1 / sqrt(s.T * K * setting.n), regime)
    if theorem == "2":
        regime = "client sampling dominates: more clients a round help, more local steps do not"
        if setting.m == setting.n:
            regime = "every client takes part: Theorem 1 is sharper"
        return Rate("O(sqrt(K/(T m)))", sqrt(K / (s.T * setting.m)), regime)
    # Drawing m of n clients costs as much as in Theorem 2; the printed Theorem 3 does not count it.
    drawn = theorem == "3" and variant == "corrected" and setting.m < setting.n
    first = (
        ("sqrt(K/(m T))", "the draw of clients", sqrt(s.phi1 / (setting.m * s.T)))
        if drawn
        else ("1/sqrt(m K T)", "the noise", 1 / sqrt(setting.m * s.phi1 * s.T))
    )
    parts = [
        first,
        ("tau^2/T", "the delay", setting.tau**2 / s.T),
        ("K^2/T", "the local drift", s.phi2 / s.T),
    ]
    text = " + ".join(f"O({order})" for order, _, _ in parts)
    order, name, _ = max(parts, key=lambda part: part[2])
    regime, total = f"{order}, {name}, dominates at T = {s.T}", sum(part[2] for part in parts)
    if theorem == "3n":
        return Rate(f"{text} + O(sigma_g^2)", total, f"{regime}; the floor of sigma_g^2 never vanishes")
    return Rate(text, total, regime)
