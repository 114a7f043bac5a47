"""Alg. 4 as the paper simulates it: ages, local work, normalisation, and that Alg. 3 is its special case."""

from collections import Counter

import numpy as np
import pytest

from fedgm.config import compose, validate
from fedgm.config.parts import build
from fedgm.draws import generator
from fedgm.errors import ConfigError
from fedgm.participation import Autonomous, Bernoulli, Biased, ClientFacts, ClientTask, Uniform, ideal
from fedgm.participation.local_work import weights

N, M = 100, 5
ROUNDS = range(1, 41)
UNEVEN = ClientFacts(steps=lambda client, epochs: epochs * (client + 1))
# Upper 0.1 % points of chi-square, by degrees of freedom.
CRITICAL = {3: 16.27, 4: 18.47, 5: 20.52, 9: 27.88}


def autonomous(delay=5, epochs=(1, 6), seed=0, **more):
    return Autonomous(Uniform(N, M, seed), delay, epochs, reference=3, seed=seed, **more)


def labelled(labels):
    return ClientFacts(labels=labels)


def assert_uniform(values, expected):
    counts = Counter(values)
    assert sorted(counts) == list(expected)
    share = len(values) / len(expected)
    assert sum((counts[v] - share) ** 2 / share for v in expected) < CRITICAL[len(expected) - 1]


# Ages and local work ---------------------------------------------------------------------------------


@pytest.mark.parametrize("delay", [5, 10])
def test_staleness_is_uniform_over_the_last_models(delay):
    scheme = autonomous(delay)
    late = range(delay, delay + 1000)
    assert_uniform([task.staleness for t in late for task in scheme.tasks(t)], range(delay))


def test_local_epochs_are_uniform_and_both_ends_are_included():
    scheme = autonomous()
    assert_uniform([task.epochs for t in range(1, 1001) for task in scheme.tasks(t)], range(1, 7))


def test_age_and_work_are_drawn_apart():
    tasks = [task for t in range(5, 1005) for task in autonomous().tasks(t)]
    tau, epochs = np.array([(task.staleness, task.epochs) for task in tasks]).T
    assert abs(np.corrcoef(tau, epochs)[0, 1]) < 3 / len(tasks) ** 0.5


@pytest.mark.parametrize("t", [1, 2, 3, 4, 5, 6])
def test_early_rounds_choose_among_the_models_that_exist(t):
    seen = {task.staleness for seed in range(40) for task in autonomous(seed=seed).tasks(t)}
    assert seen == set(range(min(5, t)))


def test_a_delay_longer_than_the_run_is_fine():
    scheme = autonomous(delay=1000)
    assert all(task.staleness < t for t in ROUNDS for task in scheme.tasks(t))
    assert scheme.history == 1000


def test_a_round_depends_on_neither_order_nor_object():
    scheme = autonomous()
    backwards = {t: scheme.tasks(t) for t in reversed(ROUNDS)}
    assert [backwards[t] for t in ROUNDS] == [autonomous().tasks(t) for t in ROUNDS]
    assert [autonomous(seed=1).tasks(t) for t in ROUNDS] != [backwards[t] for t in ROUNDS]


def test_a_client_may_differ_from_round_to_round():
    scheme = Autonomous(Uniform(1, 1, 0), 5, (1, 6), reference=3, seed=0)
    drawn = {(task.staleness, task.epochs) for t in range(5, 305) for task in scheme.tasks(t)}
    assert len(drawn) == 30


def test_an_age_of_the_round_is_one_draw_for_all_its_clients():
    scheme = autonomous(age="round")
    drawn = [{task.staleness for task in scheme.tasks(t)} for t in range(1, 1005)]
    assert all(len(ages) == 1 for ages in drawn)
    assert_uniform([age for [age] in drawn[4:]], range(5))
    assert all(age < t for t, [age] in enumerate(drawn, start=1))  # early: among the models that exist


def test_the_age_of_a_round_changes_nothing_but_ages():
    def without_age(age, t):
        return [task._replace(staleness=0) for task in autonomous(age=age).tasks(t)]

    assert [without_age("client", t) for t in ROUNDS] == [without_age("round", t) for t in ROUNDS]
    assert any(len({task.staleness for task in autonomous().tasks(t)}) > 1 for t in ROUNDS)


