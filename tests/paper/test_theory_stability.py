"""Section 1: the largest stable eta of each reading of Alg. 4, from the linear model and from formulas."""

from math import floor, pi, sin

import numpy as np
import pytest

from fedgm.config import compose
from fedgm.server import Momentum, server_step
from fedgm.study import figure
from fedgm.theory.stability import (
    IDEAL,
    LARGEST,
    READINGS,
    Reading,
    effective_eta,
    largest_eta,
    radius,
    response,
    transition,
)

BY_NAME = {reading.name: reading for reading in READINGS}


# To a grid of .1; None: at least 8.
@pytest.mark.parametrize(
    ("name", "fedavg", "fedgm"),
    [
        ("ideal", 2.0, None),
        ("delay 5, start", 0.7, 0.7),
        ("delay 5, literal", 0.9, 0.8),
        ("delay 5, current", 2.0, None),
        ("delay 10, start", 0.3, 0.2),
    ],
)
def test_the_table(name, fedavg, fedgm):
    found = largest_eta(BY_NAME[name], 0.0, 0.0), largest_eta(BY_NAME[name], 0.9, 0.9)
    assert floor(10 * found[0] + 1e-4) / 10 == fedavg
    assert found[1] >= 8 if fedgm is None else floor(10 * found[1] + 1e-4) / 10 == fedgm


@pytest.mark.parametrize(
    ("beta", "nu", "delay5", "delay10"),
    [(0.7, 0.7, 0.68, 0.31), (0.95, 0.7, 1.89, 0.66), (0.95, 0.95, 0.75, 0.25)],
)
def test_the_corners_of_the_papers_grid_under_start(beta, nu, delay5, delay10):
    found = [largest_eta(BY_NAME[f"delay {delay}, start"], beta, nu) for delay in (5, 10)]
    assert found == pytest.approx([delay5, delay10], abs=0.005)


@pytest.mark.parametrize(("beta", "nu"), [(0.5, 0.5), (0.9, 0.9), (0.9, 0.7), (0.95, 0.7)])
def test_without_delay_it_is_the_formula_of_quasi_hyperbolic_momentum(beta, nu):
    # The error flips its sign each round where eta ((1-nu) + nu (1-beta)/(1+beta)) = 2.
    expected = 2 * (1 + beta) / (1 + beta * (1 - 2 * nu))
    assert largest_eta(IDEAL, beta, nu) == pytest.approx(min(expected, LARGEST), abs=1e-5)


@pytest.mark.parametrize("delay", [2, 5, 10])
def test_fedavg_with_delay_is_the_formula_of_a_moving_average(delay):
    # z - 1 = -(a/delay) (1 + 1/z + ... + z^(1-delay)) has |z| = 1 at angle pi/delay, where a = 2 delay sin^2.
    # Where f is steep, a = eta with literal; start has 3 (1 + 1/2 + ... + 1/6)/6 = 1.225 of it.
    expected = 2 * delay * sin(pi / (2 * delay)) ** 2
    assert largest_eta(Reading("", delay, (1, 6)), 0, 0) == pytest.approx(expected, abs=1e-5)
    reference = Reading("", delay, (1, 6), "reference")
    assert largest_eta(reference, 0, 0) == pytest.approx(expected / 1.225, abs=1e-5)


def test_response_by_hand():
    # epochs 1 and 2, q = .5: keeps .5 and .25, mean .375
    assert response(Reading("", 2, (1, 2)), 0.5) == pytest.approx([0.3125, 0.3125])  # .625 over two ages
    assert response(Reading("", 2, (1, 2), anchor="current"), 0.5) == pytest.approx([1 - 0.1875, -0.1875])
    # reference 3: weights 3 and 1.5, (3 * .5 + 1.5 * .75)/2 = 1.3125
    assert response(Reading("", 1, (1, 2), "reference"), 0.5) == pytest.approx([1.3125])


@pytest.mark.parametrize("anchor", ["start", "current"])
def test_the_matrix_is_the_mean_of_alg_4(anchor):
    """One draw of (tau, epochs) after another, as a client would train, averaged: what the matrix does."""
    q, m, delay = 0.6, Momentum(0.7, 0.9, 0.8), 3
    past, d = [0.3, -1.2, 2.0], 0.5  # x_t, x_{t-1}, x_{t-2}
    deltas = []
    for start in past:
        for epochs in range(1, 7):
            x = start
            for _ in range(epochs):
                x = q * x
            deltas.append((past[0] if anchor == "current" else start) - x)
    D = np.mean(deltas)
    d_next = 0.1 * D + 0.9 * d
    expected = [past[0] - 0.7 * (0.2 * D + 0.8 * d_next), past[0], past[1], d_next]
    matrix = transition(response(Reading("", delay, (1, 6), "none", anchor), q), m)
    assert matrix @ [*past, d] == pytest.approx(expected)


