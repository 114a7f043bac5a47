"""Theorems 1 to 3 and the corollary: their conditions and their bounds.

A diagnostic, never a gate. ``variant="printed"`` is the statement as the paper has it; ``"corrected"``
repairs slips that the proofs show. The corrections are ours and unpublished.
"""

from math import inf, nan, sqrt

from fedgm.errors import require_fits
from fedgm.theory.setting import Problem, Setting, symbols
from fedgm.theory.statement import Condition, Report, Terms, Variant, drawn_variance, state

PRINTED = (
    "the printed Theorem 3 has no term for drawing m of n clients. Where sigma_g is all that is left, runs "
    "exceed its bound. variant=corrected has the term; docs/theorem3.md has the example."
)
UNSTATED = (
    "its proof also uses {square} L^2 S tau^2 eta_1^2 C^2 eta_l^2 + C S (L^2 W1^2 C + 1 + L bar) eta_l <= 1, "
    "which the printed statement omits; here the left side is {value:.3g}."
)
OUTLIER = (
    "the corollary's proof uses sigma_g for whichever clients arrive. Give sigma_g the "
    "largest single client's value, max_i |grad f_i - grad f|, to get a bound that holds."
)


def theorem3(problem: Problem, setting: Setting, variant: Variant = "corrected") -> Report:
    """Theorem 3, Autonomous FedGM (updates divided by K), delay at most tau, uniform arrival.

    Corrected, with r = (n-m)/(m(n-1)), f = 1 + 3r/2, C_b = (1 - beta_1)/(1 - beta_S) and
    B = bar + L h2 + L^2 W1^2 bar C_b + 2 f L^2 tau^2 eta_1^2 bar C_b eta_l:

    - Pg gains 6 r eta_l (T/W2) B, the variance of drawing m of n clients. The printed proof loses it: it
      bounds the sum over i != j of |v_i - v_j|^2 by 2(n-1) sum |v_i|^2, and the right constant is 2n;
    - f on 120, 20 and the 4 of the delay term;
    - T in the last term of Pl;
    - tau + 1 for tau in the second condition, since an update may have any of tau + 1 ages, and the condition
      on the descent that the proof uses.

    >>> from fedgm.theory import Problem, Setting
    >>> problem = Problem(L=1.0, sigma_l=1.0, sigma_g=1.0, f0_minus_fstar=1.0)
    >>> late = Setting(n=10, m=5, K=5, eta_l=0.001, stages=[(500, 1.0, 0.9, 0.9)],
    ...                tau=4, K_law=[(2, 0.5), (8, 0.5)])
    >>> report = theorem3(problem, late)
    >>> report.holds, round(report.bound.total, 2)
    (True, 8.06)
    """
    _require_average(setting)
    if variant == "printed":
        notes = [PRINTED if setting.m < setting.n else "", _unstated(problem, setting, 2)]
        conditions, terms = _printed(problem, setting, drift=20, delay=4, T_last=1)
        return state("3", "Theorem 3", variant, problem, setting, conditions, terms, *notes)
    L, tau, eta_l, s, eta_1 = problem.L, setting.tau, setting.eta_l, symbols(setting), setting.stages[0][1]
    r = drawn_variance(setting)
    f = 1 + 1.5 * r
    delayed = 2 * f * L**2 * tau**2 * eta_1**2 * s.Cb
    linear = 1 + L * s.bar + L**2 * s.W1**2 * s.Cb
    conditions = (
        *_local(problem, setting, 120 * f * (tau + 1), "(120 L^2 C (tau+1) Kmax^2 f)^(-1/2)"),
        Condition(
            "S C eta_l (1 + L bar + L^2 W1^2 C_b + 2 f L^2 tau^2 eta_1^2 C_b eta_l) <= 1",
            eta_l,
            _root(s.S * s.C * delayed, s.S * s.C * linear, 1.0),
        ),
    )
    B = s.bar + L * s.h2 + L**2 * s.W1**2 * s.bar * s.Cb + delayed * s.bar * eta_l
    first, Pl, Pg = _terms(problem, setting, drift=20 * f, delay=4 * f, T_last=s.T)
    Pg += 6 * r * eta_l * s.T / s.W2 * B
    return state("3", "Theorem 3", variant, problem, setting, conditions, (first, Pl, Pg))


