"""Section 4: the theorems' formulas by hand, and their bounds against runs with known constants."""

from dataclasses import replace
from math import sqrt

import numpy as np
import pytest

from fedgm.errors import ConfigError, FedGMError
from fedgm.schedule import Plan, Stage
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
from tests.paper.theorems import PROBLEM, SETTING, THEOREMS, limits, staged, terms, text_of


def test_symbols_by_hand():
    s = symbols(SETTING)
    assert (s.S, s.T, s.C, s.Kmax) == (2, 6, 2, 3)
    # means of (2, 1), (4, 1), (8, 1); W1 and W2 as above
    assert (s.bar, s.h2, s.h3, s.W1, s.W2) == pytest.approx((1.5, 2.5, 4.5, 1, 4))
    assert s.Cb == pytest.approx(1.5)  # (1 - 1/2) / (1 - 2/3)
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
    # min(4*9/(10*3), 17*4/282) = 68/282;  C (1 + 3 + 4) S K = 2*8*2*3 = 96, with C_b 2*(1 + 3 + 6)*2*3 = 120
    assert limits(printed) == pytest.approx([1 / 48, 68 / 282 / 96])
    assert limits(corrected) == pytest.approx([1 / 48, 68 / 282 / 120])
    # Phi = 32*6*(1.5 + 5 + 6)/(17*4) = 600/17;  r = 6/(4*9) = 1/6
    # r K^2 L^3 eta_l^3 Phi = 9*8e-6*600/(6*17) = .0072/17
    # Pl = (.01*600/4 + 15*.0072 + .192)/17 = (1.5 + .108 + .192)/17
    # Pg = (90*3*.0072 + 3*.01*3*600/6 + 3.456)/17 = (1.944 + 9 + 3.456)/17
    assert terms(printed) == pytest.approx((64 / 0.24, 4 * 1.8 / 17, 9 * 14.4 / 17))
    # with C_b in the r-terms 32*6*(1.5 + 5 + 9)/(17*4) = 744/17, with L^2 9*4e-6*744/(6*17) = .004464/17
    # Pl = (1.5 + 15*.004464 + .192)/17;  Pg = (270*.004464 + 3*.01*3*744/6 + 3.456)/17
    # all of it times 1/(1 - 6/(2*9)) = 1.5
    Pl, Pg = (1.5 + 0.06696 + 0.192) / 17, (1.20528 + 11.16 + 3.456) / 17
    assert terms(corrected) == pytest.approx((1.5 * 64 / 0.24, 4 * 1.5 * Pl, 9 * 1.5 * Pg))


def test_theorem2_at_the_ends_of_m():
    # m = 1: n(m-1) = 0 leaves 17/282, and the factor is 2;  m = n: r = 0 and the factor is 1
    one, all_ = theorem2(PROBLEM, replace(SETTING, m=1)), theorem2(PROBLEM, replace(SETTING, m=10))
    assert limits(one)[1] == pytest.approx(17 / 282 / 120)
    assert one.bound.optimisation == pytest.approx(2 * 64 / 0.24)
    assert all_.bound.optimisation == pytest.approx(64 / 0.24)
    assert all_.bound.sigma_g == pytest.approx(9 * 3.456 / 17)


def test_theorem3_printed_by_hand():
    printed = theorem3(PROBLEM, SETTING, "printed")
    # 120 L^2 C tau Kmax^2 = 120*4*2*3*9 = 25920
    assert limits(printed) == pytest.approx([1 / 48, sqrt(1 / 25920)])
    # 4*17/(2*4*.01) = 850;  Pg = 120*1e-4*4*6*1.5*5/4 = .54;  first part of Pl = 20*1e-4*4*9*2/4 = .036
    # phi3/(m W2) = 1/24;  4*4*9*4.5*1e-4 = .0648;  2*4*1.5*.01 = .12;  2*1.5*.01 = .03;  2*2*2.5*.01 = .1
    # The last one is printed without T.
    assert terms(printed) == pytest.approx((850, 4 * (0.036 + (6 * 0.2148 + 0.1) / 24), 9 * 0.54))
    assert any("no term for drawing" in note for note in printed.notes)
    # The condition of the proof: 2*4*2*9*4*4*1e-4 = .2304 and 2*2*(4*2 + 1 + 3)*.01 = .48
    assert any(note.endswith("statement omits; here the left side is 0.71.") for note in printed.notes)