@pytest.mark.parametrize("name", ["delay 5, start", "delay 5, current"])
def test_a_run_shrinks_below_the_limit_and_grows_above_it(name):
    reading, beta, nu = BY_NAME[name], 0.9, 0.9
    limit = largest_eta(reading, beta, nu)
    a = response(reading, 0.0)  # the steepest direction decides
    sizes = []
    for eta in (0.95 * limit, 1.05 * limit):
        past, d = [1.0] * reading.delay, 0.0
        for _ in range(5000):
            D = float(a @ past)
            d = (1 - beta) * D + beta * d
            past = [past[0] - eta * ((1 - nu) * D + nu * d), *past[:-1]]
        sizes.append(max(abs(x) for x in past))
    assert sizes[0] < 1e-3
    assert sizes[1] > 1e3
    assert (
        radius(reading, Momentum(0.95 * limit, beta, nu))
        < 1
        < radius(reading, Momentum(1.05 * limit, beta, nu))
    )


# By hand: E[tau] is 2 and 4.5, E[e] is 3.5, and 3 epochs are the reference.
@pytest.mark.parametrize(
    ("name", "eta", "left"),
    [
        ("ideal", 5.0, 5.0),
        ("delay 5, start", 0.5, 0.5),
        ("delay 5, literal", 3.0, 3.5),
        ("delay 5, current", 4.0, 4 * (3.5 / 3) / 9),
        ("delay 10, current", 4.0, 4 * (3.5 / 3) / 19),
        ("delay 10, current", 1e9, (3.5 / 3) / 4.5),  # no eta is faster
    ],
)
def test_the_rate_that_stale_clients_leave(name, eta, left):
    assert effective_eta(BY_NAME[name], eta) == pytest.approx(left)


@pytest.mark.parametrize("reading", READINGS, ids=lambda reading: reading.name)
@pytest.mark.parametrize(("eta", "beta", "nu"), [(0.3, 0.0, 0.0), (0.25, 0.9, 0.9), (0.2, 0.95, 0.7)])
def test_clients_on_a_slope_move_the_model_at_that_rate(reading, eta, beta, nu):
    rng = np.random.default_rng(0)
    g, low, high = 0.01, *reading.epochs
    past, d, mark = [0.0] * reading.delay, 0.0, 0.0
    for t in range(1500):
        ages, epochs = rng.integers(0, reading.delay, 400), rng.integers(low, high + 1, 400)
        w = reading.reference / epochs if reading.normalize == "reference" else np.ones(400)
        back = past[0] - np.array(past)[ages] if reading.anchor == "current" else 0.0
        x, d = server_step(past[0], d, float(np.mean(w * (back + epochs * g))), Momentum(eta, beta, nu))
        past = [x, *past[:-1]]
        mark = x if t == 499 else mark
    assert (mark - past[0]) / 1000 == pytest.approx(
        effective_eta(reading, eta) * reading.reference * g, rel=0.01
    )


@pytest.mark.parametrize("delay", [2, 5, 10])
def test_the_experiment_names_the_rates_that_are_left(delay):
    lines = {line.key: line for line in figure.read("stale_rate").lines}
    stale, ideal = (
        compose(["+experiment=stale_rate", *lines[f"{key}_{delay}"].overrides]) for key in ("delay", "ideal")
    )
    assert (stale.participation.anchor, stale.participation.delay) == ("current", delay)
    assert ideal.participation.name == "ideal"
    assert (stale.algorithm.beta, stale.algorithm.nu) == (ideal.algorithm.beta, ideal.algorithm.nu)
    reading = Reading("", delay, tuple(stale.participation.epochs), "none", "current", ideal.local.epochs)
    left = effective_eta(reading, stale.algorithm.eta)
    assert ideal.algorithm.eta == pytest.approx(left, abs=1e-4)
    assert lines[f"ideal_{delay}"].name == f"ideal, eta {left:.3f}"
