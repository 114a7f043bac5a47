"""Section 4: the theorems' formulas by hand, and their bounds against runs with known constants."""

from dataclasses import replace
from io import StringIO
from math import sqrt

import numpy as np
import pytest
from rich.console import Console

from fedgm.errors import ConfigError, FedGMError
from fedgm.server import Plan, Stage, multistage
from fedgm.theory import (
    Condition,
    Problem,
    Setting,
    corollary,
    diagnose,
    make_quadratic,
    rate,
    render,
    simulate,
    simulate_autonomous,
    symbols,
    theorem1,
    theorem2,
    theorem3,
    theory_stages,
    verdict,
)

THEOREMS = [theorem1, theorem2, theorem3, corollary]
PROBLEM = Problem(L=2, sigma_l=2, sigma_g=3, f0_minus_fstar=17)
# W1 = 2 * .5 * .5 / .5 = 1 = 1 * (2/3) * .5 / (1/3);  W2 = 2 * 2 = 4 * 1
SETTING = Setting(
    n=10,
    m=4,
    K=3,
    eta_l=0.01,
    stages=[(2, 2.0, 0.5, 0.5), (4, 1.0, 2 / 3, 0.5)],
    tau=3,
    K_law=[(1, 0.5), (3, 0.5)],
)


def terms(report):
    return report.bound.optimisation, report.bound.sigma_l, report.bound.sigma_g


def limits(report):
    return [c.limit for c in report.conditions if c.subject == "eta_l"]


def staged(rounds, etas, beta, nu):
    return theory_stages(Plan(tuple(multistage(rounds, etas, beta, nu))))


def text_of(report):
    out = StringIO()
    Console(file=out, width=200).print(render(report))
    return out.getvalue()


def test_symbols_by_hand():
    s = symbols(SETTING)
    assert (s.S, s.T, s.C, s.Kmax) == (2, 6, 2, 3)
    # means of (2, 1), (4, 1), (8, 1); W1 and W2 as above
    assert (s.bar, s.h2, s.h3, s.W1, s.W2) == pytest.approx((1.5, 2.5, 4.5, 1, 4))
    assert (s.phi1, s.phi2, s.phi3) == pytest.approx((2, 5, 2 / 3))  # (1+3)/2, (1+9)/2, (1+1/3)/2


@pytest.mark.parametrize("variant", ["printed", "corrected"])
def test_theorem1_by_hand(variant):
    report = theorem1(PROBLEM, SETTING, variant)
    # 1/(8*3*2);  K S C = 12, L bar + 1 + L^2 W1^2 C = 3 + 1 + 8 = 12
    assert limits(report) == pytest.approx([1 / 48, 1 / 144])
    # 64/17 * 17 / (2*4*.01*3) = 64/.24
    # Pl = (32 (4*6*1.5*.01/40 + 3*.01/10 + .01/10) + 160*1e-4*4*3)/17 = (32*.013 + .192)/17 = .608/17
    # Pg = 960*1e-4*4*9/17 = 3.456/17
    assert terms(report) == pytest.approx((64 / 0.24, 4 * 0.608 / 17, 9 * 3.456 / 17))


def test_theorem2_by_hand():
    printed, corrected = theorem2(PROBLEM, SETTING, "printed"), theorem2(PROBLEM, SETTING, "corrected")
    # min(4*9/(10*3), 17*4/282) = 68/282;  C (1 + 3 + 4) S K = 2*8*2*3 = 96
    assert limits(printed) == limits(corrected) == pytest.approx([1 / 48, 68 / 282 / 96])
    # Phi = 32*6*(1.5 + 5 + 6)/(17*4) = 600/17;  r = 6/(4*9) = 1/6
    # r K^2 L^3 eta_l^3 Phi = 9*8e-6*600/(6*17) = .0072/17, with L^2 half of it
    # Pl = (.01*600/4 + 15*.0072 + .192)/17 = (1.5 + .108 + .192)/17
    # Pg = (90*3*.0072 + 3*.01*3*600/6 + 3.456)/17 = (1.944 + 9 + 3.456)/17
    assert terms(printed) == pytest.approx((64 / 0.24, 4 * 1.8 / 17, 9 * 14.4 / 17))
    # twice, with .054 for .108 and .972 for 1.944
    assert terms(corrected) == pytest.approx((128 / 0.24, 4 * 2 * 1.746 / 17, 9 * 2 * 13.428 / 17))


