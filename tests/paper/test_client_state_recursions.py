"""Special cases and numbers worked by hand, of systems with client state and of schedules."""

from math import exp, log

import numpy as np
import pytest

from tests.paper import recursions_client_state as stateful
from tests.paper import recursions_schedules as schedules
from tests.paper.recursions_problem import (
    ALL,
    COHORTS,
    CURVATURE,
    MINIMA,
    MINIMUM,
    START,
    N,
    exact,
    full,
    gradient,
    keys,
)
from tests.paper.system_recursions import Server, fedavg, mean

RATE = 0.05


def plain(K=3, rule=None, cohorts=COHORTS, problem=gradient):
    return fedavg(START, cohorts, problem, keys(K), RATE, rule)


def same(left, right):
    return np.max(np.abs(np.stack(left) - np.stack(right))) < 1e-12


def slope(i, x, key):
    """f = x^2/2."""
    return x


@pytest.mark.parametrize("cohorts", [ALL * 10, COHORTS * 10])
def test_feddyn_ends_at_the_minimum_where_fedavg_does_not(cohorts):
    run = stateful.feddyn(START, cohorts, exact, keys(5), 0.3, 0.5, N)
    assert np.allclose(run.past[-1], MINIMUM, atol=1e-9)
    # there every dual is its client's gradient, and they cancel
    assert np.allclose(run.states, [full(i, MINIMUM) for i in range(N)], atol=1e-8)
    assert np.allclose(mean(run.states), 0, atol=1e-8)
    assert not np.allclose(fedavg(START, cohorts, exact, keys(5), 0.3)[-1], MINIMUM, atol=1e-2)


def test_feddyn_with_a_small_alpha_is_not_fedavg_but_adds_up_all_updates():
    # h/alpha does not depend on alpha: x = x - D_t - sum of all D so far. One step of .1 on x^2/2 from 1:
    # D = .1, x = 1 - .1 - .1 = .8; D = .08, x = .8 - .08 - .18 = .54
    run = stateful.feddyn(np.ones(1), [[0]] * 2, slope, keys(1), 0.1, 1e-9, 1)
    assert [float(x[0]) for x in run.past] == pytest.approx([1, 0.8, 0.54], abs=1e-8)
    x, total, past = START, np.zeros(3), [START]
    for t, cohort in enumerate(COHORTS, 1):
        D = x - fedavg(x, [cohort], lambda i, y, key, t=t: gradient(i, y, (t, key[1])), keys(3), RATE)[-1]
        total = total + D * len(cohort) / N
        x = x - D - total
        past.append(x)
    tiny = stateful.feddyn(START, COHORTS, gradient, keys(3), RATE, 1e-9, N)
    assert np.allclose(tiny.past, past, atol=1e-6)


def test_feddyn_by_hand_at_alpha_1():
    # x^2/2 from 1, two steps of .1: w = .9, .9 - .1 (.9 + .9 - 1) = .82; h_i = h = .18, x = .82 - .18 = .64
    # from .64: g - h + (w - x): w = .64 - .1 (.64 - .18) = .594, .594 - .1 (.594 - .18 - .046) = .5572
    # h = .18 + .0828 = .2628, x = .5572 - .2628 = .2944
    run = stateful.feddyn(np.ones(1), [[0]] * 2, slope, keys(2), 0.1, 1.0, 1)
    assert [float(x[0]) for x in run.past] == pytest.approx([1, 0.64, 0.2944], abs=1e-14)


def test_easgd_stands_still_where_pull_and_gradient_cancel():
    a, eta = 0.9 / N, 0.2
    run = stateful.easgd(START, ALL * 10, exact, keys(1), eta, a, N)
    # eta A_i (x_i - b_i) + a (x_i - x) = 0 for each client, and sum (x_i - x) = 0
    x, local = run.past[-1], np.stack(run.states)
    assert np.allclose(local, (eta * CURVATURE * MINIMA + a * x) / (eta * CURVATURE + a), atol=1e-9)
    assert np.allclose(local.mean(axis=0), x, atol=1e-9)
    equal = stateful.easgd(START, ALL * 10, lambda i, y, key: y - MINIMA[i], keys(1), eta, a, N)
    assert np.allclose(
        equal.past[-1], MINIMA.mean(axis=0), atol=1e-9
    )  # with equal curvature the true minimum


