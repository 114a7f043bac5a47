"""Which values follow from FedAvg's edge: against numbers worked by hand and simulations of Eq. 2."""

from math import inf

import numpy as np
import pytest

from fedgm.errors import RefusedError
from fedgm.server import GeneralMomentum, Momentum, server_step
from fedgm.server.momentum import PrimalAveraging
from fedgm.theory.auto import Auto
from fedgm.theory.noise import lag, stationary_variance
from fedgm.theory.stability import IDEAL, READINGS, response
from fedgm.theory.suggestion import (
    EDGE_AT_ONE,
    FEDAVG,
    PAIRS,
    STEADY,
    Step,
    edge_of,
    is_past,
    largest_steady,
    steps_of,
    suggest,
)

LITERAL = READINGS[2]


def test_the_steps_of_rows():
    """The last loss of each eta of FedAvg; what was not measured, and FedGM after the test, say nothing."""
    rows = [(0.5, None, 0), (0.5, 2.0, 0), (0.7, 1.0, 0), (0.7, 1.1, 0), (1.0, None, 0), (5.0, 0.1, 0.9)]
    columns = ("server/eta", "train/loss", "server/nu")
    assert steps_of(dict(zip(columns, row, strict=True)) for row in rows) == [Step(0.5, 2.0), Step(0.7, 1.1)]


@pytest.mark.parametrize(
    ("losses", "edge"),
    [
        ([2.0, 1.0, 1.09, 1.2], 2.0),  # 1.09 is within a tenth of the lowest, 1.2 is not
        ([2.0, 1.0, inf], 2.0),
        ([2.0, 1.0, 1.05, 0.9, 1.0], 4.0),
    ],
)
def test_the_edge_has_the_lowest_loss(losses, edge):
    steps = [Step(eta, loss) for eta, loss in zip([1.0, 2.0, 3.0, 4.0, 5.0], losses, strict=False)]
    assert is_past(steps)
    assert not is_past(steps[:-1])
    assert edge_of(steps) == edge


def test_a_test_that_only_lost_has_no_edge():
    with pytest.raises(RefusedError, match=r"gains nothing above eta 1, where its test begins"):
        edge_of([Step(1.0, 2.0), Step(2.0, 2.3)])


