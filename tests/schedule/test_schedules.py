"""Explicit stages, and schedules that change every round."""

import pickle
import warnings
from math import floor, log2

import pytest

from fedgm.errors import ConfigError
from fedgm.schedule import Multistage, Stage
from fedgm.schedule.every_round import Cosine, Cyclic, Polynomial, Sutskever, WarmupStep
from fedgm.schedule.stages import Stages, length_constant, violations
from fedgm.server import GeneralMomentum, Momentum, momentum_constant
from fedgm.server.adaptive import FedAdagrad, FedAdam, FedAMS, FedAMSGrad, FedYogi, NormalizedMomentum, QHAdam

ETAS = [2.0, 1.0, 0.5]
RULE = GeneralMomentum(2.0, 0.9, 0.9)
FEDNAG = GeneralMomentum(2.0, 0.9, 0.9, nu_is_beta=True)
FEDADAM = FedAdam(0.01, 0.9, 0.001, 0.99)


def etas_of(schedule, rounds, rule=RULE):
    plan = schedule.plan(rounds, rule)
    return [plan.at(t)[1]["eta"] for t in range(1, rounds + 1)]


# ---- stages ------------------------------------------------------------------------------------------


OUTSIDE = [
    FedAdam(0.01, 0.9, 0.001, 0.99),
    FedYogi(0.01, 0.9, 0.001, 0.99),
    FedAdagrad(0.1, 0.0, 0.001),
    FedAMS(0.01, 0.9, 0.001, 0.99),
    FedAMSGrad(0.01, 0.9, 0.001, 0.99),
    QHAdam(0.01, 0.9, 0.001, 0.99, 0.7, 1.0),
    NormalizedMomentum(0.5, 0.9),
]


@pytest.mark.parametrize("rule", OUTSIDE, ids=lambda rule: type(rule).__name__)
def test_a_rule_outside_the_family_refuses_eq3_and_has_its_eta_multiplied_by_stages(rule):
    with pytest.raises(ConfigError, match=r"schedule=multistage.*Eq\. 3.* Try schedule=stages"):
        Multistage(ETAS).plan(1000, rule)
    plan = Stages(ETAS).plan(1000, rule)
    assert plan.ends == [143, 429, 1000]
    own = rule.hyper["eta"]
    assert [plan.at(t)[1] for t in (1, 144, 430)] == [{**rule.hyper, "eta": own * f} for f in ETAS]


@pytest.mark.parametrize("rule", [RULE, FEDNAG])
def test_stages_with_nothing_but_etas_are_multistage(rule):
    assert Stages(ETAS).plan(1000, rule) == Multistage(ETAS).plan(1000, rule)


def test_all_lists_given_are_used_as_they_are_and_pass_eq3():
    lists = {"betas": [0.9, 0.9474, 0.973], "nus": [0.9] * 3, "lengths": [143, 286, 571]}
    plan = Stages(ETAS, **lists).plan(1000, RULE)  # a warning would be an error here
    assert plan.ends == [143, 429, 1000]
    assert plan.at(144) == (2, {"eta": 1.0, "beta": 0.9474, "nu": 0.9})
    assert plan.at(1000) == (3, {"eta": 0.5, "beta": 0.973, "nu": 0.9})


def test_betas_follow_w1_under_given_nus():
    plan = Stages(ETAS, nus=[0.9, 0.8, 0.7]).plan(1000, RULE)
    W1 = [momentum_constant(Momentum(**s.hyper)) for s in plan.stages]
    assert pytest.approx([16.2] * 3, rel=1e-12) == W1
    assert plan.stages[1].hyper["beta"] == pytest.approx(16.2 / 17)


def test_nu_stays_tied_to_given_betas_in_fednag():
    plan = Stages(ETAS, betas=[0.9, 0.944888, 0.970906]).plan(1000, FEDNAG)
    assert [s.hyper["nu"] for s in plan.stages] == [0.9, 0.944888, 0.970906]


