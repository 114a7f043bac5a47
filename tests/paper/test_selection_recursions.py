"""Special cases and numbers worked by hand, of rules that select clients."""

from itertools import product

import numpy as np
import pytest

from tests.paper import recursions_selection as selection
from tests.paper.recursions_problem import ALL, COHORTS, START, N, full, gradient, keys, loss
from tests.paper.system_recursions import Server, fedavg, local_sgd, mean

RATE = 0.05


def same(left, right):
    return np.max(np.abs(np.stack(left) - np.stack(right))) < 1e-12


def on_all(i, x, key):
    return loss(i, x)


def test_chances_of_drawing_without_replacement_by_hand():
    assert selection.inclusion([0.5, 0.25, 0.25], 1).tolist() == [0.5, 0.25, 0.25]
    # 0 first .5, or second after 1 or 2: 2 * .25 * .5/.75 = 1/3
    assert selection.inclusion([0.5, 0.25, 0.25], 2) == pytest.approx([5 / 6, 7 / 12, 7 / 12])
    assert selection.inclusion([1, 2, 3, 4], 3).sum() == pytest.approx(3)


def test_power_of_choice_with_as_many_candidates_as_places_is_that_sampling():
    run, cohorts = selection.power_of_choice(
        START, COHORTS, gradient, keys(3), RATE, 2, on_all, lambda t, i: None
    )
    assert [sorted(c) for c in cohorts] == [sorted(c) for c in COHORTS]
    assert same(run, fedavg(START, COHORTS, gradient, keys(3), RATE))


def test_power_of_choice_picks_the_hard_half():
    # the odd clients are hard (minimum at 10): whoever is drawn, the hard ones among them go first
    def hard(i, x, key):
        return 0.5 * float((x[0] - 10 * (i % 2)) ** 2)

    def slope(i, x, key):
        return x - 10.0 * (i % 2)

    drawn = [[0, 1, 2], [2, 4, 3], [0, 2, 4], [5, 3, 1]]
    _, cohorts = selection.power_of_choice(
        np.zeros(1), drawn, slope, keys(1), 0.01, 1, hard, lambda t, i: None
    )
    assert cohorts == [[1], [3], [0], [5]]
    assert selection.largest([7, 8, 9], [1.0, 3.0, 3.0], 2) == [8, 9]  # of equal ones the first drawn


def test_the_measured_batch_is_that_of_the_probe():
    seen = []

    def watch(i, x, key):
        seen.append((i, key))
        return float(i)

    selection.power_of_choice(
        START, [[0, 1]], gradient, keys(1), RATE, 1, watch, lambda t, i: ("probe", t, i)
    )
    assert seen == [(0, ("probe", 1, 0)), (1, ("probe", 1, 1)), (1, (1, 0))]


def test_rpow_takes_unseen_clients_first_and_then_the_loss_of_their_last_training():
    losses = {0: 5.0, 1: 1.0, 2: 3.0}

    def told(i, x, key):
        return losses[i] + key[1]  # two steps: the mean is .5 more

    _, cohorts = selection.power_of_choice(START, [[0, 1, 2]] * 5, gradient, keys(2), RATE, 1, told, None)
    assert cohorts == [[0], [1], [2], [0], [0]]
    losses[0] = 0.0
    _, cohorts = selection.power_of_choice(START, [[0, 1, 2]] * 5, gradient, keys(2), RATE, 1, told, None)
    assert cohorts == [[0], [1], [2], [2], [2]]


def test_ocs_and_aocs_by_hand():
    u = np.array([1.0, 1.0, 9.0, 1.0])
    # m = 2 of 4. l = 4: 2 <= 12/9? no. l = 3: 1 <= 3/1. So 1/3, 1/3, 1/3 and 1.
    assert selection.ocs(u, 2) == pytest.approx([1 / 3, 1 / 3, 1, 1 / 3])
    # 2 u/12 = 1/6, 1/6, 1 (1.5), 1/6; I = 3, P = .5, c = (2 - 4 + 3)/.5 = 2; then c = 1
    assert selection.aocs(u, 2) == pytest.approx([1 / 3, 1 / 3, 1, 1 / 3])
    assert selection.aocs(u, 2, j_max=0) == pytest.approx([1 / 6, 1 / 6, 1, 1 / 6])


@pytest.mark.parametrize("rule", [selection.ocs, selection.aocs])
def test_equal_norms_are_sampled_uniformly(rule):
    assert rule(np.full(8, 0.3), 3) == pytest.approx(np.full(8, 3 / 8))
    assert rule(np.full(4, 0.3), 4) == pytest.approx(np.ones(4))


def test_expected_senders_are_m_or_at_most_m():
    rng = np.random.default_rng(5)
    for _ in range(200):
        u, m = rng.lognormal(sigma=2, size=9), int(rng.integers(1, 9))
        exact, close, few = selection.ocs(u, m), selection.aocs(u, m, 20), selection.aocs(u, m, 1)
        assert exact.sum() == pytest.approx(m)
        assert (exact > 0).all()
        assert (exact <= 1 + 1e-12).all()
        assert close == pytest.approx(exact)
        assert few.sum() <= m + 1e-9


