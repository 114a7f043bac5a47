"""Special cases that hold by mathematics and numbers worked by hand, of server rules and client rules."""

import numpy as np
import pytest

from tests.paper import recursions_client as client
from tests.paper import recursions_server as server
from tests.paper.recursions_problem import ALL, COHORTS, MINIMUM, START, N, exact, full, gradient, keys
from tests.paper.system_recursions import Server, fedavg, mean, mean_delta, one_delta

RATE = 0.05
DELTA = mean_delta(COHORTS, gradient, keys(3), RATE)
EXACT_SKETCH = server.CountSketch(np.array([[2, 0, 1]]), np.array([[1.0, -1.0, 1.0]]), 3)


def plain(K=3, rule=None, cohorts=COHORTS, problem=gradient, eta_l=RATE):
    return fedavg(START, cohorts, problem, keys(K), eta_l, rule)


def same(left, right):
    return np.max(np.abs(np.stack(left) - np.stack(right))) < 1e-12


def given(*updates):
    """The same updates whatever x is: numbers worked by hand stay short."""
    return lambda t, x: np.array(updates[t - 1], float)


def test_fetchsgd_without_collisions_that_keeps_all_entries_is_fedavgm_summed():
    eta, rho = 0.7, 0.9
    sketched = server.fetchsgd(START, 30, DELTA, EXACT_SKETCH, 3, rho, eta)
    assert same(sketched, plain(rule=Server(eta / (1 - rho), rho, 1)))
    assert not same(sketched, server.fetchsgd(START, 30, DELTA, EXACT_SKETCH, 2, rho, eta))


def test_masking_leaves_no_momentum_where_all_entries_are_kept():
    official = {"rate_on_step": True, "zero_error": True, "mask_momentum": True}
    sketched = server.fetchsgd(START, 30, DELTA, EXACT_SKETCH, 3, 0.9, 0.7, **official)
    assert same(sketched, plain(rule=Server(0.7)))
    assert same(server.true_topk(START, 30, DELTA, 3, 0.9, 0.7), plain(rule=Server(0.7)))


def test_fetchsgd_two_rounds_by_hand_in_both_forms():
    # Su = Se = (3, 1) sends (3, 0) and leaves Se = (0, 1). Then, with D = (4, 1):
    # paper: Su = (1.5, .5) + (4, 1) = (5.5, 1.5), Se = (5.5, 2.5) sends 5.5
    # code:  Su was masked to (0, 1), Su = (0, .5) + (4, 1) = (4, 1.5), Se = (4, 2.5) sends 4
    sketch = server.CountSketch(np.array([[0, 1]]), np.array([[1.0, 1.0]]), 2)
    updates, zero = given((3, 1), (4, 1)), np.zeros(2)
    paper = server.fetchsgd(zero, 2, updates, sketch, 1, 0.5, 1.0)
    code = server.fetchsgd(zero, 2, updates, sketch, 1, 0.5, 1.0, True, True, True)
    assert np.array(paper[1:]).tolist() == [[-3, 0], [-8.5, 0]]
    assert np.array(code[1:]).tolist() == [[-3, 0], [-7, 0]]
    assert same(code, server.true_topk(zero, 2, updates, 1, 0.5, 1.0))


def test_each_difference_of_the_official_code_matters_alone():
    # One bucket for both entries: S((3,1)) = 3 - 1 = 2, estimates (2,-2), of equal sizes the first.
    sketch = server.CountSketch(np.array([[0, 0]]), np.array([[1.0, -1.0]]), 1)
    assert sketch.estimate(sketch.of(np.array([3.0, 1.0]))).tolist() == [2, -2]
    rng = np.random.default_rng(1)
    five = server.CountSketch(rng.integers(0, 2, (5, 3)), rng.choice([-1.0, 1.0], (5, 3)), 2)
    # .5 on Su against .5 on Delta: equal while eta is constant, by linearity
    forms = [(False, False, False), (True, False, False), (False, True, False), (False, False, True)]
    runs = [server.fetchsgd(START, 30, DELTA, five, 1, 0.5, 0.5, *form) for form in forms]
    assert same(runs[0], runs[1])
    assert not same(runs[0], runs[2])
    assert not same(runs[0], runs[3])


