"""Theorems on quadratics with known constants: runs within the conditions stay under the bounds."""

from dataclasses import replace

import numpy as np
import pytest

from fedgm.theory import Setting, corollary, theorem1, theorem2, theorem3, verdict
from tests.paper.quadratic import make_quadratic, simulate, simulate_autonomous
from tests.paper.theorems import THEOREMS, staged, text_of

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


@pytest.mark.parametrize("theorem", [theorem2, theorem3, corollary])
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
    assert value > 30 * theorem3(problem, setting).bound.total
    assert 0.5 < value < corollary(problem, setting).bound.total


def test_the_printed_theorem3_leaves_out_the_variance_of_drawing_m_of_n():
    # x <- (1-e) x + e b, e = eta eta_l L = .01 and b = +-1: E x^2 -> e/(2-e) = .005,
    # though the printed Pg sg2 = 120 * 1e-6. Corrected with r = 1, f = 2.5, B = 10 + 100:
    # 120 * 2.5 * 1e-6 + 6 * 1e-3 * .1 * 110 = .0003 + .066
    quadratic = make_quadratic(n=10, dim=1, L=1.0, sigma_l=0.0, sigma_g=1.0, seed=0)
    problem = quadratic.problem(np.zeros(1))
    setting = Setting(10, 1, 1, 1e-3, [(800, 10.0, 0.0, 0.0)], tau=0)
    printed, corrected = theorem3(problem, setting, "printed"), theorem3(problem, setting)
    values = [simulate_autonomous(quadratic, setting, np.zeros(1), seed) for seed in range(5)]
    assert printed.holds
    assert corrected.holds
    assert printed.bound.total == pytest.approx(1.2e-4)
    assert np.mean(values) == pytest.approx(0.005, rel=0.5)
    assert max(values) <= corrected.bound.total == pytest.approx(0.0663)
    assert "no term for drawing" in text_of(printed)
    assert "no term for drawing" not in text_of(theorem3(problem, replace(setting, m=10), "printed"))


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
