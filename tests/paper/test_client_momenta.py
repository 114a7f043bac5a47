"""FedCM, FedAvg-M, MimeLite, GHBM and STEM in the real loop against recursions that know nothing of it."""

import numpy as np
import pytest

from fedgm.client.momenta import GHBM, FedAvgM, FedCM, MimeLite, Stem
from tests.paper import recursions_client as wanted
from tests.paper.bowls import ERROR, RATE, error, fit, full, keys
from tests.paper.recursions_problem import ALL, COHORTS, START, gradient
from tests.paper.system_recursions import Server, fedavg, mean

pytestmark = pytest.mark.filterwarnings("ignore:The '(train|val|test)_dataloader' does not have many workers")
BOTH_PATHS = pytest.mark.parametrize("direct", [True, False], ids=["direct", "lightning"])


def falling(t):
    """A local rate that a scheduler lowers."""
    return RATE * 0.97 ** (t - 1)


def moved(past):
    """So that a rule which does nothing cannot pass for its recursion."""
    return error(past, fit().past)


@BOTH_PATHS
def test_fedcm(direct):
    got = fit(FedCM(0.3), rate=falling, server=(1.2, 0.0, 0.0), direct=direct)
    assert error(got.past, wanted.fedcm(START, COHORTS, gradient, keys(), falling, 0.3, 1.2)) < ERROR
    assert moved(got.past) > 0.01


def test_fedcm_of_one_step_is_a_member_of_the_family():
    got = fit(FedCM(0.1), steps=1)
    assert error(got.past, fedavg(START, COHORTS, gradient, keys(1), RATE, Server(1.0, 0.9, 1.0))) < ERROR


def test_fedcm_keeps_the_mean_update_whatever_the_server_makes_of_it():
    got = fit(FedCM(0.3), server=(2.0, 0.5, 1.0))
    x, D, server, past = START, np.zeros(3), Server(2.0, 0.5, 1.0), [START]
    for t, cohort in enumerate(COHORTS, 1):
        ends = []
        for i in cohort:
            y, K = x, len(keys()(t, i))
            for key in keys()(t, i):
                y = y - RATE * (0.3 * gradient(i, y, key) + 0.7 * D / (K * RATE))
            ends.append(y)
        D = x - mean(ends)
        x = server.step(x, D)
        past.append(x)
    assert error(got.past, past) < ERROR


@BOTH_PATHS
@pytest.mark.parametrize("gamma", [None, 0.2])
def test_fedavg_m(gamma, direct):
    got = fit(FedAvgM(0.3, gamma), steps=3, direct=direct)
    step = 3 * RATE if gamma is None else gamma
    assert error(got.past, wanted.fedavg_m(START, COHORTS, gradient, keys(3), RATE, step, 0.3).past) < ERROR
    assert moved(got.past) > 0.01


def in_round(recursion_keys):
    """Keys, and the gradient over all samples in the round that was asked for last."""
    asked = [0]

    def of(t, i):
        asked[0] = t
        return recursion_keys(t, i)

    return of, lambda i, x: full(i, x, asked[0])


@BOTH_PATHS
def test_mimelite(direct):
    got = fit(MimeLite(0.8), rate=falling, server=(1.5, 0.4, 0.7), direct=direct)
    its_keys, all_of = in_round(keys())
    server = Server(1.5, 0.4, 0.7)
    there = wanted.mimelite(START, COHORTS, gradient, its_keys, all_of, falling, 0.8, server)
    assert error(got.past, there.past) < ERROR
    assert np.abs(got.loop.shared["m"].numpy() - there.directions[-1]).max() < ERROR
    assert moved(got.past) > 0.01


def test_mimelite_without_momentum_is_fedavg():
    assert error(fit(MimeLite(0.0)).past, fit().past) < ERROR


@BOTH_PATHS
@pytest.mark.parametrize("tau", [1, 2, 5])
def test_ghbm(tau, direct):
    got = fit(GHBM(0.6, tau), rate=falling, direct=direct)
    assert error(got.past, wanted.ghbm(START, COHORTS, gradient, keys(), falling, 0.6, tau)) < ERROR
    assert moved(got.past) > 0.01
    assert len(got.loop.history) == tau + 1


