"""Eq. 3, the stages of multistage FedGM."""

from itertools import pairwise
from math import ceil, floor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedgm.errors import ConfigError
from fedgm.schedule import Constant, Multistage, stage_ends
from fedgm.schedule.stages import length_constant, violations
from fedgm.server import GeneralMomentum, Momentum, momentum_constant, server_step

FIGURES = [(1000, [143, 429, 1000]), (2000, [286, 857, 2000])]
ETAS = [2.0, 1.0, 0.5]


@pytest.mark.parametrize(("rounds", "ends"), FIGURES)
def test_eq3_puts_the_drops_where_figures_2_and_8_draw_them(rounds, ends):
    assert stage_ends(rounds, ETAS) == ends
    assert Multistage(ETAS).plan(rounds, GeneralMomentum(2.0, 0.7, 0.9)).ends == ends


@pytest.mark.parametrize("rounding", [floor, ceil])
def test_floor_and_ceil_would_miss_a_drawn_line(rounding):
    drawn = [ends[:2] for _, ends in FIGURES]
    shares = [1 / 7, 3 / 7]
    assert [[rounding(rounds * share) for share in shares] for rounds, _ in FIGURES] != drawn


@pytest.mark.parametrize(
    ("beta", "expected"), [(0.9, [0.9, 0.947368, 0.972973]), (0.7, [0.7, 0.823529, 0.903226])]
)
def test_eq3_betas(beta, expected):
    stages = Multistage(ETAS).plan(1000, GeneralMomentum(ETAS[0], beta, 0.9)).stages
    assert [s.hyper["beta"] for s in stages] == pytest.approx(expected, abs=5e-7)


def test_eq3_betas_of_fednag():
    plan = Multistage(ETAS).plan(1000, GeneralMomentum(2.0, 0.9, 0.9, nu_is_beta=True))
    assert [s.hyper["beta"] for s in plan.stages] == pytest.approx([0.9, 0.944888, 0.970906], abs=5e-7)
    assert all(s.hyper["nu"] == s.hyper["beta"] for s in plan.stages)


falling = st.lists(st.floats(0.1, 8), min_size=1, max_size=5).map(lambda etas: sorted(etas, reverse=True))
factors = st.floats(0.05, 0.97)


@settings(deadline=None)
@given(falling, st.integers(400, 5000), factors, factors, st.booleans())
def test_eq3_holds_for_any_etas(etas, rounds, beta, nu, tied):
    rule = GeneralMomentum(etas[0], beta, beta if tied else nu, nu_is_beta=tied)
    stages = Multistage(etas).plan(rounds, rule).stages
    lengths = [s.rounds for s in stages]
    assert sum(lengths) == rounds
    assert min(lengths) > 0
    common = rounds / sum(1 / eta for eta in etas)
    assert all(abs(length_constant(s) - common) <= max(etas) + 1e-9 for s in stages)
    W1 = [momentum_constant(Momentum(**s.hyper)) for s in stages]
    assert pytest.approx([W1[0]] * len(W1), rel=1e-12) == W1
    assert violations(stages) == []


@settings(deadline=None)
@given(falling, st.integers(1, 20))
def test_an_empty_stage_is_refused_with_rounds_that_work(etas, rounds):
    rule = GeneralMomentum(etas[0], 0.9, 0.9)
    ends = stage_ends(rounds, etas)
    if all(a < b for a, b in pairwise([0, *ends])):
        assert Multistage(etas).plan(rounds, rule).ends == ends
    else:
        with pytest.raises(ConfigError, match=r"contain an empty one\. Try rounds=") as caught:
            Multistage(etas).plan(rounds, rule)
        works = int(str(caught.value).rpartition("=")[2])
        assert works > rounds
        assert min(s.rounds for s in Multistage(etas).plan(works, rule).stages) > 0


def test_an_empty_stage_over_a_wide_range_is_refused_without_a_search_of_a_million_rounds():
    with pytest.raises(ConfigError, match=r"rounds=100000100001$"):
        Multistage([1e6, 10.0, 1e-5]).plan(10, GeneralMomentum(1.0, 0.9, 0.9))


@pytest.mark.parametrize("etas", [[], [0.0], [1.0, 2.0], [1.0, float("nan")], [float("inf"), 1.0]])
def test_etas_that_eq3_forbids_are_refused_by_key(etas):
    with pytest.raises(ConfigError) as caught:
        Multistage(etas).plan(100, GeneralMomentum(1.0, 0.9, 0.9))
    assert caught.value.key == "schedule.etas"


@pytest.mark.parametrize("tied", [False, True])
def test_z_moves_by_eta_times_the_update_across_stage_ends(tied):
    # z = x - W1 d has z_{t+1} - z_t = -eta_t D_t, whatever the stage: d is carried over, W1 is kept.
    rng = np.random.default_rng(0)
    plan = Multistage(ETAS).plan(70, GeneralMomentum(2.0, 0.9, 0.9 if tied else 0.7, nu_is_beta=tied))
    W1 = momentum_constant(Momentum(**plan.at(1)[1]))
    x, d = rng.standard_normal(20), np.zeros(20)
    seen = set()
    for t in range(1, 71):
        stage, hyper = plan.at(t)
        seen.add(stage)
        delta = rng.standard_normal(20)
        z = x - W1 * d
        x, d = server_step(x, d, delta, Momentum(**hyper))
        assert x - W1 * d - z == pytest.approx(-hyper["eta"] * delta, abs=1e-12)
    assert seen == {1, 2, 3}


def test_one_stage_is_the_constant_schedule():
    rule = GeneralMomentum(2.0, 0.9, 0.7)
    assert Multistage([2.0]).plan(50, rule) == Constant().plan(50, rule)


def test_a_round_beyond_the_last_is_refused_with_the_way_out():
    plan = Multistage(ETAS).plan(70, GeneralMomentum(2.0, 0.9, 0.9))
    assert plan.at(70)[0] == 3
    with pytest.raises(ValueError, match=r"round 71 has no stage.*Set rounds=70"):
        plan.at(71)