def test_theorem3_corrected_by_hand():
    corrected = theorem3(PROBLEM, SETTING, "corrected")
    # r = 1/6, f = 1 + 1/4;  120*4*2*(3+1)*9*1.25 = 43200
    # S C = 4;  1 + 3 + 4*1.5 = 10;  2*1.25*4*9*4*1.5 = 540:  4 (10 e + 540 e^2) = 1
    assert limits(corrected) == pytest.approx([1 / 48, sqrt(1 / 43200), (sqrt(1600 + 8640) - 40) / 4320])
    # 20 f = 25: .045;  4 f = 5: 5*4*9*4.5*1e-4 = .081, and .12 + .03 + .1, all of it times T
    Pl = 0.045 + 6 * (0.081 + 0.25) / 24
    # 120 f = 150: .675;  B = 1.5 + 5 + 6*1.5 + 540*1.5*.01 = 23.6;  6 r eta_l T/W2 B = .01*1.5*23.6 = .354
    assert terms(corrected) == pytest.approx((850, 4 * Pl, 9 * (0.675 + 0.354)))
    # m = n: r = 0, f = 1, so the sigma_g terms are the printed ones
    every = replace(SETTING, m=10)
    assert terms(theorem3(PROBLEM, every))[2] == terms(theorem3(PROBLEM, every, "printed"))[2]


def test_corollary_by_hand():
    printed, corrected = corollary(PROBLEM, SETTING, "printed"), corollary(PROBLEM, SETTING, "corrected")
    # 180*4*2*3*9 = 38880, with tau + 1 51840
    # 3*4*2*9*4*4 = 3456;  2*2*(8 + 1 + 3) = 48;  48^2 + 4*3456 = 16128
    assert limits(printed) == pytest.approx([1 / 48, sqrt(1 / 38880)])
    assert limits(corrected) == pytest.approx([1 / 48, sqrt(1 / 51840), (sqrt(16128) - 48) / 6912])
    # 20 -> 30: .054;  4 -> 6: .0972;  120 -> 180: .81, and 6 more.  The last term is printed with T.
    by_hand = (850, 4 * (0.054 + 6 * (0.0972 + 0.12 + 0.03 + 0.1) / 24), 9 * 6.81)
    assert terms(printed) == pytest.approx(by_hand)
    assert terms(corrected) == pytest.approx(by_hand)


@pytest.mark.parametrize("variant", ["printed", "corrected"])
def test_the_corollary_holds_only_where_no_client_differs_by_more_than_sigma_g(variant):
    tiny = replace(SETTING, eta_l=1e-9)
    assert corollary(PROBLEM, tiny, variant).holds
    outlier = corollary(replace(PROBLEM, sigma_max=6.0), tiny, variant)
    assert not outlier.holds
    assert verdict(outlier) == [
        "max_i |grad f_i - grad f| = 6 is 2 times above 3: "
        "max_i |grad f_i - grad f| <= sigma_g (unstated) fails."
    ]
    unknown = corollary(replace(PROBLEM, sigma_max=None), tiny, variant)
    assert not unknown.holds
    assert "is not known" in verdict(unknown)[0]
    assert "not known" in text_of(unknown)
    assert "Give sigma_g the largest" in " ".join(text_of(unknown).replace("│", "").split())
    assert theorem3(replace(PROBLEM, sigma_max=None), tiny).holds  # no other theorem asks for it


@pytest.mark.parametrize("nu", [-0.1, 1.1])
def test_theorem3_refuses_nu_outside_the_unit_interval(nu):
    wild = replace(SETTING, stages=[(2, 2.0, 0.5, nu)])
    for theorem in (theorem3, corollary):
        with pytest.raises(ConfigError, match=f"nu={nu}: Theorem 3 and its corollary"):
            theorem(PROBLEM, wild)
    assert theorem2(PROBLEM, replace(wild, tau=0, K_law=(), eta_l=1e-9)).holds


def test_a_theorem_that_does_not_speak_of_the_setting_never_holds():
    tiny, still = replace(SETTING, eta_l=1e-9), replace(SETTING, eta_l=1e-9, tau=0, K_law=())
    assert [c.subject for c in theorem1(PROBLEM, tiny).conditions if not c.holds] == [
        "n", "tau", "the largest K",
    ]  # fmt: skip
    assert [c.subject for c in theorem2(PROBLEM, tiny).conditions if not c.holds] == ["tau", "the largest K"]
    assert "tau = 3 is not 0: no delay: Theorem 3 has delays." in verdict(theorem2(PROBLEM, tiny))
    assert theorem2(PROBLEM, still).holds
    assert theorem1(PROBLEM, replace(still, m=10)).holds


def test_the_corollary_has_a_floor_that_no_local_rate_removes():
    tiny = replace(SETTING, eta_l=1e-12)
    assert corollary(PROBLEM, tiny).bound.sigma_g == pytest.approx(6 * 9)
    assert theorem3(PROBLEM, tiny).bound.sigma_g == pytest.approx(0, abs=1e-9)