def test_a_sketch_is_linear_and_finds_a_single_heavy_entry():
    rng = np.random.default_rng(0)
    sketch = server.CountSketch(rng.integers(0, 4, (5, 9)), rng.choice([-1.0, 1.0], (5, 9)), 4)
    a, b = rng.normal(size=(2, 9))
    assert np.allclose(sketch.of(2 * a - b), 2 * sketch.of(a) - sketch.of(b), atol=1e-12)
    heavy = np.eye(9)[6] * -3.5
    assert sketch.estimate(sketch.of(heavy))[6] == -3.5
    # in one row of three entry 0 meets entry 1: the median of 2, 2 and 2 + 9 is 2, their mean is not
    three = server.CountSketch(np.array([[0, 1], [0, 1], [0, 0]]), np.ones((3, 2)), 2)
    assert three.estimate(three.of(np.array([2.0, 9.0]))).tolist() == [2, 9]


def test_amplified_fedavg_with_a_window_of_one_is_fedsgd_and_by_hand_with_two():
    assert same(server.amplified(START, 30, DELTA, 1, 1.7), plain(rule=Server(1.7)))
    assert same(server.amplified(START, 30, DELTA, 4, 1.0), plain())
    # D = x/2: 8 -> 4 -> 2, amplified to 8 + 3 (2 - 8) = -10 -> -5 -> -2.5, to -10 + 3 (7.5) = 12.5
    run = server.amplified(np.array([8.0]), 4, lambda t, x: x / 2, 2, 3.0)
    assert [float(x[0]) for x in run] == [8, 4, -10, -5, 12.5]


