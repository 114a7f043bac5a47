"""SCAFFOLD-M, FedDyn, EASGD, DC-ASGD and Per-FedAvg in the real loop against recursions without our code."""

import numpy as np
import pytest

from fedgm.client.controls import DCASGD, EASGD, FedDyn, ScaffoldM
from fedgm.client.personal import PerFedAvg
from fedgm.client.rules import Scaffold
from tests.paper import recursions_client, recursions_client_state
from tests.paper.bowls import ERROR, RATE, error, fit, keys
from tests.paper.recursions_problem import ALL, COHORTS, START, N, gradient
from tests.paper.system_recursions import Server, fedavg
from tests.paper.test_client_momenta import BOTH_PATHS, falling, moved

pytestmark = pytest.mark.filterwarnings("ignore:The '(train|val|test)_dataloader' does not have many workers")


def states(fitted, name):
    """What each client keeps at the end."""
    kept = fitted.loop.parts.store.states
    return [kept[i][name].numpy() if i in kept else np.zeros(3) for i in range(N)]


@BOTH_PATHS
@pytest.mark.parametrize("gamma", [None, 0.2])
def test_scaffold_m(gamma, direct):
    got = fit(ScaffoldM(0.3, gamma), steps=3, direct=direct)
    step = 3 * RATE if gamma is None else gamma
    there = recursions_client.scaffold_m(START, COHORTS, gradient, keys(3), RATE, step, 0.3, N)
    assert error(got.past, there.past) < ERROR
    assert error(states(got, "c"), there.controls) < ERROR
    assert np.abs(got.loop.shared["c"].numpy() - there.c).max() < ERROR
    assert moved(got.past) > 0.01


def test_scaffold_m_that_mixes_nothing_in_is_scaffold():
    assert error(fit(ScaffoldM(1.0), steps=3).past, fit(Scaffold(), steps=3).past) < ERROR


@BOTH_PATHS
@pytest.mark.parametrize("alpha", [0.1, 1e-6])
def test_feddyn(alpha, direct):
    got = fit(FedDyn(alpha), rate=falling, direct=direct)
    there = recursions_client_state.feddyn(START, COHORTS, gradient, keys(), falling, alpha, N)
    assert error(got.past, there.past) < ERROR
    assert error(states(got, "h"), there.states) < ERROR
    assert moved(got.past) > 0.01  # also at a small alpha


@BOTH_PATHS
def test_easgd(direct):
    """All clients in round 1, so that nobody starts later than at x_0."""
    cohorts = [ALL[0], *COHORTS[1:]]
    got = fit(EASGD(0.2), cohorts=cohorts, rate=falling, direct=direct)
    there = recursions_client_state.easgd(START, cohorts, gradient, keys(), falling, 0.2, N)
    assert error(got.past, there.past) < ERROR
    assert error(states(got, "x"), there.states) < ERROR
    assert error(got.past, fit(cohorts=cohorts, rate=falling).past) > 0.01


def test_a_newcomer_of_easgd_starts_from_the_centre():
    got = fit(EASGD(0.2), cohorts=[[0], [0], [1], [1]], steps=1)
    x = START
    x_0 = x - RATE * gradient(0, x, (1, 0))
    e = 0.2 * (x_0 - x)
    x = x + e  # round 2: client 0 again
    x_1 = x - RATE * gradient(1, x, (3, 0))  # round 3: client 1 for the first time, and nothing to exchange
    assert np.abs(got.past[3] - x).max() < ERROR
    assert np.abs(got.past[4] - (x + 0.2 * (x_1 - x))).max() < ERROR


AGES = [[min(t, (t * 7) % 4), min(t, (t * 5) % 3)] for t in range(30)]


def arrivals(ages):
    return [
        [(i, t - age) for i, age in zip(cohort, of, strict=True)]
        for t, (cohort, of) in enumerate(zip(COHORTS, ages, strict=True))
    ]


@BOTH_PATHS
@pytest.mark.parametrize("adaptive", [True, False])
@pytest.mark.parametrize("triple", [(1.0, 0.0, 0.0), (1.5, 0.6, 0.8)])
def test_dc_asgd(adaptive, triple, direct):
    got = fit(DCASGD(2.0, adaptive), ages=AGES, server=triple, rate=falling, direct=direct)
    there = recursions_client_state.dc_asgd(
        START, arrivals(AGES), gradient, keys(), falling, 2.0, N, adaptive, server=Server(*triple)
    )
    assert error(got.past, there.past) < ERROR
    if adaptive:
        assert error(states(got, "squares"), there.states) < ERROR
    assert error(got.past, fit(ages=AGES, server=triple, rate=falling).past) > 1e-3


def test_dc_asgd_leaves_what_is_not_late_alone():
    got, plain = fit(DCASGD()), fit()
    assert all(np.array_equal(a, b) for a, b in zip(got.past, plain.past, strict=True))


@BOTH_PATHS
@pytest.mark.parametrize(("hessian", "batches"), [(None, 2), (0.01, 3)], ids=["FO", "HF"])
@pytest.mark.parametrize("left_over", [0, 1])
def test_per_fedavg(hessian, batches, left_over, direct):
    """Two steps a round, each on batches of its own; what is left over is not used."""
    rule, triple = PerFedAvg(0.3, hessian), (1.5, 0.6, 0.8)
    got = fit(rule, steps=2 * batches + left_over, server=triple, direct=direct)

    def groups(t, i):
        return [[(t, step * batches + k) for k in range(batches)] for step in range(2)]

    there = recursions_client_state.per_fedavg(
        START, COHORTS, gradient, groups, 0.3, RATE, hessian, Server(*triple)
    )
    assert error(got.past, there) < ERROR


def test_per_fedavg_without_an_inner_step_is_fedavg_on_every_second_batch():
    later = lambda t, i: [(t, 1), (t, 3)]  # noqa: E731
    assert error(fit(PerFedAvg(0.0), steps=4).past, fedavg(START, COHORTS, gradient, later, RATE)) < ERROR


VECTOR = 3 * 8


@pytest.mark.parametrize(
    ("rule", "up", "down"),
    [(ScaffoldM(), 2, 3), (FedDyn(), 1, 1), (EASGD(), 1, 1), (DCASGD(), 1, 1), (PerFedAvg(), 1, 1)],
    ids=lambda value: type(value).__name__ if not isinstance(value, int) else str(value),
)
def test_bytes_are_those_of_the_papers(rule, up, down):
    row = fit(rule, cohorts=COHORTS[:2]).loop.row
    assert (row["bytes/up"], row["bytes/down"]) == (2 * up * VECTOR, 2 * down * VECTOR)