def test_without_delay_only_the_printed_delay_condition_allows_anything():
    assert limits(theorem3(PROBLEM, replace(SETTING, tau=0), "printed")) == [pytest.approx(1 / 48), np.inf]
    # corrected: one age is one age too many to leave out, 120*4*2*1*9*1.25 = 10800
    assert limits(theorem3(PROBLEM, replace(SETTING, tau=0)))[1] == pytest.approx(sqrt(1 / 10800))


def test_rates_by_hand():
    assert rate("1", SETTING).number == pytest.approx(1 / sqrt(6 * 3 * 10))
    assert rate("2", SETTING).number == pytest.approx(sqrt(3 / (6 * 4)))
    autonomous = rate("3", SETTING)  # sqrt(2/(4*6)) for the draw, 3^2/6 and 5/6: the delay is the largest
    assert autonomous.number == pytest.approx(sqrt(2 / 24) + 9 / 6 + 5 / 6)
    assert autonomous.text == "O(sqrt(K/(m T))) + O(tau^2/T) + O(K^2/T)"
    # without the draw 1/sqrt(m K T): as printed, with all clients, and in the corollary
    assert rate("3", SETTING, "printed").number == pytest.approx(1 / sqrt(4 * 2 * 6) + 14 / 6)
    assert rate("3", replace(SETTING, m=10)).number == pytest.approx(1 / sqrt(10 * 2 * 6) + 14 / 6)
    assert rate("3n", SETTING).number == pytest.approx(1 / sqrt(48) + 14 / 6)
    assert "delay" in autonomous.regime
    assert "drift" in rate("3", replace(SETTING, tau=1)).regime


def test_the_papers_setting_is_far_outside_theorem_1():
    # W1 = 2*.9*.9/.1 = 16.2, C = 4, bar = 7/6: K S C (7/6 + 1 + 262.44*4) = 900 * 1051.9267 = 946734
    setting = Setting(100, 100, 75, 0.01, staged(1000, [2.0, 1.0, 0.5], 0.9, 0.9))
    report = theorem1(Problem(1, 1, 1, 1), setting)
    assert report.eta_l_limit == pytest.approx(1 / 946734, rel=1e-6)
    assert not report.holds
    assert verdict(report) == ["eta_l = 0.01 is 9,467 times above what Theorem 1 allows, 1.06e-06."]


def test_broken_stages_are_told_by_name():
    rising = replace(SETTING, eta_l=1e-9, stages=[(2, 1.0, 0.5, 0.5), (4, 2.0, 0.4, 0.5)])
    failed = {c.subject: c.factor for c in theorem3(PROBLEM, rising).conditions if not c.holds}
    # eta 1 -> 2;  beta .5 -> .4;  W1 .5 and 2/3;  W2 2 and 8, 6 apart where max eta = 2 is allowed
    expected = {"eta_{s+1}/eta_s": 2, "beta_s/beta_{s+1}": 1.25, "W1": 4 / 3, "W2's spread": 3}
    assert failed == pytest.approx(expected)
    assert all(c.holds for c in theorem3(PROBLEM, replace(SETTING, eta_l=1e-9)).conditions)


def test_condition_counts_in_both_directions():
    assert (Condition("", 1.0, 4.0).holds, Condition("", 1.0, 4.0).factor) == (True, 4)
    assert (Condition("", 4.0, 1.0).holds, Condition("", 4.0, 1.0).factor) == (False, 4)
    assert Condition("", 0.0, 0.0).factor == 1


@pytest.mark.parametrize("theorem", THEOREMS)
@pytest.mark.parametrize("variant", ["printed", "corrected"])
@pytest.mark.parametrize("eta_l", [1e-7, 0.1])
def test_the_report_fits_80_columns_and_says_what_fails(theorem, variant, eta_l):
    report = theorem(PROBLEM, fitting(theorem, eta_l), variant)
    text = text_of(report)
    assert max(map(len, text.splitlines())) <= 80
    assert report.holds == (eta_l == 1e-7)
    assert ("times above what" in text) == ("not a promise" in text) == (not report.holds)
    assert "never a gate" in text
    assert ("unpublished" in text) == (variant == "corrected" and theorem is not theorem1)


def fitting(theorem, eta_l):
    """SETTING, without what the theorem does not speak of."""
    own = {theorem1: {"m": 10, "tau": 0, "K_law": ()}, theorem2: {"tau": 0, "K_law": ()}}
    return replace(SETTING, eta_l=eta_l, **own.get(theorem, {}))


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
    with pytest.raises(ConfigError, match="sigma_max=1"):
        Problem(1, 1, 2, 1, sigma_max=1)
    with pytest.raises(ConfigError, match="L=0"):
        Problem(0, 1, 1, 1)
    with pytest.raises(FedGMError, match="cover FedGM"):
        theory_stages(Plan((Stage(3, {"eta": 1.0}),)))