def test_theorem2_at_the_ends_of_m():
    # m = 1: n(m-1) = 0 leaves 17/282, and r = 1;  m = n: r = 0, so Pg keeps 2*3.456/17 alone
    assert limits(theorem2(PROBLEM, replace(SETTING, m=1)))[1] == pytest.approx(17 / 282 / 96)
    assert theorem2(PROBLEM, replace(SETTING, m=10)).bound.sigma_g == pytest.approx(9 * 2 * 3.456 / 17)


def test_theorem3_by_hand():
    printed, corrected = theorem3(PROBLEM, SETTING, "printed"), theorem3(PROBLEM, SETTING, "corrected")
    # 120 L^2 C tau Kmax^2 = 120*4*2*3*9 = 25920
    assert limits(printed) == pytest.approx([1 / 48, sqrt(1 / 25920)])
    # 2*4*9*2.5*4*2 = 1440;  (16 + 6 + 2)*2 = 48;  1440 e^2 + 48 e = .4 at e = (sqrt 2 - 1)/60
    assert limits(corrected) == pytest.approx([1 / 48, sqrt(1 / 25920), (sqrt(2) - 1) / 60])
    # 4*17/(2*4*.01) = 850;  Pg = 120*1e-4*4*6*1.5*5/4 = .54;  first part of Pl = 20*1e-4*4*9*2/4 = .036
    # phi3/(m W2) = 1/24;  4*4*9*4.5*1e-4 = .0648;  2*4*1.5*.01 = .12;  2*1.5*.01 = .03;  2*2*2.5*.01 = .1
    assert terms(printed) == pytest.approx((850, 4 * (0.036 + (6 * 0.2148 + 0.1) / 24), 9 * 0.54))
    # .0648 -> 4*4*9*(4*1.5)*1e-4 = .0864, and the .1 gets its T = 6
    assert terms(corrected) == pytest.approx((850, 4 * (0.036 + 6 * 0.3364 / 24), 9 * 0.54))


def test_corollary_by_hand():
    printed, corrected = corollary(PROBLEM, SETTING, "printed"), corollary(PROBLEM, SETTING, "corrected")
    # 180*4*2*3*9 = 38880;  3*4*2*9*4*4 = 3456;  2*2*(8 + 1 + 3) = 48;  48^2 + 4*3456 = 16128
    assert limits(printed) == pytest.approx([1 / 48, sqrt(1 / 38880)])
    assert limits(corrected) == pytest.approx([1 / 48, sqrt(1 / 38880), (sqrt(16128) - 48) / 6912])
    # 20 -> 30: .054;  4 -> 6: .0972 and .1296;  120 -> 180: .81, and 6 more
    assert terms(printed) == pytest.approx((850, 4 * (0.054 + (6 * 0.2472 + 0.1) / 24), 9 * 6.81))
    assert terms(corrected) == pytest.approx((850, 4 * (0.054 + 6 * 0.3796 / 24), 9 * 6.81))


def test_the_corollary_has_a_floor_that_no_local_rate_removes():
    tiny = replace(SETTING, eta_l=1e-12)
    assert corollary(PROBLEM, tiny).bound.sigma_g == pytest.approx(6 * 9)
    assert theorem3(PROBLEM, tiny).bound.sigma_g == pytest.approx(0, abs=1e-15)


def test_without_delay_the_delay_condition_allows_anything():
    assert limits(theorem3(PROBLEM, replace(SETTING, tau=0), "printed")) == [pytest.approx(1 / 48), np.inf]


def test_rates_by_hand():
    assert rate("1", SETTING).number == pytest.approx(1 / sqrt(6 * 3 * 10))
    assert rate("2", SETTING).number == pytest.approx(sqrt(3 / (6 * 4)))
    autonomous = rate("3", SETTING)  # 1/sqrt(4*2*6), 3^2/6 and 5/6: the delay is the largest
    assert autonomous.number == pytest.approx(1 / sqrt(48) + 9 / 6 + 5 / 6)
    assert "delay" in autonomous.regime
    assert "drift" in rate("3", replace(SETTING, tau=1)).regime