def corollary(problem: Problem, setting: Setting, variant: Variant = "corrected") -> Report:
    """The corollary of Theorem 3 where some clients arrive more often than others.

    Pg gains 6, a floor that no eta_l removes. Both variants ask for max_i |grad f_i - grad f| <= sigma_g,
    which the proof uses: without it one outlier that always arrives breaks the bound. Corrected are only the
    conditions: the one on the descent that the proof uses, and tau + 1 for tau as in Theorem 3.

    >>> from fedgm.theory import Problem, Setting
    >>> problem = Problem(L=1.0, sigma_l=1.0, sigma_g=1.0, f0_minus_fstar=1.0, sigma_max=1.0)
    >>> late = Setting(n=10, m=5, K=5, eta_l=0.001, stages=[(500, 1.0, 0.9, 0.9)], tau=4)
    >>> corollary(problem, late).holds
    True
    """
    _require_average(setting)
    L, tau, eta_l, s, eta_1 = problem.L, setting.tau, setting.eta_l, symbols(setting), setting.stages[0][1]
    conditions, (first, Pl, Pg) = _printed(problem, setting, drift=30, delay=6, T_last=s.T)
    if variant == "corrected":
        square = 3 * L**2 * s.S * tau**2 * eta_1**2 * s.C**2
        linear = s.C * s.S * (L**2 * s.W1**2 * s.C + 1 + L * s.bar)
        conditions = (
            *_local(problem, setting, 180 * (tau + 1), "(180 L^2 C (tau+1) Kmax^2)^(-1/2)"),
            Condition(
                "3 L^2 S tau^2 eta_1^2 C^2 eta_l^2 + C S (L^2 W1^2 C + 1 + L bar) eta_l <= 1 (unstated)",
                eta_l,
                _root(square, linear, 1.0),
            ),
        )
    largest = nan if problem.sigma_max is None else problem.sigma_max
    asked = "max_i |grad f_i - grad f| <= sigma_g (unstated)"
    alike = Condition(asked, largest, problem.sigma_g, "max_i |grad f_i - grad f|")
    notes = ["" if alike.holds else OUTLIER, _unstated(problem, setting, 3) if variant == "printed" else ""]
    terms = (first, Pl, Pg + 6)
    name = "Corollary of Theorem 3"
    return state("3n", name, variant, problem, setting, (*conditions, alike), terms, *notes)


def _unstated(problem: Problem, setting: Setting, square: int) -> str:
    """The condition on the descent that the proofs of Theorem 3 (2) and its corollary (3) use."""
    L, s, eta_l, eta_1 = problem.L, symbols(setting), setting.eta_l, setting.stages[0][1]
    value = square * L**2 * s.S * setting.tau**2 * eta_1**2 * s.C**2 * eta_l**2
    value += s.C * s.S * (L**2 * s.W1**2 * s.C + 1 + L * s.bar) * eta_l
    return UNSTATED.format(square=square, value=value)


def _printed(
    problem: Problem, setting: Setting, drift: float, delay: float, T_last: float
) -> tuple[tuple[Condition, ...], Terms]:
    """What the paper prints for Theorem 3 (20, 4, no T) and its corollary (30, 6, T)."""
    asked = f"sqrt(1/({6 * drift:g} L^2 C tau Kmax^2))"
    conditions = _local(problem, setting, 6 * drift * setting.tau, asked)
    return conditions, _terms(problem, setting, drift, delay, T_last)