@pytest.mark.parametrize(
    ("lists", "message"),
    [
        ({"etas": [1.0, 2.0]}, r"eta must not increase, but rises by 1 in stage 2"),
        ({"betas": [0.9, 0.8, 0.9]}, r"beta must not decrease, but falls by 0\.1 in stage 2"),
        (
            {"betas": [0.9, 0.9, 0.9]},
            r"W1 .* must stay 16\.2, but is 8\.1 in stage 2.*but is 4\.05 in stage 3",
        ),
        ({"lengths": [300, 300, 400]}, r"W2 .* must be 285\.7 .* = 2, but is 600 in stage 1"),
    ],
)
def test_each_broken_constraint_is_named_with_its_size(lists, message):
    with pytest.warns(UserWarning, match=message):
        plan = Stages(**{"etas": ETAS, **lists}).plan(1000, RULE)
    assert plan.ends[-1] == 1000


def test_violations_keeps_to_the_tolerance_of_whole_rounds():
    def stages(first):
        return [Stage(first, {"eta": 2.0}), Stage(300 - first, {"eta": 1.0})]

    # The common W2 is 200; 101 rounds at eta 2 miss it by 2 = max(eta), 102 by 4.
    assert violations(stages(100)) == violations(stages(101)) == []
    assert len(violations(stages(102))) == 1
    assert length_constant(stages(101)[0]) == 202


def test_a_single_stage_breaks_nothing():
    assert violations([Stage(10, {"eta": 1.0, "beta": 0.9, "nu": 1.0})]) == []


def test_a_stage_without_momentum_follows_nothing():
    plan = Stages(ETAS, nus=[0.0] * 3).plan(1000, RULE)
    assert [s.hyper["beta"] for s in plan.stages] == [0.9] * 3


@pytest.mark.parametrize(
    ("lists", "key"),
    [
        ({"etas": []}, "schedule.etas"),
        ({"etas": [1.0, -1.0, 1.0]}, "schedule.etas"),
        ({"betas": [0.9]}, "schedule.betas"),
        ({"betas": []}, "schedule.betas"),
        ({"betas": [0.9, 0.9, 1.0]}, "schedule.betas"),
        ({"nus": [0.9, 0.9, float("nan")]}, "schedule.nus"),
        ({"lengths": [1, 2]}, "schedule.lengths"),
        ({"lengths": [500, 500, 0]}, "schedule.lengths"),
        ({"lengths": [100, 200, 300]}, "rounds"),
    ],
)
def test_wrong_lists_are_refused_by_key(lists, key):
    with pytest.raises(ConfigError) as caught:
        Stages(**{"etas": ETAS, **lists}).plan(1000, RULE)
    assert caught.value.key == key


def test_lengths_that_miss_the_rounds_say_what_to_type():
    with pytest.raises(ConfigError, match=r"\[100,200,300\] add up to 600\. Try rounds=600"):
        Stages(ETAS, lengths=[100, 200, 300]).plan(1000, RULE)


def test_betas_for_a_rule_without_beta_are_refused():
    with pytest.raises(ConfigError, match=r"no beta and nu to set. Try schedule\.betas=null"):
        Stages(ETAS, betas=[0.9] * 3).plan(1000, FEDADAM)


# ---- schedules that change every round ---------------------------------------------------------------

CURVES = [
    Polynomial(0.5),
    Cosine(0.1),
    WarmupStep(0.1, [0.5, 0.75], 0.1),
    Cyclic(2, 0.1),
]


@pytest.mark.parametrize("schedule", [*CURVES, Sutskever(0.99, 10)])
def test_a_schedule_by_rounds_is_one_stage_of_all_rounds(schedule):
    plan = schedule.plan(40, RULE)
    assert plan.ends == [40]
    assert [plan.at(t)[0] for t in (1, 20, 40)] == [1, 1, 1]
    assert plan.at(1)[1] == plan.stages[0].hyper
    assert plan.at(1)[1] != plan.at(30)[1]
    with pytest.raises(ValueError, match="round 41 has no stage"):
        plan.at(41)
    assert pickle.loads(pickle.dumps(plan)).at(17) == plan.at(17)