def test_the_papers_setting_is_far_outside_theorem_1():
    # W1 = 2*.9*.9/.1 = 16.2, C = 4, bar = 7/6: K S C (7/6 + 1 + 262.44*4) = 900 * 1051.9267 = 946734
    setting = Setting(100, 5, 75, 0.01, staged(1000, [2.0, 1.0, 0.5], 0.9, 0.9))
    report = theorem1(Problem(1, 1, 1, 1), setting)
    assert report.eta_l_limit == pytest.approx(1 / 946734, rel=1e-6)
    assert not report.holds
    assert verdict(report) == ["eta_l = 0.01 is 9,467 times above what Theorem 1 allows, 1.06e-06."]


def test_broken_stages_are_told_by_name():
    rising = replace(SETTING, eta_l=1e-9, stages=[(2, 1.0, 0.5, 0.5), (4, 2.0, 0.4, 0.5)])
    failed = {c.subject: c.factor for c in theorem1(PROBLEM, rising).conditions if not c.holds}
    # eta 1 -> 2;  beta .5 -> .4;  W1 .5 and 2/3;  W2 2 and 8, 6 apart where max eta = 2 is allowed
    expected = {"eta_{s+1}/eta_s": 2, "beta_s/beta_{s+1}": 1.25, "W1": 4 / 3, "W2's spread": 3}
    assert failed == pytest.approx(expected)
    assert all(c.holds for c in theorem1(PROBLEM, replace(SETTING, eta_l=1e-9)).conditions)


def test_condition_counts_in_both_directions():
    assert (Condition("", 1.0, 4.0).holds, Condition("", 1.0, 4.0).factor) == (True, 4)
    assert (Condition("", 4.0, 1.0).holds, Condition("", 4.0, 1.0).factor) == (False, 4)
    assert Condition("", 0.0, 0.0).factor == 1


@pytest.mark.parametrize("theorem", THEOREMS)
@pytest.mark.parametrize("variant", ["printed", "corrected"])
@pytest.mark.parametrize("eta_l", [1e-7, 0.1])
def test_the_report_fits_80_columns_and_says_what_fails(theorem, variant, eta_l):
    report = theorem(PROBLEM, replace(SETTING, eta_l=eta_l), variant)
    text = text_of(report)
    assert max(map(len, text.splitlines())) <= 80
    assert report.holds == (eta_l == 1e-7)
    assert ("times above what" in text) == ("not a promise" in text) == (not report.holds)
    assert "never a gate" in text


def test_diagnose_chooses_the_theorem():
    still = replace(SETTING, tau=0, K_law=())
    assert diagnose(PROBLEM, SETTING).theorem == "Theorem 3"
    assert diagnose(PROBLEM, still).theorem == "Theorem 2"
    assert diagnose(PROBLEM, replace(still, m=10)).theorem == "Theorem 1"


def test_scaled_multiplies_eta_hence_both_constants():
    s = symbols(SETTING.scaled(3))
    assert (s.W1, s.W2, s.bar) == pytest.approx((3, 12, 4.5))


def test_bad_input_is_refused_by_name():
    with pytest.raises(ConfigError, match="m=11"):
        replace(SETTING, m=11)
    with pytest.raises(ConfigError, match="K_law"):
        replace(SETTING, K_law=[(1, 0.5)])
    with pytest.raises(ConfigError, match="L=0"):
        Problem(0, 1, 1, 1)
    with pytest.raises(FedGMError, match="cover FedGM"):
        theory_stages(Plan((Stage(3, {"eta": 1.0}),)))


# Runs on quadratics. eta_l is the largest that the theorem allows, 20 seeds each.

STAGES = {
    "plain": staged(120, [1.0], 0.0, 0.0),
    "momentum": staged(120, [1.0], 0.5, 0.5),
    "multistage": staged(140, [2.0, 1.0, 0.5], 0.2, 0.5),
}
LAW = [(1, 0.25), (3, 0.5), (5, 0.25)]
SKEWED = [10.0] * 4 + [1.0] * 6


def at_the_limit(theorem, problem, stages, m=4):
    own = {"m": 10} if theorem is theorem1 else {"m": m}
    if theorem in (theorem3, corollary):
        own |= {"tau": 3, "K_law": LAW}
    setting = Setting(n=10, K=5, eta_l=1.0, stages=stages, **own)
    if setting.K_law:
        setting = setting.scaled(3)  # mean K: Alg. 4 divides by K, so this goes as far as Alg. 3
    return replace(setting, eta_l=theorem(problem, setting).eta_l_limit)