def test_a_client_that_would_send_zeros_never_sends():
    u = np.array([0.0, 1.0, 2.0])
    for p in (selection.ocs(u, 2), selection.aocs(u, 2)):
        assert p == pytest.approx([0, 1, 1])
    assert selection.aocs(np.array([0.0, 0.0, 2.0]), 2) == pytest.approx([0, 0, 1])


def test_ocs_has_less_variance_than_any_other_chances_of_the_same_sum():
    rng = np.random.default_rng(6)
    u = rng.lognormal(sigma=1.0, size=7)
    best = selection.ocs(u, 3)

    def variance(p):
        return float((u**2 * (1 - p) / p).sum())

    for _ in range(300):
        other = rng.uniform(0.05, 1, size=7)
        other *= 3 / other.sum()
        if (other <= 1).all():
            assert variance(best) <= variance(other) + 1e-12
    assert variance(best) < variance(np.full(7, 3 / 7))


@pytest.mark.parametrize("rule", [selection.ocs, selection.aocs])
def test_the_mean_over_all_draws_is_the_full_mean(rule):
    rng = np.random.default_rng(7)
    deltas, weights = list(rng.normal(size=(4, 3)) * np.array([[1], [5], [0.2], [2]])), [0.1, 0.2, 0.3, 0.4]
    p = rule(np.array([w * np.linalg.norm(d) for w, d in zip(weights, deltas, strict=True)]), 2)
    expected = np.zeros(3)
    for sends in product([True, False], repeat=4):
        chance = np.prod([c if sent else 1 - c for c, sent in zip(p, sends, strict=True)])
        expected += chance * selection.sampled_mean(deltas, weights, p, sends)
    assert np.allclose(expected, np.average(deltas, axis=0, weights=weights), atol=1e-12)


def test_optimal_sampling_that_lets_everyone_send_is_fedavg():
    run, chances, senders = selection.optimal(
        START, ALL, gradient, keys(3), RATE, N, lambda t, i: 0.5, True, server=Server(0.7, 0.9, 0.8)
    )
    assert same(run, fedavg(START, ALL, gradient, keys(3), RATE, Server(0.7, 0.9, 0.8)))
    assert np.allclose(chances, 1)
    assert senders == ALL
    run, chances, senders = selection.optimal(
        START, ALL, gradient, keys(3), RATE, 1, lambda t, i: 0.0 if i == 2 else 1.0, False
    )
    assert senders == [[2]] * 30
    D = START - local_sgd(START, gradient, 2, keys(3)(1, 2), RATE)
    assert np.allclose(run[1], START - D / (4 * chances[0][2]), atol=1e-14)


def test_active_chances_by_hand():
    v = np.array([1.0, 3.0, -np.inf, 2.0])
    # the floor(.5 * 4) = 2 smallest (2 and 0) are out; e^(.1 * 3), e^(.1 * 2)
    p = selection.active_chances(v, 0.5, 0.1)
    assert p == pytest.approx([0, 1 / (1 + np.exp(-0.1)), 0, 1 / (1 + np.exp(0.1))])
    assert selection.active_chances(np.full(3, -np.inf), 0.5, 0.1).tolist() == [0, 0, 0]


def test_active_fl_draws_unseen_clients_uniformly_and_then_by_value():
    sizes, asked = [4, 9, 16, 25], []

    def weighted(t, p, k):
        asked.append((t, k, np.round(p, 6).tolist()))
        return list(np.argsort(-p, kind="stable")[:k])

    def uniform(t, others, k):
        return list(others)[:k]

    run = selection.active(
        START, 4, sizes, loss, gradient, keys(1), RATE, 2, weighted, uniform, (0.25, 0.01, 0.5)
    )
    # nobody is known in round 1; then one place by value and one uniform
    assert run.cohorts[0] == [0, 1]
    assert [(t, k) for t, k, _ in asked] == [(2, 1), (3, 1), (4, 1)]
    assert all(sum(p) == pytest.approx(1) for _, _, p in asked)
    trained = max(t for t, cohort in enumerate(run.cohorts) if 1 in cohort)
    assert run.values[1] == pytest.approx(3 * loss(1, run.past[trained]))  # sqrt(9), at the model it received


def test_fedcs_by_hand():
    update, upload = [1.0, 2.0, 3.0], [2.0, 1.0, 1.0]
    # costs 3, 3, 4: client 0, Theta 3. Both others then cost their upload: Theta 4, 5.
    assert selection.fedcs([0, 1, 2], update, upload, 6) == [0, 1, 2]
    assert selection.fedcs([0, 1, 2], update, upload, 5) == [0, 1]  # 5 < 5 does not hold
    assert selection.fedcs([0, 1, 2], update, upload, 6, overhead=1.5) == [0, 1]
    assert selection.fedcs([2, 1, 0], update, upload, 3.5) == [1]  # of equal ones the first candidate
    # the model goes to the slowest of S first: T = 1 for client 1, 2 with client 0
    slow = [2.0, 1.0, 1.0]
    assert selection.fedcs(
        [0, 1, 2], update, upload, 6, distribute=lambda s: max([slow[k] for k in s], default=0)
    ) == [1, 2]


def test_groups_come_in_turn():
    assert [selection.cyclic([3, 0, 2, 1, 4], 2, t) for t in (1, 2, 3)] == [[3, 0, 2], [1, 4], [3, 0, 2]]


def test_the_problem_has_clients_that_differ():
    assert not np.allclose(full(0, START), mean([full(i, START) for i in range(N)]))