@pytest.mark.parametrize("schedule", CURVES)
def test_a_curve_moves_eta_alone_unless_told_to_keep_w1(schedule):
    plan = schedule.plan(40, RULE)
    assert all(plan.at(t)[1].items() >= {"beta": 0.9, "nu": 0.9}.items() for t in range(1, 41))
    kept = type(schedule)(**{**vars(schedule), "follow_w1": True}).plan(40, RULE)
    for t in range(1, 41):
        assert kept.at(t)[1]["eta"] == plan.at(t)[1]["eta"] > 0
        assert momentum_constant(Momentum(**kept.at(t)[1])) == pytest.approx(16.2, rel=1e-9)


@pytest.mark.parametrize("schedule", CURVES)
def test_a_curve_serves_rules_without_beta(schedule):
    assert set(schedule.plan(40, FEDADAM).at(7)[1]) == {"eta"}


def test_polynomial():
    assert etas_of(Polynomial(0.5), 9)[:4] == pytest.approx([2, 2 / 2**0.5, 2 / 3**0.5, 1])


def test_cosine():
    etas = etas_of(Cosine(0.0), 100)
    assert (etas[0], etas[50]) == pytest.approx((2, 1))
    assert 0 < etas[-1] < 0.001
    assert etas_of(Cosine(0.25), 10_000)[-1] == pytest.approx(0.5, abs=1e-6)


def test_warmup_and_steps():
    etas = etas_of(WarmupStep(0.1, [0.5, 0.75], 0.1), 100)
    assert etas[:10] == pytest.approx([0.2 * t for t in range(1, 11)])
    assert etas[10:50] == pytest.approx([2] * 40)
    assert etas[50:75] == pytest.approx([0.2] * 25)
    assert etas[75:] == pytest.approx([0.02] * 25)


def test_cyclic():
    etas = etas_of(Cyclic(2, 0.1), 40)
    assert (etas[0], etas[5], etas[10], etas[15]) == pytest.approx((0.2, 1.1, 2.0, 1.1))
    assert etas[:20] == pytest.approx(etas[20:])


def test_sutskever_as_printed():
    schedule = Sutskever(0.9, 250)
    plan = schedule.plan(2000, RULE)
    for t in (1, 249, 250, 499, 500, 999, 1000, 2000):
        printed = min(1 - 2 ** (-1 - log2(floor(t / 250) + 1)), 0.9)
        assert plan.at(t)[1] == pytest.approx({"eta": 2.0, "beta": printed, "nu": 0.9})
    assert [plan.at(t)[1]["beta"] for t in (249, 250, 500, 2000)] == pytest.approx([1 / 2, 3 / 4, 5 / 6, 0.9])


def test_sutskever_carries_nu_along_in_fednag_and_needs_a_beta():
    assert Sutskever(0.99, 250).plan(10, FEDNAG).at(1)[1]["nu"] == 0.5
    assert Sutskever(0.99, 250).plan(10, NormalizedMomentum(1.0, 0.9)).at(1)[1] == {"eta": 1.0, "beta": 0.5}
    with pytest.raises(ConfigError, match=r"schedule=sutskever.* no beta"):
        Sutskever(0.99, 250).plan(10, FEDADAM)


@pytest.mark.parametrize(
    ("make", "key"),
    [
        (lambda: Polynomial(-1.0), "schedule.power"),
        (lambda: Cosine(1.5), "schedule.final"),
        (lambda: WarmupStep(1.0, [0.5], 0.1), "schedule.warmup"),
        (lambda: WarmupStep(0.1, [0.5, 0.5], 0.1), "schedule.drops"),
        (lambda: WarmupStep(0.1, [0.5, 1.5], 0.1), "schedule.drops"),
        (lambda: WarmupStep(0.1, [0.5], 0.0), "schedule.ratio"),
        (lambda: Cyclic(0, 0.1), "schedule.cycles"),
        (lambda: Cyclic(1, 0.0), "schedule.low"),
        (lambda: Sutskever(1.0, 250), "schedule.beta_max"),
        (lambda: Sutskever(0.9, 0), "schedule.every"),
    ],
)
def test_values_out_of_range_are_refused_by_key(make, key):
    with pytest.raises(ConfigError) as caught:
        make()
    assert caught.value.key == key


def test_a_run_shorter_than_the_warmup_still_works():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert etas_of(WarmupStep(0.05, [0.5], 0.1), 2) == pytest.approx([2, 0.2])