def measured(theorem, quadratic, setting, x0, seeds=20):
    if theorem in (theorem1, theorem2):
        return [simulate(quadratic, setting, x0, seed) for seed in range(seeds)]
    arrival = SKEWED if theorem is corollary else None
    return [simulate_autonomous(quadratic, setting, x0, seed, arrival) for seed in range(seeds)]


@pytest.mark.parametrize("stages", STAGES)
@pytest.mark.parametrize("theorem", THEOREMS)
def test_runs_within_the_conditions_stay_under_the_bound(theorem, stages):
    quadratic = make_quadratic(n=10, dim=4, L=2.0, sigma_l=1.0, sigma_g=1.5, seed=0)
    x0 = np.full(4, 3.0)
    setting = at_the_limit(theorem, quadratic.problem(x0), STAGES[stages])
    report = theorem(quadratic.problem(x0), setting)
    values = measured(theorem, quadratic, setting, x0)
    assert report.holds
    assert max(values) <= report.bound.total
    assert min(values) > report.bound.total / 15  # a bound that is nearly used, not one of any size
    assert max(values) <= theorem(quadratic.problem(x0), setting, "printed").bound.total


@pytest.mark.parametrize("theorem", THEOREMS)
def test_noise_alone_stays_under_its_term(theorem):
    # From the minimum, with equal clients: whatever is measured comes from sigma_l.
    quadratic = make_quadratic(n=10, dim=4, L=2.0, sigma_l=3.0, sigma_g=0.0, seed=0)
    setting = at_the_limit(theorem, quadratic.problem(np.zeros(4)), STAGES["momentum"])
    bound = theorem(quadratic.problem(np.zeros(4)), setting).bound
    values = measured(theorem, quadratic, setting, np.zeros(4))
    assert bound.total == bound.sigma_l
    assert bound.total / 100 < np.mean(values) < max(values) <= bound.total


@pytest.mark.parametrize("theorem", [theorem2, corollary])
def test_differences_of_clients_alone_stay_under_their_term(theorem):
    quadratic = make_quadratic(n=10, dim=4, L=2.0, sigma_l=0.0, sigma_g=3.0, seed=0)
    setting = at_the_limit(theorem, quadratic.problem(np.zeros(4)), STAGES["momentum"])
    bound = theorem(quadratic.problem(np.zeros(4)), setting).bound
    values = measured(theorem, quadratic, setting, np.zeros(4))
    assert bound.total == bound.sigma_g
    assert 1e-3 < np.mean(values) < max(values) <= bound.total


def test_skewed_arrival_needs_the_corollary():
    # Only four clients ever arrive: the run settles at their minimum, which eta_l -> 0 cannot move.
    quadratic = make_quadratic(n=10, dim=1, L=1.0, sigma_l=0.0, sigma_g=1.0, seed=0)
    problem, x0 = quadratic.problem(np.zeros(1)), np.zeros(1)
    same = [i for i in range(10) if quadratic.b[i, 0] > 0][:4]
    setting = Setting(10, 4, 1, 1e-3, [(400, 20.0, 0.0, 0.0)], tau=1)
    arrival = [1.0 if i in same else 0.0 for i in range(10)]
    value = simulate_autonomous(quadratic, setting, x0, 0, arrival)
    assert theorem3(problem, setting).holds
    assert value > 100 * theorem3(problem, setting).bound.total
    assert 0.5 < value < corollary(problem, setting).bound.total


def test_theorem3_leaves_out_the_variance_of_drawing_m_of_n():
    # x <- (1-e) x + e b, e = eta eta_l L = .01 and b = +-1: E x^2 -> e/(2-e) = .005,
    # though Pg sg2 = 120 * 1e-6. Theorem 2's 3 eta_l r K Phi is what is missing.
    quadratic = make_quadratic(n=10, dim=1, L=1.0, sigma_l=0.0, sigma_g=1.0, seed=0)
    problem = quadratic.problem(np.zeros(1))
    setting = Setting(10, 1, 1, 1e-3, [(800, 10.0, 0.0, 0.0)], tau=0)
    report = theorem3(problem, setting)
    values = [simulate_autonomous(quadratic, setting, np.zeros(1), seed) for seed in range(5)]
    assert report.holds
    assert report.bound.total == pytest.approx(1.2e-4)
    assert np.mean(values) == pytest.approx(0.005, rel=0.5)
    assert max(values) <= theorem2(problem, setting).bound.total
    assert "no term for drawing" in text_of(report)
    assert theorem3(problem, replace(setting, m=10)).note == ""


