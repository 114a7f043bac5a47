"""Section 4: the theorems' formulas by hand, and their bounds against runs with known constants."""

from dataclasses import replace
from math import sqrt

import numpy as np
import pytest
from theorems import PROBLEM, SETTING, THEOREMS, limits, staged, terms, text_of

from fedgm.errors import ConfigError, FedGMError
from fedgm.server import Plan, Stage
from fedgm.theory import (
    Condition,
    Problem,
    Setting,
    corollary,
    diagnose,
    rate,
    symbols,
    theorem1,
    theorem2,
    theorem3,
    theory_stages,
    verdict,
)


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
