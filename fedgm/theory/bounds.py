"""Theorems 1 to 3 and the corollary on non-uniform arrival: their conditions and their bounds.

A diagnostic, never a gate. ``variant="printed"`` is the statement as the paper has it; ``"corrected"``
repairs slips that its own proofs show, and adds the conditions which these use without saying so.
"""

from math import inf, sqrt

from fedgm.theory.setting import Problem, Setting, symbols
from fedgm.theory.statement import Bound, Condition, Report, Variant, rate, stagewise

SAMPLING = (
    "Theorem 3 has no term for drawing m of n clients: where sigma_g is all that is left, "
    "runs exceed its bound. The corollary's bound covers them."
)


def theorem1(problem: Problem, setting: Setting, variant: Variant = "corrected") -> Report:
    """Theorem 1, full participation; both variants agree. ``setting.m`` plays no part in it."""
    L, K, n, eta_l, s = problem.L, setting.K, setting.n, setting.eta_l, symbols(setting)
    descent = 1 / (K * s.S * s.C * (L * s.bar + 1 + L**2 * s.W1**2 * s.C))
    conditions = (
        Condition("eta_l <= 1/(8 K L)", eta_l, 1 / (8 * K * L)),
        Condition("eta_l <= 1/(K S C (L bar + 1 + L^2 W1^2 C))", eta_l, descent),
    )
    momentum = L**2 * s.W1**2 * s.T * s.bar * eta_l / (n * s.W2)
    Pl = 32 / 17 * (momentum + L * s.bar * eta_l / n + eta_l / n) + 160 / 17 * eta_l**2 * L**2 * K
    Pg = 960 / 17 * eta_l**2 * L**2 * K**2
    first = 64 / 17 * problem.f0_minus_fstar / (s.S * s.W2 * eta_l * K)
    return _report("1", "Theorem 1", variant, problem, setting, conditions, (first, Pl, Pg))


def theorem2(problem: Problem, setting: Setting, variant: Variant = "corrected") -> Report:
    """Theorem 2, m of n clients a round, uniformly without replacement.

    Corrected: L^2 for the printed L^3, and a factor 2 over the whole bound. The factor is what the
    condition 17 m/282 costs: sampling uses up half of the descent 17/64, and 17/128 is left.
    """
    L, K, n, m, eta_l = problem.L, setting.K, setting.n, setting.m, setting.eta_l
    s = symbols(setting)
    room = min(m * (n - 1) / (n * (m - 1)) if m > 1 else inf, 17 * m / 282)
    weight = s.C * (1 + L * s.bar + L**2 * s.W1**2) * s.S * K
    conditions = (
        Condition("eta_l <= 1/(8 K L)", eta_l, 1 / (8 * K * L)),
        Condition(
            "eta_l <= min(m(n-1)/(n(m-1)), 17m/282)/(C (1 + L bar + L^2 W1^2) S K)", eta_l, room / weight
        ),
    )
    twice, power = (2, 2) if variant == "corrected" else (1, 3)
    Phi = 32 * s.T * (s.bar + L * s.h2 + L**2 * s.W1**2 * s.bar) / (17 * s.W2)
    r = (n - m) / (m * (n - 1)) if n > 1 else 0.0
    drift = r * K**2 * L**power * eta_l**3 * Phi
    Pl = eta_l * Phi / m + 15 * drift + 160 / 17 * eta_l**2 * L**2 * K
    Pg = 90 * K * drift + 3 * eta_l * r * K * Phi + 960 / 17 * eta_l**2 * L**2 * K**2
    first = 64 / 17 * problem.f0_minus_fstar / (s.S * s.W2 * eta_l * K)
    terms = (twice * first, twice * Pl, twice * Pg)
    return _report("2", "Theorem 2", variant, problem, setting, conditions, terms)


def theorem3(problem: Problem, setting: Setting, variant: Variant = "corrected") -> Report:
    """Theorem 3, Autonomous FedGM (Alg. 4, updates divided by K), delay at most tau, uniform arrival.

    Corrected: T in the last term of Pl, eta_1^2 bar for h3, and the condition that the proof uses.
    Neither variant has a term for the variance of drawing m of n clients, which Theorem 2 has
    (3 eta_l r K Phi): with m < n and little but sigma_g left, runs exceed this bound.
    """
    L, tau, s = problem.L, setting.tau, symbols(setting)
    square = 2 * L**2 * tau**2 * s.h2 * s.C**2 * s.S
    linear = (L**2 * s.W1**2 * s.C**2 + L * s.bar * s.C + s.C) * s.S
    unstated = Condition(
        "2 L^2 tau^2 h2 C^2 S eta_l^2 + (L^2 W1^2 C^2 + L bar C + C) S eta_l <= m/n (unstated)",
        setting.eta_l,
        _root(square, linear, setting.m / setting.n),
    )
    conditions, terms = _autonomous(problem, setting, variant, drift=20, delay=4)
    if variant == "corrected":
        conditions = (*conditions, unstated)
    note = "" if setting.m == setting.n else SAMPLING
    return _report("3", "Theorem 3", variant, problem, setting, conditions, terms, note)