# Algorithm 3 is the special case ---------------------------------------------------------------------


def test_ideal_draws_the_cohort_that_it_always_drew():
    assert [task.client for task in ideal(N, M, 3, seed=0).tasks(1)] == [91, 98, 88, 42, 54]
    for t in ROUNDS:
        cohort = generator(0, "cohort", t).choice(N, M, replace=False)
        expected = [ClientTask(int(client), 0, 3, 1.0) for client in cohort]
        assert ideal(N, M, 3, seed=0).tasks(t) == expected


@pytest.mark.parametrize("normalize", ["reference", "none", "fednova"])
def test_autonomous_without_delay_and_with_equal_work_is_ideal(normalize):
    plain, scheme = ideal(N, M, 3, seed=0), autonomous(delay=1, epochs=(3, 3), normalize=normalize)
    assert [scheme.tasks(t) for t in ROUNDS] == [plain.tasks(t) for t in ROUNDS]
    assert (scheme.history, scheme.anchor) == (plain.history, plain.anchor) == (1, "start")


@pytest.mark.parametrize(
    "change", [{"delay": 2}, {"epochs": (3, 4)}, {"epochs": (2, 2)}, {"normalize": "steps"}, {"seed": 1}]
)
def test_any_other_setting_is_not_ideal(change):
    plain, scheme = ideal(N, M, 3, seed=0), autonomous(**({"delay": 1, "epochs": (3, 3)} | change))
    assert [scheme.tasks(t) for t in ROUNDS] != [plain.tasks(t) for t in ROUNDS]


def test_a_synchronous_clock_with_uneven_work_is_autonomous_without_delay():
    words = ["sync", "epochs=[1,6]", "network=2.0", "speed_sigma=1.0"]
    cfg = compose([f"participation{'=' if word == 'sync' else '.'}{word}" for word in words])
    sync = build(validate(cfg).participation, "participation")
    assert [sync.tasks(t) for t in ROUNDS] == [autonomous(delay=1).tasks(t) for t in ROUNDS]


# Normalisation ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ("reference", [3.0, 1.0, 0.5]),  # 3 / epochs
        ("none", [1.0, 1.0, 1.0]),
        ("steps", [0.1, 0.05, 1 / 60]),  # 1 / K
        ("epochs", [1.0, 1 / 3, 1 / 6]),
        ("fednova", [3.0, 1.5, 0.5]),  # mean K = 30, over K
    ],
)
def test_weights_by_hand(how, expected):
    assert weights(how, epochs=[1, 3, 6], steps=[10, 20, 60], reference=3) == pytest.approx(
        expected, rel=1e-15
    )


@pytest.mark.parametrize("epochs", [1, 3, 7, 49])
def test_the_reference_weight_is_exactly_one_when_the_work_is_the_reference(epochs):
    assert weights("reference", [epochs] * 3, [11, 13, 17], reference=epochs) == [1.0, 1.0, 1.0]


def test_autonomous_weights_its_tasks():
    scheme = autonomous(normalize="steps", facts=UNEVEN)
    for task in scheme.tasks(7):
        assert task.weight == 1 / (task.epochs * (task.client + 1))


def test_fednova_with_synchronous_clients_of_uneven_size():
    tasks = ideal(N, M, 3, seed=0, normalize="fednova", facts=UNEVEN).tasks(1)
    steps = [3 * (task.client + 1) for task in tasks]
    assert [task.weight * k for task, k in zip(tasks, steps, strict=True)] == pytest.approx(
        [np.mean(steps)] * M
    )


# Clients that do nothing -----------------------------------------------------------------------------


def test_a_client_with_no_epochs_leaves_the_cohort_and_is_counted():
    scheme = autonomous(epochs=(0, 3))
    sizes, idle = [], []
    for t in range(1, 1001):
        tasks = scheme.tasks(t)
        sizes.append(len(tasks))
        idle.append(scheme.log(t)["cohort/idle"])
        assert all(1 <= task.epochs <= 3 for task in tasks)
        assert {task.client for task in tasks} <= set(Uniform(N, M, 0).cohort(t))
    assert {a + b for a, b in zip(sizes, idle, strict=True)} == {M}
    assert np.mean(idle) / M == pytest.approx(0.25, abs=0.02)