def test_easgd_two_rounds_by_hand():
    # x^2/2, a .5, eta .1, from 1. Round 1: no pull, x_0 = .9, x = 1.
    # Round 2: e = .5 (.9 - 1) = -.05; x_0 = .9 - .09 + .05 = .86, x = 1 - .05 = .95.
    # With the gradient after the pull: .95 - .095 = .855
    run = stateful.easgd(np.ones(1), [[0]] * 2, slope, keys(1), 0.1, 0.5, 1)
    assert [float(x[0]) for x in run.past] == pytest.approx([1, 1, 0.95], abs=1e-15)
    assert float(run.states[0][0]) == pytest.approx(0.86, abs=1e-15)
    # gradients 1 and 3, rate .1: after round 1 at .9 and .7; the centre moves by .5 (-.1 - .3)
    pair = stateful.easgd(
        np.ones(1), [[0, 1]] * 2, lambda i, x, k: np.full(1, 1.0 + 2 * i), keys(1), 0.1, 0.5, 2
    )
    assert float(pair.past[2][0]) == pytest.approx(0.8, abs=1e-15)
    after = stateful.easgd(np.ones(1), [[0]] * 2, slope, keys(1), 0.1, 0.5, 1, gradient_first=False)
    assert float(after.states[0][0]) == pytest.approx(0.855, abs=1e-15)


def test_delay_compensation_changes_nothing_without_delay():
    fresh = [[(i, t) for i in cohort] for t, cohort in enumerate(COHORTS)]
    stale = [[(i, max(0, t - 2)) for i in cohort] for t, cohort in enumerate(COHORTS)]
    rule = (0.8, 0.9, 0.7)
    run = stateful.dc_asgd(START, fresh, gradient, keys(3), RATE, 2.0, N, adaptive=True, server=Server(*rule))
    assert same(run.past, plain(rule=Server(*rule)))
    none, some = (
        stateful.dc_asgd(START, stale, gradient, keys(3), RATE, factor, N).past for factor in (0.0, 0.04)
    )
    assert not same(none, some)


def test_delay_compensation_by_hand():
    # f = -log x has f'' = f'^2, so lambda = 1 is Taylor's term: at 2.1 from 2, -.5 + .25 * .1 = -.475
    def steep(i, x, key):
        return -1 / x

    run = stateful.dc_asgd(np.array([2.0]), [[(0, 0)], [(0, 0)]], steep, keys(1), 0.2, 1.0, 1)
    assert [float(x[0]) for x in run.past] == pytest.approx([2, 2.1, 2.1 + 0.2 * 0.475], abs=1e-14)
    # adaptive, lambda_0 = 2: MS = .05 * .25 = .0125, then .95 * .0125 + .0125 = .024375;
    # -.5 + 2/sqrt(.024375) * .025
    slow = stateful.dc_asgd(
        np.array([2.0]), [[(0, 0)], [(0, 0)]], steep, keys(1), 0.2, 2.0, 1, True, epsilon=0.0
    )
    assert float(slow.past[2][0]) == pytest.approx(2.1 + 0.2 * (0.5 - 0.05 / 0.024375**0.5), abs=1e-12)


def test_delay_compensation_of_several_steps_is_that_of_their_mean_gradient():
    def constant(i, x, key):
        return np.full(1, 3.0)

    arrivals = [[(0, 0)], [(0, 0)]]
    many = stateful.dc_asgd(np.zeros(1), arrivals, constant, keys(4), 0.1, 0.5, 1)
    one = stateful.dc_asgd(np.zeros(1), arrivals, constant, keys(1), 0.4, 0.5, 1)
    assert same(many.past, one.past)


def test_per_fedavg_by_hand_and_fedavg_without_its_inner_step():
    def pairs(t, i):
        return [((t, k), (t, k)) for k in range(3)]

    assert same(stateful.per_fedavg(START, COHORTS, gradient, pairs, 0.0, RATE), plain())
    # x^2 (gradient 2x), alpha .1, beta .1, from 1: v = 2 * .8 = 1.6, FO 1 - .16; HF 1.6 - .1 * 2 * 1.6 = 1.28
    first = stateful.per_fedavg(np.ones(1), [[0]], lambda i, x, b: 2 * x, lambda t, i: [(0, 0)], 0.1, 0.1)
    second = stateful.per_fedavg(
        np.ones(1), [[0]], lambda i, x, b: 2 * x, lambda t, i: [(0, 0, 0)], 0.1, 0.1, 1e-3
    )
    assert (float(first[1][0]), float(second[1][0])) == pytest.approx((0.84, 0.872), abs=1e-12)
    assert float(stateful.personal(np.ones(1), lambda i, x: 2 * x, 0, 0.1)[0]) == 0.8