def test_outside_the_conditions_a_run_may_leave_the_bound_and_the_report_says_so():
    # eta_l = 1 and L = 2.5: a local step multiplies the error by -1.5.
    quadratic = make_quadratic(n=10, dim=4, L=2.5, sigma_l=1.0, sigma_g=1.5, seed=0)
    x0 = np.full(4, 3.0)
    setting = Setting(10, 10, 5, 1.0, [(20, 1.0, 0.0, 0.0)])
    report = theorem1(quadratic.problem(x0), setting)
    assert simulate(quadratic, setting, x0, seed=0) > report.bound.total
    # 1/(8*5*2.5) = .01
    assert verdict(report) == ["eta_l = 1 is 100 times above what Theorem 1 allows, 0.01."]


def test_the_quadratics_constants_are_exact():
    quadratic = make_quadratic(n=6, dim=3, L=2.0, sigma_l=1.0, sigma_g=1.5, seed=4)
    x0 = np.array([1.0, -2.0, 0.5])
    problem = quadratic.problem(x0)
    assert (problem.L, problem.sigma_g) == pytest.approx((2.0, 1.5))
    for x in (x0, 10 * x0):
        own = quadratic.a * (x - quadratic.b)
        apart = np.linalg.norm(own - own.mean(axis=0), axis=1)
        assert apart == pytest.approx(1.5)  # every client, at every x
        assert own.mean(axis=0) == pytest.approx(quadratic.gradient(x))
    f = [0.5 * (quadratic.a * (x - quadratic.b) ** 2).sum(axis=1).mean() for x in (x0, quadratic.minimum)]
    assert problem.f0_minus_fstar == pytest.approx(f[0] - f[1])


def test_a_noiseless_round_of_the_simulation_by_hand():
    # n = 2, b = +-1/2 (sigma_g = 1, a = 2), x0 = 1, K = 2, eta_l = .1: x - b shrinks by .8^2 = .64, so
    # D = .36 x0 = .36;  eta = 1, beta = nu = .5: d = .18, h = .18 + .09 = .27, x1 = .73
    # ||grad||^2 = (2 x)^2: 4 and 2.1316, mean 3.0658
    quadratic = make_quadratic(n=2, dim=1, L=2.0, sigma_l=0.0, sigma_g=1.0, seed=0)
    setting = Setting(2, 2, 2, 0.1, [(2, 1.0, 0.5, 0.5)])
    assert simulate(quadratic, setting, np.ones(1), seed=0) == pytest.approx(3.0658)
    # Alg. 4 divides by K = 2: D = .18, x1 = 1 - .135 = .865, 4 * .748225 = 2.9929
    assert simulate_autonomous(quadratic, setting, np.ones(1), seed=0) == pytest.approx((4 + 2.9929) / 2)


def outcomes(setting):
    equal = make_quadratic(n=2, dim=1, L=2.0, sigma_l=0.0, sigma_g=0.0, seed=0)
    return sorted({round(simulate_autonomous(equal, setting, np.ones(1), seed), 6) for seed in range(20)})


def test_a_client_makes_its_own_number_of_steps():
    # x0 = 1: one step of .1 * 2 gives D = .2, two give (1 - .64)/2 = .18; of two clients .2, .19 or .18,
    # so x1 = .8, .81 or .82, and Gbar = 2 + 2 x1^2
    setting = Setting(2, 2, 9, 0.1, [(2, 1.0, 0.0, 0.0)], K_law=[(1, 0.5), (2, 0.5)])
    assert outcomes(setting) == pytest.approx([3.28, 3.3122, 3.3448])


def test_a_delayed_client_starts_from_an_older_model():
    # x1 = .8; x2 = .8 - .2 * 1 from the old model, .8 - .2 * .8 from the new: Gbar = 4/3 (1 + .64 + x2^2)
    setting = Setting(2, 1, 1, 0.1, [(3, 1.0, 0.0, 0.0)], tau=1)
    assert outcomes(setting) == pytest.approx([8 / 3, 4 / 3 * 2.0496], abs=1e-6)