def _local(problem: Problem, setting: Setting, factor: float, text: str) -> tuple[Condition, Condition]:
    """eta_l <= 1/(8 Kmax L) and eta_l <= (factor L^2 C Kmax^2)^(-1/2)."""
    s, eta_l = symbols(setting), setting.eta_l
    stale = 1 / sqrt(factor * problem.L**2 * s.C * s.Kmax**2) if factor else inf
    return (
        Condition("eta_l <= 1/(8 Kmax L)", eta_l, 1 / (8 * s.Kmax * problem.L)),
        Condition(f"eta_l <= {text}", eta_l, stale),
    )


def _terms(problem: Problem, setting: Setting, drift: float, delay: float, T_last: float) -> Terms:
    """Optimisation, Pl and Pg as far as Theorem 3 and its corollary share their form.

    h3 suffices for the delay's noise: h_t is an average of past updates (nu in [0, 1]), so its noise is at
    most that of one, and the later of two etas is the smaller.
    """
    L, tau, eta_l, s = problem.L, setting.tau, setting.eta_l, symbols(setting)
    noise = delay * L**2 * tau**2 * s.h3 * eta_l**2 + 2 * L**2 * s.W1**2 * s.bar * eta_l + 2 * s.bar * eta_l
    Pl = drift * eta_l**2 * L**2 * s.T * s.bar * s.phi1 / s.W2
    Pl += s.phi3 / (setting.m * s.W2) * (s.T * noise + T_last * 2 * L * s.h2 * eta_l)
    Pg = 6 * drift * eta_l**2 * L**2 * s.T * s.bar * s.phi2 / s.W2
    return 4 * problem.f0_minus_fstar / (s.S * s.W2 * eta_l), Pl, Pg


def _require_average(setting: Setting) -> None:
    """The delay is bounded by way of |h_t|, which is an average of past updates for these nu alone."""
    for _, _, _, nu in setting.stages:
        allowed = "Theorem 3 and its corollary cover 0 <= nu <= 1, where h is an average of past updates"
        require_fits(
            0 <= nu <= 1, "nu", f"{nu:g}", allowed, "a scheme with nu in [0, 1], such as algorithm=fedgm"
        )


def _root(square: float, linear: float, limit: float) -> float:
    """The eta_l at which ``square eta_l^2 + linear eta_l`` reaches ``limit``."""
    return 2 * limit / (linear + sqrt(linear**2 + 4 * square * limit))


def theorem1(problem: Problem, setting: Setting, variant: Variant = "corrected") -> Report:
    """Theorem 1, full participation; both variants agree.

    >>> from fedgm.theory import Problem, Setting
    >>> problem = Problem(L=1.0, sigma_l=1.0, sigma_g=1.0, f0_minus_fstar=1.0)
    >>> report = theorem1(problem, Setting(n=10, m=10, K=5, eta_l=0.001, stages=[(500, 1.0, 0.9, 0.9)]))
    >>> report.holds, round(report.eta_l_limit, 4), round(report.bound.total, 2)
    (True, 0.003, 1.52)
    """
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

    >>> from fedgm.theory import Problem, Setting
    >>> problem = Problem(L=1.0, sigma_l=1.0, sigma_g=1.0, f0_minus_fstar=1.0)
    >>> half = Setting(n=10, m=5, K=5, eta_l=0.001, stages=[(500, 1.0, 0.9, 0.9)])
    >>> [round(theorem2(problem, half, variant).bound.total, 2) for variant in ("printed", "corrected")]
    [1.75, 2.42]
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
    """The theorem that fits: 3 with delays or uneven K, else 2 where m < n, else 1.

    >>> from fedgm.theory import Problem, Setting
    >>> problem = Problem(L=1.0, sigma_l=1.0, sigma_g=1.0, f0_minus_fstar=1.0)
    >>> diagnose(problem, Setting(n=10, m=5, K=5, eta_l=0.001, stages=[(500, 1.0, 0.9, 0.9)])).theorem
    'Theorem 2'
    """
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
