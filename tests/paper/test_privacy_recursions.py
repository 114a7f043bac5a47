"""Clipping, noise and epsilon: special cases, and numbers worked by hand."""

from math import exp, log

import numpy as np
import pytest

from tests.paper import recursions_privacy as privacy
from tests.paper.recursions_problem import COHORTS, START, gradient, keys
from tests.paper.system_recursions import Server, fedavg

RATE = 0.05


def same(left, right):
    return np.max(np.abs(np.stack(left) - np.stack(right))) < 1e-12


def no_noise(t):
    return np.zeros(3)


def test_without_clipping_and_noise_it_is_fedavg_with_any_server_rule():
    rule = (0.8, 0.9, 0.7)
    run = privacy.central(START, COHORTS, gradient, keys(3), RATE, 1e9, 0.0, no_noise, server=Server(*rule))
    assert same(run.past, fedavg(START, COHORTS, gradient, keys(3), RATE, Server(*rule)))
    clipped = privacy.central(START, COHORTS, gradient, keys(3), RATE, 0.1, 0.0, no_noise)
    assert (
        max(np.linalg.norm(a - b) for a, b in zip(clipped.past, clipped.past[1:], strict=False))
        <= 0.1 + 1e-12
    )


def test_one_round_by_hand():
    # (3, 4) is scaled to (.6, .8), (0, .5) stays; noise .5 * 1 * (2, -1); half of (.6 + 1, 1.3 - .5)
    updates = [np.array([3.0, 4.0]), np.array([0.0, 0.5])]
    assert privacy.noisy_mean(updates, 1.0, 0.5, np.array([2.0, -1.0])) == pytest.approx([0.8, 0.4])
    assert privacy.clip(np.zeros(2), 1.0).tolist() == [0, 0]


def test_replacing_a_client_moves_the_mean_by_at_most_two_clips_over_m():
    rng = np.random.default_rng(0)
    others = [rng.normal(size=4) for _ in range(4)]
    a, b = np.ones(4) * 100, -np.ones(4) * 100
    first, second = (privacy.noisy_mean([*others, last], 0.3, 0.0, np.zeros(4)) for last in (a, b))
    assert np.linalg.norm(first - second) == pytest.approx(2 * 0.3 / 5)


def test_adaptive_clipping_by_hand():
    # norms .5, 2, 3 with C = 1: a third is below; C exp(-.2 (1/3 - 1/2)) = exp(1/30)
    assert privacy.next_clip([0.5, 2.0, 3.0], 1.0, 0.5, 0.2, 1.0, 0.0) == pytest.approx(exp(1 / 30))
    assert privacy.next_clip([2.0, 3.0], 1.0, 0.5, 0.2, 1.0, 0.0) == pytest.approx(
        exp(0.1)
    )  # ten times in 23 rounds
    assert privacy.next_clip([2.0, 3.0], 1.0, 0.5, 0.2, 1.0, 100.0) == pytest.approx(
        exp(-0.1)
    )  # b stays at 1
    assert privacy.z_delta(1.0, 5.0) == pytest.approx(1.0050378)
    assert privacy.z_delta(1.0, 5.0) ** -2 + (2 * 5.0) ** -2 == pytest.approx(1.0)


def test_a_round_with_adaptive_clipping_by_hand():
    # updates 1 and 3, C 2, z 1, sigma_b 1: z_delta = 1/sqrt(3/4); (1 + 2 + 2 z_delta)/2. One of two is below,
    # and a bit noise of .5 makes b = 1/2 + .25: C = 2 exp(-.2 * .25)
    def constant(i, x, key):
        return np.full(1, 1.0 + 2 * i)

    def one(t):
        return np.ones(1)

    run = privacy.central(
        np.zeros(1), [[0, 1]], constant, keys(1), 1.0, 2.0, 1.0, one, (0.5, 0.2, 1.0), lambda t: 0.5
    )
    assert float(run.past[1][0]) == pytest.approx(-(3 + 2 * 0.75**-0.5) / 2)
    assert run.clips == pytest.approx([2.0, 2 * exp(-0.05)])