def test_ghbm_of_one_step_and_one_round_is_heavy_ball():
    got, server = fit(GHBM(0.6, 1), steps=1), Server(1 / (1 - 0.6), 0.6, 1.0)
    assert error(got.past, fedavg(START, COHORTS, gradient, keys(1), RATE, server)) < ERROR


def test_ghbm_gives_a_stale_client_the_past_of_its_own_model():
    ages = [[min(t, 3 * (t % 2)), 0] for t in range(30)]
    got, past = fit(GHBM(0.6, 2), ages=ages), [START]
    for t, (cohort, age) in enumerate(zip(COHORTS, ages, strict=True), 1):
        deltas = []
        for i, tau in zip(cohort, age, strict=True):
            start, K = past[-1 - tau], len(keys()(t, i))
            before = past[-3 - tau] if len(past) > 2 + tau else start
            y = start
            for key in keys()(t, i):
                y = y - RATE * (gradient(i, y, key) + 0.6 * (before - start) / 2 / (RATE * K))
            deltas.append(start - y)
        past.append(past[-1] - mean(deltas))
    assert error(got.past, past) < ERROR


def stem(rule, steps, cohorts):
    """The recursion from round 2 on, with what the cohort of round 1 measured."""
    first = mean(
        [np.mean([gradient(i, START, key) for key in keys(steps)(1, i)], axis=0) for i in cohorts[0]]
    )
    eta = lambda s: RATE / (rule.w + rule.sigma**2 * s) ** (1 / 3)  # noqa: E731
    a = lambda s: min(1.0, rule.c * (eta(s - 1) / RATE) ** 2)  # noqa: E731
    later = lambda t, i: keys(steps)(t + 1, i)  # noqa: E731
    there = wanted.stem(START, cohorts[1:], gradient, later, eta, a, first)
    return [START, *there.past], there.directions[-1]


@BOTH_PATHS
@pytest.mark.parametrize("rule", [Stem(), Stem(c=3.0, w=2.0, sigma=0.5), Stem(c=0.2, sigma=0.0)])
def test_stem(rule, direct):
    got = fit(rule, steps=3, direct=direct)
    past, d = stem(rule, 3, COHORTS)
    assert error(got.past, past) < ERROR
    assert np.abs(got.loop.shared["d"].numpy() - d).max() < ERROR
    assert moved(got.past) > 0.01


@pytest.mark.parametrize("cohorts", [ALL, COHORTS], ids=["all", "some"])
def test_stem_that_forgets_is_fedavg(cohorts):
    """At the points x - eta d, one local step after each x: with a = 1 nothing of an older d is left."""
    got = fit(Stem(c=1e9, sigma=0.0), steps=3, cohorts=cohorts)
    first, _ = stem(Stem(c=1e9, sigma=0.0), 3, cohorts)
    d = mean([np.mean([gradient(i, START, key) for key in keys(3)(1, i)], axis=0) for i in cohorts[0]])
    assert error(got.past, first) < ERROR
    shifted = fedavg(START - RATE * d, cohorts[1:], gradient, lambda t, i: keys(3)(t + 1, i), RATE)
    assert np.abs(got.past[-1] - RATE * got.loop.shared["d"].numpy() - shifted[-1]).max() < ERROR


VECTOR = 3 * 8


@pytest.mark.parametrize(
    ("rule", "up", "down"),
    [(FedCM(), 1, 2), (FedAvgM(), 1, 2), (MimeLite(), 2, 2), (GHBM(), 1, 2), (Stem(), 2, 2)],
    ids=lambda value: type(value).__name__ if not isinstance(value, int) else str(value),
)
def test_bytes_are_those_of_the_papers(rule, up, down):
    row = fit(rule, cohorts=COHORTS[:2]).loop.row
    assert (row["bytes/up"], row["bytes/down"]) == (2 * up * VECTOR, 2 * down * VECTOR)