def simulated(a, m, rounds=60_000):
    """Var of the signal in D under Eq. 2 with drawn noise, in one direction."""
    rng = np.random.default_rng(0)
    draws = 50
    past, d = [np.zeros(draws) for _ in a], np.zeros(draws)
    total = 0.0
    for t in range(rounds // draws):
        delta = sum(share * x for share, x in zip(a, past, strict=True)) + rng.normal(size=draws)
        x, d = server_step(past[0], d, delta, m)
        past = [x, *past[:-1]]
        total += float((x**2).mean()) if t >= 200 else 0.0
    return total / (rounds // draws - 200)


@pytest.mark.parametrize("reading", [IDEAL, LITERAL], ids=["ideal", "delay 5"])
def test_what_is_called_steady_is_so_in_a_simulation(reading):
    found = suggest(EDGE_AT_ONE, 125, reading).momentum
    a = [1.0] if reading is IDEAL else response(reading, 0.0)
    assert simulated(a, found) == pytest.approx(STEADY, rel=0.1)
    assert simulated(a, found._replace(eta=1.3 * found.eta)) > 1.15 * STEADY


def test_no_pair_has_a_larger_eta_that_is_as_steady():
    chosen = suggest(2.0, 125).momentum
    for pair in PAIRS:
        if lag(Momentum(1.0, *pair)) <= 125 / 3.5:
            larger = Momentum(1.15 * chosen.eta, *pair)
            assert (EDGE_AT_ONE / 2) ** 2 * stationary_variance([EDGE_AT_ONE / 2], larger) > STEADY


def test_eta_follows_the_edge_and_beta_the_rounds():
    assert suggest(2.8, 125).momentum == Momentum(10.0, 0.95, 0.9)  # twice (5, 0.95, 0.9) at an edge of 1.4
    lags = [lag(suggest(1.4, rounds).momentum) for rounds in (4, 10, 30, 125, 1000)]
    assert lags == sorted(lags)
    assert all(each <= rounds / 3.5 for each, rounds in zip(lags, (4, 10, 30, 125, 1000), strict=True))


def test_stale_clients_get_a_smaller_eta_and_nu_below_beta():
    """Delay 5, literal: the model's FedAvg is unstable from 0.95 on (docs/momentum.md)."""
    found = suggest(1.4, 125, LITERAL)
    assert found.momentum.eta < suggest(1.4, 125).momentum.eta / 3
    assert found.momentum.nu < found.momentum.beta
    assert found.fedavg < 0.95
    halved = suggest(0.7, 125, LITERAL).momentum  # a round goes twice as far
    assert halved == pytest.approx((found.momentum.eta / 2, found.momentum.beta, found.momentum.nu), rel=0.05)


def test_the_gain_by_hand():
    """eta 5 to 0.86, less the lag of 17.1 of 125 rounds; FedAvg at its edge is 1.4 to 6/7 as fast."""
    found = suggest(1.4, 125)
    assert found.model_gain(125) == pytest.approx(5 / 0.86 * (1 - 17.1 / 125) * 0.857143 / 1.4, rel=1e-5)
    assert found.gain(125) == pytest.approx([share * found.model_gain(125) for share in (0.7, 0.45, 1.6)])


def test_fedavgs_own_limit_by_hand():
    """c^2 V = eta c / (2 - eta c) is 3/4 at eta c = 6/7."""
    assert largest_steady(EDGE_AT_ONE, FEDAVG) == 0.86
    assert largest_steady(10 * EDGE_AT_ONE, FEDAVG) == 8.6


def auto(**keys):
    return Auto(**{"start": 0.5, "each": 4, "every": 2, "drop": 0.2} | keys)


RULE = GeneralMomentum(eta=2.0, beta=0.9, nu=0.8)
LOSSES = {2: 9.0, 4: 2.0, 6: None, 8: 1.5, 12: 1.2, 16: 1.7, 20: 0.1}  # by round; lowest in the third step


def shown(plan, losses=LOSSES, rounds=range(1, 61)):
    for t in rounds:
        plan.observe({"round": t, "train/loss": losses.get(t)})
    return plan


def test_auto_raises_eta_until_the_loss_rises():
    plan = shown(auto().plan(120, RULE))
    assert plan.ends == [4, 8, 12, 16, 16 + 104 - 20, 120]
    assert [stage.hyper["eta"] for stage in plan.stages[:4]] == pytest.approx([0.5, 0.5**0.5, 1.0, 2**0.5])
    assert all(stage.hyper["nu"] == 0 for stage in plan.stages[:4])  # FedAvg
    values = suggest(1.0, 104).momentum
    assert plan.stages[4].hyper == pytest.approx(values._asdict())
    late = plan.stages[5].hyper
    assert late["eta"] == values.eta / 2
    W1 = [h["eta"] * h["beta"] * h["nu"] / (1 - h["beta"]) for h in (values._asdict(), late)]
    assert W1[0] == pytest.approx(W1[1])
    assert len(shown(auto(drop=0.0).plan(120, RULE)).stages) == 5


def test_auto_goes_on_from_a_checkpoint():
    whole = shown(auto().plan(120, RULE))
    for end in (3, 4, 10, 16, 30):
        first, second = shown(auto().plan(120, RULE), rounds=range(1, end + 1)), auto().plan(120, RULE)
        second.load_state_dict(first.state_dict())
        assert first.is_over == second.is_over == (end >= 16)
        assert shown(second, rounds=range(end + 1, 61)).stages == whole.stages


def test_a_step_ends_with_an_evaluation():
    assert [auto(each=4, every=every).length for every in (1, 2, 3, 4, 5, 10)] == [4, 4, 6, 4, 5, 10]


def test_auto_says_why_it_takes_the_algorithms_own_values():
    said = "schedule=auto goes on with .* eta 2, beta 0.9, nu 0.8: "
    with pytest.warns(UserWarning, match=f"{said}FedAvg gains nothing above eta 0.5.*Try a smaller schedule"):
        plan = shown(auto().plan(104, RULE), {4: 2.0, 8: 2.3})
    assert (plan.ends, plan.stages[-1].hyper) == ([4, 8, 104], RULE.hyper)  # without a drop
    with pytest.warns(UserWarning, match=f"{said}round 8 has no train/loss.*Try eval.every=4"):
        plan = shown(auto().plan(104, RULE), {4: 2.0})
    assert (plan.ends, plan.stages[-1].hyper) == ([4, 8, 104], RULE.hyper)


@pytest.mark.parametrize("edge", [0.1, 1.4, 60.0, 300.0])
def test_eta_is_in_proportion_to_every_edge(edge):
    found = suggest(edge, 125).momentum
    assert (found.beta, found.nu) == (0.95, 0.9)
    assert found.eta == pytest.approx(5.02 * edge / 1.4, rel=0.05)


def test_auto_takes_what_it_has_seen_after_half_of_the_rounds():
    """Steps of 4 in 52 rounds are 13: the last has 64 times the first eta, and the lowest loss."""
    plan = shown(auto(drop=0.0).plan(104, RULE), {t: 2.0 - t / 100 for t in range(4, 61, 4)})
    assert plan.ends[-2] == 52
    assert plan.stages[-1].hyper["eta"] == suggest(0.5 * 64, 52).momentum.eta


@pytest.mark.parametrize(
    ("keys", "rounds", "said"),
    [
        ({"start": 0.0}, 40, "schedule.start=0.0"),
        ({"each": 0}, 40, "schedule.each=0"),
        ({"drop": 1.0}, 40, "schedule.drop=1.0"),
        ({"every": 0}, 40, "schedule.every=0"),
        ({}, 15, "rounds=15: expected at least 16.*Try rounds=64, or a smaller eval.every"),
    ],
)
def test_auto_refuses(keys, rounds, said):
    with pytest.raises(RefusedError, match=said):
        auto(**keys).plan(rounds, RULE)


@pytest.mark.parametrize(
    "rule", [GeneralMomentum(1.0, 0.9, 0.9, nu_is_beta=True), PrimalAveraging(1.0, 0.9, 0.9)]
)
def test_auto_refuses_rules_whose_values_are_not_free(rule):
    with pytest.raises(RefusedError, match="Try algorithm=fedgm"):
        auto().plan(40, rule)