def test_adaptive_clipping_finds_the_median():
    norms = [1.0, 2.0, 4.0, 8.0, 16.0]
    C = 0.1
    for _ in range(400):
        C = privacy.next_clip(norms, C, 0.5, 0.2, 0.0, 0.0)
    assert 3.9 < C < 4.2


def test_the_gaussian_mechanism_by_hand():
    # mu = 1, eps = 1: Phi(-.5) - e Phi(-1.5) = .3085375 - 2.7182818 * .0668072
    assert privacy.gaussian_delta(1.0, 1, 1.0) == pytest.approx(0.1269367, abs=1e-7)
    # 4 rounds with twice the noise are one round
    assert privacy.gaussian_delta(1.0, 4, 2.0) == pytest.approx(privacy.gaussian_delta(1.0, 1, 1.0))
    assert privacy.gaussian_epsilon(0.1269367, 1, 1.0) == pytest.approx(1.0, abs=1e-5)


def test_the_closed_form_is_above_the_exact_value():
    # T = 100, s = 10, delta = 1e-5: 100/200 + sqrt(200 * 11.5129)/10 = .5 + 4.79853 = 5.29853
    assert privacy.renyi_closed_form(1e-5, 100, 10) == pytest.approx(5.29853, abs=1e-5)
    for rounds, s in [(1, 0.5), (100, 10), (1000, 5)]:
        assert privacy.gaussian_epsilon(1e-5, rounds, s) < privacy.renyi_closed_form(1e-5, rounds, s)
        grid = [rounds * a / (2 * s**2) + log(1e5) / (a - 1) for a in np.linspace(1.01, 200, 200_000)]
        assert min(grid) == pytest.approx(privacy.renyi_closed_form(1e-5, rounds, s), rel=1e-4)


def test_the_sampled_bound_by_hand_at_order_2():
    # q = .1, s = 1: eps(2) = 1, 1 + .01 min(4 (e - 1), 2 e) = 1 + .01 * 5.436564, log = .0529389
    assert privacy.sampled_renyi(0.1, 1.0, 2) == pytest.approx(0.0529389, abs=1e-6)
    # s = 4: eps(2) = 1/16, min(4 * .0644945, 2.1290) = .2579778: log(1 + .01 * .2579778) = .0025764
    assert privacy.sampled_renyi(0.1, 4.0, 2) == pytest.approx(0.0025764, abs=1e-6)


@pytest.mark.parametrize(("q", "s"), [(0.05, 1.0), (0.1, 0.5), (0.5, 2.0)])
def test_bounds_on_one_round_stand_in_order(q, s):
    for epsilon in (0.1, 0.5, 1.0, 2.0):
        amplified, delta = privacy.one_round_epsilon(epsilon, privacy.gaussian_delta(epsilon, 1, s), q)
        below = privacy.one_round_delta(amplified, q, s)
        assert below <= delta * (1 + 1e-6)
        assert delta < privacy.gaussian_delta(amplified, 1, s)  # sampling helps
        assert privacy.sampled_epsilon(max(below, 1e-12), 1, q, s) >= amplified * (1 - 1e-6)


def test_everyone_in_every_round_is_no_sampling():
    assert privacy.one_round_delta(1.0, 1.0, 1.0) == pytest.approx(
        privacy.gaussian_delta(1.0, 1, 1.0), abs=1e-8
    )
    assert privacy.sampled_epsilon(1e-5, 100, 1.0, 10) == pytest.approx(
        privacy.gaussian_epsilon(1e-5, 100, 10)
    )


def test_sampling_is_worth_something_over_many_rounds():
    # 5 of 100 clients, z = 2 so s = 1, 500 rounds
    with_sampling = privacy.sampled_epsilon(1e-3, 500, 0.05, 1.0)
    assert with_sampling < 0.3 * privacy.gaussian_epsilon(1e-3, 500, 1.0)
    # taking z for the ratio, as if a client were added and not replaced, would claim far less
    assert privacy.sampled_epsilon(1e-3, 500, 0.05, 2.0) < 0.5 * with_sampling
