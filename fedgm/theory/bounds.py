"""Theorems 1 and 2, their conditions and their bounds; Theorem 3 is in :mod:`fedgm.theory.autonomous`.

A diagnostic, never a gate. ``variant="printed"`` is the statement as the paper has it; ``"corrected"``
repairs slips that its own proofs show. The corrections are ours and unpublished.
"""

from math import inf

from fedgm.theory.autonomous import theorem3
from fedgm.theory.setting import Problem, Setting, symbols
from fedgm.theory.statement import Condition, Report, Variant, drawn_variance, state


def theorem1(problem: Problem, setting: Setting, variant: Variant = "corrected") -> Report:
    """Theorem 1, full participation; both variants agree."""
    L, K, n, eta_l, s = problem.L, setting.K, setting.n, setting.eta_l, symbols(setting)
    descent = 1 / (K * s.S * s.C * (L * s.bar + 1 + L**2 * s.W1**2 * s.C))
    conditions = (
        Condition("m = n, every client takes part", n, setting.m, "n"),
        *_synchronous(setting),
        Condition("eta_l <= 1/(8 K L)", eta_l, 1 / (8 * K * L)),
        Condition("eta_l <= 1/(K S C (L bar + 1 + L^2 W1^2 C))", eta_l, descent),
    )
    momentum = L**2 * s.W1**2 * s.T * s.bar * eta_l / (n * s.W2)
    Pl = 32 / 17 * (momentum + L * s.bar * eta_l / n + eta_l / n) + 160 / 17 * eta_l**2 * L**2 * K
    Pg = 960 / 17 * eta_l**2 * L**2 * K**2
    first = 64 / 17 * problem.f0_minus_fstar / (s.S * s.W2 * eta_l * K)
    return state("1", "Theorem 1", variant, problem, setting, conditions, (first, Pl, Pg))


def theorem2(problem: Problem, setting: Setting, variant: Variant = "corrected") -> Report:
    """Theorem 2, m of n clients a round, uniformly without replacement.

    Corrected, with C_b = (1 - beta_1)/(1 - beta_S):

    - 1/(1 - (n-m)/(2(n-1))) on the whole bound. The part of Gbar that sampling leaves on the right side
      vanishes in the printed proof instead of moving to the left. 1 at m = n, 2 at m = 1;
    - L^2 for L^3 in the terms with 15 and 90;
    - C_b beside W1^2 in the condition and in the terms with r: a weight (1 - beta_1) that enters d in the
      first stage is remembered with beta_S in the last.
    """
    L, K, n, m, eta_l = problem.L, setting.K, setting.n, setting.m, setting.eta_l
    s, corrected = symbols(setting), variant == "corrected"
    Cb, power = (s.Cb, 2) if corrected else (1.0, 3)
    room = min(m * (n - 1) / (n * (m - 1)) if m > 1 else inf, 17 * m / 282)
    weight = s.C * (1 + L * s.bar + L**2 * s.W1**2 * Cb) * s.S * K
    asked = f"C (1 + L bar + L^2 W1^2{' C_b' if corrected else ''}) S K"
    conditions = (
        *_synchronous(setting),
        Condition("eta_l <= 1/(8 K L)", eta_l, 1 / (8 * K * L)),
        Condition(f"eta_l <= min(m(n-1)/(n(m-1)), 17m/282)/({asked})", eta_l, room / weight),
    )
    Phi = 32 * s.T * (s.bar + L * s.h2 + L**2 * s.W1**2 * s.bar) / (17 * s.W2)
    Phi_b = 32 * s.T * (s.bar + L * s.h2 + L**2 * s.W1**2 * s.bar * Cb) / (17 * s.W2)
    r = drawn_variance(setting)
    drift = r * K**2 * L**power * eta_l**3 * Phi_b
    Pl = eta_l * Phi / m + 15 * drift + 160 / 17 * eta_l**2 * L**2 * K
    Pg = 90 * K * drift + 3 * eta_l * r * K * Phi_b + 960 / 17 * eta_l**2 * L**2 * K**2
    first = 64 / 17 * problem.f0_minus_fstar / (s.S * s.W2 * eta_l * K)
    whole = 1 / (1 - m * r / 2) if corrected else 1.0  # m r = (n-m)/(n-1)
    terms = (whole * first, whole * Pl, whole * Pg)
    return state("2", "Theorem 2", variant, problem, setting, conditions, terms)


def diagnose(problem: Problem, setting: Setting, variant: Variant = "corrected") -> Report:
    """The theorem that fits: 3 with delays or uneven K, else 2 where m < n, else 1."""
    if setting.tau > 0 or setting.K_law:
        return theorem3(problem, setting, variant)
    return (theorem2 if setting.m < setting.n else theorem1)(problem, setting, variant)


def _synchronous(setting: Setting) -> tuple[Condition, ...]:
    """Alg. 3: no delay and one K. Where both are met, there is nothing to say."""
    counts = [K for K, p in setting.K_law if p > 0] or [setting.K]
    asked = (
        Condition("no delay: Theorem 3 has delays", setting.tau, 0, "tau"),
        Condition("one K for all: Theorem 3 has several", max(counts), min(counts), "the largest K"),
    )
    return tuple(c for c in asked if not c.holds)