def test_per_fedavg_takes_the_inner_and_the_outer_gradient_on_their_own_batches():
    seen = []

    def watch(i, x, batch):
        seen.append((batch, float(x[0])))
        return np.ones(1)

    stateful.per_fedavg(np.zeros(1), [[0]], watch, lambda t, i: [("a", "b"), ("c", "d")], 0.5, 0.25)
    assert seen == [("a", 0.0), ("b", -0.5), ("c", -0.25), ("d", -0.75)]


def test_the_contrast_of_moon_by_hand_and_its_gradient():
    one, other = np.array([[1.0, 0.0]]), np.array([[0.0, 2.0]])
    assert stateful.contrast(one, one, other, 1.0)[0] == pytest.approx(log(1 + exp(-1)), abs=1e-15)
    value, slopes = stateful.contrast(one, other, other, 0.5)
    assert value == pytest.approx(log(2))
    assert not slopes.any()  # a last model that is the global one pulls nowhere
    rng = np.random.default_rng(3)
    z, glob, prev = rng.normal(size=(3, 4, 3))
    slopes, step = stateful.contrast(z, glob, prev, 0.5)[1], 1e-6
    for place in np.ndindex(z.shape):
        shift = np.zeros_like(z)
        shift[place] = step
        up, down = (stateful.contrast(z + s * shift, glob, prev, 0.5)[0] for s in (1, -1))
        assert slopes[place] == pytest.approx((up - down) / (2 * step), abs=1e-8)


def test_moon_without_its_term_is_fedavg_and_so_is_every_first_round():
    def run(mu, cohorts=COHORTS):
        def features(i, w, key):
            return np.outer([1.0, 2.0], w) + i

        def pullback(i, w, key, dz):
            return np.array([1.0, 2.0]) @ dz

        return stateful.moon(START, cohorts, gradient, keys(3), features, pullback, RATE, mu, 0.5, N)

    assert same(run(0.0).past, plain())
    assert same(run(5.0).past[:3], plain()[:3])  # COHORTS has each client once in rounds 1 and 2
    assert not same(run(5.0).past[:4], plain()[:4])


def test_fedlaavg_of_all_clients_is_fedavg_and_picks_those_absent_longest():
    past, cohorts = stateful.fedlaavg(START, ALL, N, gradient, keys(3), RATE, N)
    assert same(past, plain(cohorts=ALL))
    _, cohorts = stateful.fedlaavg(
        START, [[0, 1, 2], [0, 1, 2, 3], [1, 2, 3], [0, 1]], 2, gradient, keys(1), RATE, N
    )
    assert cohorts == [[0, 1], [2, 3], [1, 2], [0, 1]]
    # gradients 1 and 3 once each, rate .1: -.1 * 1/2, then -.1 * (1 + 3)/2
    two, _ = stateful.fedlaavg(
        np.zeros(1), [[0], [1]], 1, lambda i, x, k: np.full(1, 1.0 + 2 * i), keys(1), 0.1, 2
    )
    assert [float(x[0]) for x in two] == pytest.approx([0, -0.05, -0.25], abs=1e-15)


def test_plateau_drops_when_two_windows_are_level_and_keeps_w1():
    # pairs: 4 3 | 2 2 is better by 1.5, 2 2 | 2 2 level after evaluation 6, and again 4 later
    drops = schedules.plateau([4, 3, 2, 2, 2, 2, 2, 2, 2, 2], 1.0, 0.9, 0.9, 2, 0.1, 0.5)
    assert [drop.evaluation for drop in drops] == [6, 10]
    assert [drop.eta for drop in drops] == [0.5, 0.25]
    assert [drop.beta for drop in drops] == pytest.approx([0.947368421, 0.972972973])
    w1 = [drop.eta * drop.beta * 0.9 / (1 - drop.beta) for drop in drops]
    assert w1 == pytest.approx([1.0 * 0.9 * 0.9 / 0.1] * 2)


def test_batches_grow_instead_of_drops_and_shrink_with_them():
    assert schedules.batches_instead_of_drops(20, [2.0, 1.0, 0.5]) == [20, 40, 80]
    assert schedules.batches_that_scale(20, [2.0, 1.0, 0.5]) == [20, 10, 5]
    assert schedules.batches_that_scale(5, [2.0, 1.0]) == [5, 3]  # 2.5 rounds up


def test_post_local_sgd_is_minibatch_sgd_first_and_fedavg_later():
    run = schedules.post_local(START, COHORTS, gradient, keys(3), RATE, lambda t: 1 if t <= 10 else 3)
    assert same(run[:11], plain(1)[:11])
    assert same(
        run[10:],
        fedavg(run[10], COHORTS[10:], lambda i, x, k: gradient(i, x, (k[0] + 10, k[1])), keys(3), RATE),
    )