def test_delayed_nesterov_is_eq2_at_its_milestones():
    eps, beta = 0.4, 0.6
    # every client starts from the model of the last milestone: N pushes are a round of N clients
    arrivals = [(i, 2 * t) for t, cohort in enumerate(COHORTS) for i in cohort]
    delta = one_delta(gradient, lambda j, i: keys(3)((j + 1) // 2, i), RATE)
    run = server.delayed_nesterov(START, arrivals, delta, eps, beta, 2)
    assert same(run[::2], plain(rule=Server(eps / (1 - beta), beta, beta)))
    # N = 2, c = .25, beta = .5, g = 2, 4, 2: -1; m = 3, -(.75*.5*3 + 2) -> -4.125; -(.25*.5*3 + 1) -> -5.5
    pushes = [2.0, 4.0, 2.0]
    by_hand = server.delayed_nesterov(
        np.zeros(1), [(0, 0)] * 3, lambda j, i, start: np.array([pushes[j - 1]]), 1.0, 0.5, 2, 0.25
    )
    assert [float(x[0]) for x in by_hand] == [0, -1, -4.125, -5.5]


@pytest.mark.parametrize("nu", [1.0, 0.7])
def test_momentum_approximation_of_fresh_updates_is_eq2(nu):
    fresh = [[(i, t) for i in cohort] for t, cohort in enumerate(COHORTS)]
    delta = one_delta(gradient, keys(3), RATE)
    run = server.momentum_approximation(START, fresh, delta, 1.3, 0.9, nu)
    assert same(run.past, plain(rule=Server(1.3, 0.9, nu)))
    assert run.scalars[0] == pytest.approx((0, 0.1), abs=1e-12)
    assert np.allclose(run.scalars[1:], (0.9, 0.1), atol=1e-9)


def test_momentum_approximation_by_hand_and_closer_to_its_target_than_plain_momentum():
    # beta .5. Round 1: c = .5. Round 2 starts from x_0 alone: w = (1, 0), c = (.5, 0), wanted (.25, .5).
    # All u, v with .5 u + v = .25 are as good; the shortest is (.1, .2).
    run = server.momentum_approximation(
        START, [[(0, 0)], [(0, 0)]], one_delta(gradient, keys(1), RATE), 1, 0.5
    )
    assert run.scalars[1] == pytest.approx((0.1, 0.2), abs=1e-12)
    stale = [[(i, max(0, t - 4 * j)) for j, i in enumerate(cohort)] for t, cohort in enumerate(COHORTS)]
    run = server.momentum_approximation(START, stale, one_delta(gradient, keys(1), RATE), 0.1, 0.9)
    errors, plain_c = [], np.zeros(0)
    for t, (came, c) in enumerate(zip(stale, run.weights, strict=True)):
        wanted = 0.1 * 0.9 ** np.arange(t, -1.0, -1.0)
        w = np.bincount([version for _, version in came], minlength=t + 1) / len(came)
        plain_c = 0.9 * np.append(plain_c, 0.0) + 0.1 * w
        errors.append((np.linalg.norm(c - wanted), np.linalg.norm(plain_c - wanted)))
    ours, naive = np.array(errors)[2:].T
    assert (ours < naive).all()


def test_stem_with_a_1_is_fedavg_after_the_common_step():
    first = mean([full(i, START) for i in range(N)])
    run = client.stem(START, COHORTS, gradient, keys(3), lambda s: RATE, lambda s: 1.0, first)
    shifted = [x - RATE * d for x, d in zip(*run, strict=True)]
    assert same(shifted, fedavg(shifted[0], COHORTS, gradient, keys(3), RATE))


def test_stem_of_one_client_and_one_step_is_storm():
    def eta(s):
        return 0.3 / (1 + s) ** (1 / 3)

    def a(s):
        return min(1.0, 4 * eta(s - 1) ** 2)

    run = client.stem(START, [[1]] * 30, gradient, keys(1), eta, a, full(1, START))
    x, d = START, full(1, START)
    for s in range(1, 31):
        x, before = x - eta(s) * d, x
        d = gradient(1, x, (s, 0)) + (1 - a(s + 1)) * (d - gradient(1, before, (s, 0)))
        assert np.allclose(run.past[s], x, atol=1e-13)
        assert np.allclose(run.directions[s], d, atol=1e-13)


def test_stem_by_hand_and_exact_without_noise_whatever_a_is():
    # gradient x + noise, noise .2 then -.2, x = d = 1, eta .1, a .5:
    # y = .9, d = 1.1 + .5 (1 - 1.2) = 1; y = .8, d = .6 + .5 (1 - .7) = .75
    def noisy(i, x, key):
        return x + 0.2 * key

    run = client.stem(
        np.ones(1), [[0]], noisy, lambda t, i: [1, -1], lambda s: 0.1, lambda s: 0.5, np.ones(1)
    )
    assert (float(run.past[1][0]), float(run.directions[1][0])) == pytest.approx((0.8, 0.75), abs=1e-15)
    # rates 1, 2 within a round and 3 first in the next one, gradient 1: 0 -> -1 -> -3 -> -6
    ones = client.stem(
        np.zeros(1),
        [[0]] * 2,
        lambda i, x, k: np.ones(1),
        lambda t, i: range(3 - t),
        float,
        lambda s: 1.0,
        np.ones(1),
    )
    assert [float(x[0]) for x in ones.past] == [0, -3, -6]
    run = client.stem(START, [[2]] * 30, exact, keys(3), lambda s: RATE, lambda s: 0.1, full(2, START))
    assert same(run.directions, [full(2, x) for x in run.past])


def test_fedcm_is_in_the_family_at_one_local_step():
    a = 0.1
    assert same(client.fedcm(START, COHORTS, gradient, keys(1), RATE, a), plain(1, Server(1, 1 - a, 1)))
    assert same(client.fedcm(START, COHORTS, gradient, keys(3), RATE, 1.0), plain())
    # gradient 1, rates .1 then .2, a .5: D = .05; Delta = .5, D = .2 (.5 + .25) = .15
    run = client.fedcm(np.zeros(1), [[0]] * 2, lambda i, x, k: np.ones(1), keys(1), lambda t: 0.1 * t, 0.5)
    assert [float(x[0]) for x in run] == pytest.approx([0, -0.05, -0.2], abs=1e-15)


def test_fedavg_m_is_fedcm_with_another_server_rate():
    eta_g = 1.6
    theirs = client.fedavg_m(START, COHORTS, gradient, keys(3), RATE, eta_g * 3 * RATE, 0.2)
    assert same(theirs.past, client.fedcm(START, COHORTS, gradient, keys(3), RATE, 0.2, eta_g))
    assert same(client.fedavg_m(START, COHORTS, gradient, keys(3), RATE, 3 * RATE, 1.0).past, plain())


def test_scaffold_m_without_momentum_is_scaffold():
    x, c, controls, past = START, np.zeros(3), np.zeros((N, 3)), [START]
    for t, cohort in enumerate(COHORTS, 1):
        ends, change = [], np.zeros(3)
        for i in cohort:
            y = x
            for key in keys(3)(t, i):
                y = y - RATE * (gradient(i, y, key) - controls[i] + c)
            renewed = controls[i] - c + (x - y) / (3 * RATE)
            change += (renewed - controls[i]) / N
            controls[i] = renewed
            ends.append(y)
        x, c = mean(ends), c + change
        past.append(x)
    run = client.scaffold_m(START, COHORTS, gradient, keys(3), RATE, 3 * RATE, 1.0, N)
    assert same(run.past, past)
    assert np.allclose(run.c, mean(run.controls), atol=1e-12)


def test_scaffold_m_of_all_clients_ends_at_the_minimum_where_fedavg_does_not():
    run = client.scaffold_m(START, ALL * 10, exact, keys(5), 0.2, 0.2, 0.5, N)
    assert np.allclose(run.past[-1], MINIMUM, atol=1e-9)
    assert not np.allclose(fedavg(START, ALL * 10, exact, keys(5), 0.2)[-1], MINIMUM, atol=1e-2)


@pytest.mark.parametrize("damped", [True, False])
def test_mimelite_without_momentum_is_fedavg_and_in_the_family_at_one_full_step(damped):
    def run(K, problem, beta):
        return client.mimelite(START, COHORTS, problem, keys(K), full, RATE, beta, damped=damped).past

    assert same(run(3, gradient, 0.0), plain())
    family = Server(1, 0.9, 1) if damped else Server(1 / (1 - 0.9), 0.9, 1)
    assert same(run(1, exact, 0.9), plain(1, family, problem=exact))
    assert not same(run(1, gradient, 0.9), plain(1, family))  # the buffer sees full gradients, not batches


def test_ghbm_is_heavy_ball_at_one_step_and_one_round_and_fedavg_before_tau():
    b = 0.8
    assert same(
        client.ghbm(START, COHORTS, gradient, keys(1), RATE, b, 1), plain(1, Server(1 / (1 - b), b, 1))
    )
    later = client.ghbm(START, COHORTS, gradient, keys(3), RATE, b, 4)
    assert same(later[:5], plain()[:5])
    assert not same(later[:6], plain()[:6])
    # gradient 1, rate .1, K 2, beta .5, tau 2: -.2, -.4, then drift (0 + .4)/2 = .2: -.2 - .5 * .2 -> -.7
    run = client.ghbm(np.zeros(1), [[0]] * 3, lambda i, x, k: np.ones(1), keys(2), 0.1, 0.5, 2)
    assert [float(x[0]) for x in run] == pytest.approx([0, -0.2, -0.4, -0.7], abs=1e-15)