def corollary(problem: Problem, setting: Setting, variant: Variant = "corrected") -> Report:
    """The corollary of Theorem 3 where some clients arrive more often than others.

    Pg gains 6, a floor that no eta_l removes. The variants differ as those of Theorem 3.
    """
    L, tau, s, eta_1 = problem.L, setting.tau, symbols(setting), setting.stages[0][1]
    square = 3 * L**2 * s.S * tau**2 * eta_1**2 * s.C**2
    linear = s.C * s.S * (L**2 * s.W1**2 * s.C + 1 + L * s.bar)
    unstated = Condition(
        "3 L^2 S tau^2 eta_1^2 C^2 eta_l^2 + C S (L^2 W1^2 C + 1 + L bar) eta_l <= 1 (unstated)",
        setting.eta_l,
        _root(square, linear, 1.0),
    )
    conditions, (first, Pl, Pg) = _autonomous(problem, setting, variant, drift=30, delay=6)
    if variant == "corrected":
        conditions = (*conditions, unstated)
    return _report("3n", "Corollary of Theorem 3", variant, problem, setting, conditions, (first, Pl, Pg + 6))


def diagnose(problem: Problem, setting: Setting, variant: Variant = "corrected") -> Report:
    """The theorem that fits: 3 with delays or uneven K, else 2 where m < n, else 1."""
    if setting.tau > 0 or setting.K_law:
        return theorem3(problem, setting, variant)
    return (theorem2 if setting.m < setting.n else theorem1)(problem, setting, variant)


Terms = tuple[float, float, float]  # the optimisation term, Pl, Pg


def _autonomous(
    problem: Problem, setting: Setting, variant: Variant, drift: float, delay: float
) -> tuple[tuple[Condition, ...], Terms]:
    """What Theorem 3 (drift 20, delay 4) and its corollary (30, 6) share."""
    L, m, tau, eta_l, s = problem.L, setting.m, setting.tau, setting.eta_l, symbols(setting)
    stale = sqrt(1 / (6 * drift * L**2 * s.C * tau * s.Kmax**2)) if tau else inf
    conditions = (
        Condition("eta_l <= 1/(8 Kmax L)", eta_l, 1 / (8 * s.Kmax * L)),
        Condition(f"eta_l <= sqrt(1/({6 * drift:g} L^2 C tau Kmax^2))", eta_l, stale),
    )
    corrected = variant == "corrected"
    cube = setting.stages[0][1] ** 2 * s.bar if corrected else s.h3
    rounds = s.T if corrected else 1
    noise = delay * L**2 * tau**2 * cube * eta_l**2 + 2 * L**2 * s.W1**2 * s.bar * eta_l + 2 * s.bar * eta_l
    Pl = drift * eta_l**2 * L**2 * s.T * s.bar * s.phi1 / s.W2
    Pl += s.phi3 / (m * s.W2) * (s.T * noise + rounds * 2 * L * s.h2 * eta_l)
    Pg = 6 * drift * eta_l**2 * L**2 * s.T * s.bar * s.phi2 / s.W2
    return conditions, (4 * problem.f0_minus_fstar / (s.S * s.W2 * eta_l), Pl, Pg)


def _root(square: float, linear: float, limit: float) -> float:
    """The eta_l at which ``square eta_l^2 + linear eta_l`` reaches ``limit``."""
    return 2 * limit / (linear + sqrt(linear**2 + 4 * square * limit))


def _report(
    key: str,
    name: str,
    variant: Variant,
    problem: Problem,
    setting: Setting,
    conditions: tuple[Condition, ...],
    terms: Terms,
    note: str = "",
) -> Report:
    """Weigh Pl and Pg with the variances, and add the constraints on the stages."""
    first, Pl, Pg = terms
    bound = Bound(first, Pl * problem.sigma_l**2, Pg * problem.sigma_g**2)
    return Report(name, variant, setting, (*conditions, *stagewise(setting)), bound, rate(key, setting), note)