def test_a_cohort_is_never_empty():
    scheme = Autonomous(Uniform(N, 1, 0), 1, (0, 1), reference=1, seed=0)
    assert all(scheme.tasks(t) == [ClientTask(*Uniform(N, 1, 0).cohort(t), 0, 1, 1.0)] for t in ROUNDS)


def test_no_idle_count_where_there_is_none():
    assert autonomous().log(1) == {}


@pytest.mark.parametrize("epochs", [(0, 0), (3, 1), (-1, 2), (1,), (1, 2, 3)])
def test_a_range_of_epochs_that_cannot_be_is_refused(epochs):
    with pytest.raises(ConfigError, match=r"participation\.epochs=.*Try participation\.epochs=\[1,6\]"):
        autonomous(epochs=epochs)


def test_a_delay_of_nothing_is_refused():
    with pytest.raises(ConfigError, match=r"participation\.delay=0.*1 is no delay.*participation\.delay=5"):
        autonomous(delay=0)


# Samplers --------------------------------------------------------------------------------------------


def test_bernoulli_takes_each_client_on_its_own():
    sampler, rounds = Bernoulli(20, 5, seed=0), 2000
    cohorts = [sampler.cohort(t) for t in range(1, rounds + 1)]
    assert all(len(set(cohort)) == len(cohort) for cohort in cohorts)
    sizes = np.array([len(cohort) for cohort in cohorts])
    p_some = 1 - 0.75**20  # an empty draw is repeated
    assert sizes.mean() == pytest.approx(5 / p_some, abs=0.15)
    assert sizes.var() == pytest.approx(20 * 0.25 * 0.75, rel=0.12)
    often = np.bincount(np.concatenate(cohorts), minlength=20) / rounds
    assert often == pytest.approx(np.full(20, 0.25), abs=0.04)


def test_bernoulli_never_gives_an_empty_cohort():
    assert min(len(Bernoulli(1000, 1, seed=0).cohort(t)) for t in range(1, 301)) == 1


def test_biased_favours_clients_by_their_labels():
    # Clients 0..9 have only favoured classes, 10..19 none, 20..29 half.
    mixes = {0: [0, 1, 0, 1], 1: [5, 6, 7, 8], 2: [0, 1, 5, 6]}
    sampler = Biased(
        30, 1, seed=0, bias=0.8, favour=[0, 1], facts=labelled(lambda c: np.array(mixes[c // 10]))
    )
    often = np.bincount([sampler.cohort(t)[0] // 10 for t in range(1, 4001)])
    assert often / 4000 == pytest.approx([1 / 1.8, 0.2 / 1.8, 0.6 / 1.8], abs=0.03)


def test_biased_looks_at_few_of_many_clients_and_ends_even_when_it_needs_all():
    seen = []
    many = Biased(1_000_000, 5, 0, 0.9, [0], facts=labelled(lambda c: seen.append(c) or np.array([c % 2])))
    assert len(set(many.cohort(1))) == 5
    assert len(seen) < 100
    assert sorted(Biased(20, 20, 0, 0.9, [0], facts=labelled(lambda c: np.array([1]))).cohort(1)) == list(
        range(20)
    )


@pytest.mark.parametrize("bias", [-0.1, 1.0])
def test_a_bias_that_would_shut_clients_out_is_refused(bias):
    with pytest.raises(ConfigError, match=r"participation\.sampler\.bias="):
        Biased(10, 2, 0, bias, [0])


@pytest.mark.parametrize(
    "sampler", [Bernoulli(N, M, 0), Biased(N, M, 0, 0.5, [0], labelled(lambda c: np.array([c % 2])))]
)
def test_autonomous_takes_any_sampler(sampler):
    scheme = Autonomous(sampler, 5, (1, 6), reference=3, seed=0)
    assert [[task.client for task in scheme.tasks(t)] for t in ROUNDS] == [sampler.cohort(t) for t in ROUNDS]
