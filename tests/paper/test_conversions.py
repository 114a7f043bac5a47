"""Each scheme's own recursion (scheme_recursions.py) against Eq. 2 at the converted (eta, beta, nu)."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from fedgm.errors import ConfigError
from fedgm.server.family import SCHEMES, momentum_of, scheme
from fedgm.server.momentum import Momentum, server_step
from tests.paper.scheme_recursions import (
    accelerated,
    ema_nesterov,
    heavy_ball_damped,
    heavy_ball_summed,
    look_ahead,
    nesterov_damped,
    nesterov_summed,
    outer_nesterov,
    pid_controller,
    pid_optimiser,
    plain,
    primal_averaging,
    quasi_hyperbolic,
    robust_momentum,
    synthesised,
    triple_momentum,
)

ROUNDS = 40


def convert(source, parameters, to):
    """The parameters of scheme ``to`` that give the same steps, by way of (eta, beta, nu)."""
    return dict(scheme(to).from_momentum(momentum_of(source, parameters)))


CASES = [
    ("fedavg", plain, {}),
    ("fedsgd", plain, {"eta": 1.7}),
    ("fedavgm", heavy_ball_damped, {"eta": 1.3, "beta": 0.9}),
    ("flower-fedavgm", heavy_ball_summed, {"lr": 0.3, "beta": 0.9}),
    ("fednag", nesterov_damped, {"eta": 1.3, "beta": 0.8}),
    ("torch-nesterov", nesterov_summed, {"lr": 0.2, "beta": 0.8}),
    ("fedmom", nesterov_summed, {"lr": 0.2, "beta": 0.95}),
    ("snv", synthesised, {"a": 0.2, "b1": 0.8, "b2": 0.3}),
    ("snv", synthesised, {"a": 0.2, "b1": 0.8, "b2": -0.3}),
    ("triple", triple_momentum, {"L": 3.0, "kappa": 12.0}),
    ("robust", robust_momentum, {"L": 3.0, "kappa": 12.0, "r": 0.8}),
    ("pid", pid_controller, {"kP": -2.0, "kI": 0.7, "kD": 5.0}),
    ("pid", pid_controller, {"kP": 2.0, "kI": 0.7, "kD": -5.0}),
    ("pid-opt", pid_optimiser, {"a": 0.8, "r": 0.2, "Kd": 0.4}),
    ("pid-opt", pid_optimiser, {"a": 0.8, "r": 0.2, "Kd": -0.4}),
    ("accsgd", accelerated, {"delta": 0.1, "kappa": 50.0, "xi": 5.0}),
    ("accsgd", accelerated, {"delta": 0.1, "kappa": 50.0, "xi": 5.0, "eps": 0.5}),
    ("slowmo", heavy_ball_summed, {"lr": 1.0, "beta": 0.5}),
    ("diloco", nesterov_summed, {"lr": 0.7, "beta": 0.9}),
    ("snoo", outer_nesterov, {"lr": 0.7, "mu": 0.5}),
    ("gpa", primal_averaging, {"a": 1.3, "mu_x": 0.9, "mu_y": 0.7}),
    ("gpa", primal_averaging, {"a": 0.4, "mu_x": 0.95, "mu_y": 1.0}),
    ("ema-nesterov", ema_nesterov, {"b": 0.5, "g": 0.8}),
    ("ema-nesterov", ema_nesterov, {"b": 0.9, "g": 0.0}),
    ("fedacg", look_ahead, {"lam": 0.85}),
    ("fedgm", quasi_hyperbolic, {"eta": 2.0, "beta": 0.9, "nu": 0.7}),
]


def eq2(x, updates, m):
    d = np.zeros_like(x)
    for D in updates:
        x, d = server_step(x, d, D, m)
    return x


@pytest.fixture
def start():
    return np.random.default_rng(0).standard_normal(50)


@pytest.fixture
def updates():
    return np.random.default_rng(1).standard_normal((ROUNDS, 50))


@pytest.mark.parametrize(("name", "recursion", "parameters"), CASES)
def test_eq2_gives_the_steps_of_the_schemes_own_recursion(name, recursion, parameters, start, updates):
    ours = eq2(start, updates, momentum_of(name, parameters))
    own = recursion(start, updates, **parameters)
    assert np.abs(ours - own).max() / np.abs(own).max() < 1e-12


@pytest.mark.parametrize(("name", "recursion", "parameters"), CASES)
def test_the_way_back_gives_the_same_steps(name, recursion, parameters, start, updates):
    back = convert(name, parameters, name)
    own = recursion(start, updates, **parameters)
    if "eps" not in parameters:  # the way back is at eps = 0.7
        assert back == pytest.approx(parameters, rel=1e-9)
    ours = eq2(start, updates, momentum_of(name, back))
    assert np.abs(ours - own).max() / np.abs(own).max() < 1e-9


def test_every_scheme_of_the_catalogue_is_tried_against_its_recursion():
    tried = {"torch-nesterov" if name == "fedmom" else name for name, _, _ in CASES}
    assert tried == set(SCHEMES)


def test_damped_and_summed_differ_by_one_over_one_minus_beta(start, updates):
    damped = eq2(start, updates, momentum_of("fedavgm", {"eta": 1.0, "beta": 0.9})) - start
    summed = eq2(start, updates, momentum_of("flower-fedavgm", {"lr": 1.0, "beta": 0.9})) - start
    assert summed == pytest.approx(10 * damped, rel=1e-12)
    assert convert("flower-fedavgm", {"lr": 1.0, "beta": 0.9}, "fedgm")["eta"] == pytest.approx(10)


def test_the_ends_of_robust_momentum_are_triple_momentum_and_gradient_descent():
    L, kappa = 2.0, 9.0
    fast = momentum_of("robust", {"L": L, "kappa": kappa, "r": 1 - 1 / 3})
    assert fast == pytest.approx(momentum_of("triple", {"L": L, "kappa": kappa}), rel=1e-12)
    slow = momentum_of("robust", {"L": L, "kappa": kappa, "r": 1 - 1 / 9})
    assert (slow.eta, slow.nu) == pytest.approx((1 / L, 0), abs=1e-12)


def test_numbers_of_the_original_papers():
    # AccSGD's recommended kappa=1000, xi=10; PID's proportional gain is -W1.
    assert momentum_of("accsgd", {"delta": 1.0, "kappa": 1000.0, "xi": 10.0}) == pytest.approx(
        (7.7 / 1.7, 995.1 / 1007, 6 / 7.7)
    )
    assert convert("fedgm", {"eta": 2.0, "beta": 0.9, "nu": 0.9}, "pid")["kP"] == pytest.approx(-16.2)


rates = st.floats(0.01, 10)
factors = st.floats(0.05, 0.99)
triples = st.builds(Momentum, rates, factors, st.floats(0.01, 1))


@settings(deadline=None)
@given(triples, st.sampled_from(sorted(SCHEMES)))
def test_what_a_scheme_can_express_comes_back_unchanged(m, name):
    try:
        parameters = SCHEMES[name].from_momentum(m)
    except ConfigError:
        assume(False)
    assert momentum_of(name, parameters) == pytest.approx(m, rel=1e-7, abs=1e-9)


@settings(deadline=None)
@given(rates, st.floats(1.05, 1e4))
def test_triple_comes_back(L, kappa):
    assert convert("triple", {"L": L, "kappa": kappa}, "triple") == pytest.approx(
        {"L": L, "kappa": kappa}, rel=1e-7
    )


@settings(deadline=None)
@given(rates, st.floats(1.5, 1e3), st.floats(0.02, 0.98))
def test_robust_comes_back(L, kappa, share):
    low, high = 1 - kappa**-0.5, 1 - 1 / kappa
    own = {"L": L, "kappa": kappa, "r": low + share * (high - low)}
    assert convert("robust", own, "robust") == pytest.approx(own, rel=1e-6)


@settings(deadline=None)
@given(rates, factors)
def test_heavy_ball_and_nesterov_come_back(lr, beta):
    for name in ("flower-fedavgm", "torch-nesterov"):
        own = {"lr": lr, "beta": beta}
        assert convert(name, convert("fedgm", convert(name, own, "fedgm"), name), name) == pytest.approx(own)


@pytest.mark.parametrize(
    ("name", "parameters", "key"),
    [
        ("fedavgm", {"eta": 0.0, "beta": 0.9}, "algorithm.eta"),
        ("flower-fedavgm", {"lr": 1.0, "beta": 1.0}, "algorithm.beta"),
        ("flower-fedavgm", {"lr": float("nan"), "beta": 0.9}, "algorithm.lr"),
        ("snv", {"a": 0.1, "b1": 0.0, "b2": 0.5}, "algorithm.b1"),
        ("triple", {"L": 0.0, "kappa": 10.0}, "algorithm.L"),
        ("triple", {"L": 1.0, "kappa": 1.0}, "algorithm.kappa"),
        ("robust", {"L": 1.0, "kappa": 10.0, "r": 0.5}, "algorithm.r"),
        ("robust", {"L": 1.0, "kappa": 10.0, "r": 0.95}, "algorithm.r"),
        ("pid", {"kP": 1.0, "kI": 1.0, "kD": 1.0}, "algorithm.kD"),
        ("pid-opt", {"a": 0.0, "r": 1.0, "Kd": 1.0}, "algorithm.Kd"),
        ("accsgd", {"delta": 1.0, "kappa": 1.0, "xi": 10.0}, "algorithm.kappa"),
        ("fedgm", {"eta": 1.0, "beta": 0.9, "nu": float("inf")}, "algorithm.nu"),
        ("fedgm", {"eta": 1.0, "beta": 0.9}, "algorithm.nu"),
        ("fedgm", {"eta": 1.0, "beta": 0.9, "nu": 1.0, "lr": 1.0}, "algorithm.lr"),
        ("fedgmm", {}, "scheme"),
        ("gpa", {"a": 1.0, "mu_x": 1.0, "mu_y": 0.5}, "algorithm.mu_x"),
        ("gpa", {"a": 1.0, "mu_x": 0.5, "mu_y": float("inf")}, "algorithm.mu_y"),
        ("ema-nesterov", {"b": 1.0, "g": 0.5}, "algorithm.b"),
        ("ema-nesterov", {"b": 0.5, "g": -0.1}, "algorithm.g"),
        ("fedacg", {"lam": 1.0}, "algorithm.lam"),
    ],
)
def test_a_wrong_value_is_refused_by_its_key(name, parameters, key):
    with pytest.raises(ConfigError) as caught:
        momentum_of(name, parameters)
    assert caught.value.key == key


@pytest.mark.parametrize(
    ("target", "parameters", "message"),
    [
        ("fedavgm", {"eta": 1.0, "beta": 0.9, "nu": 0.7}, r"nu = 1.* misses by -0\.3\."),
        ("fednag", {"eta": 1.0, "beta": 0.9, "nu": 0.7}, r"nu = beta = 0\.9.* misses by -0\.2\."),
        ("fedsgd", {"eta": 1.0, "beta": 0.9, "nu": 0.7}, r"nu = 0.* misses by \+0\.7\."),
        ("fedavg", {"eta": 1.5, "beta": 0.0, "nu": 0.0}, r"eta = 1.* misses by \+0\.5\."),
        ("triple", {"eta": 1.0, "beta": 0.9, "nu": 0.7}, r"triple has nu = 0\.94\d+.* misses by -0\.2"),
        ("robust", {"eta": 1.0, "beta": 0.5, "nu": 1.0}, r"robust has 0 <= nu <= 0\.7\d+.* misses by 0\.2"),
        ("accsgd", {"eta": 1.0, "beta": 0.9, "nu": 1.0}, r"only as xi goes to infinity"),
        ("snv", {"eta": 1.0, "beta": 0.0, "nu": 0.0}, r"snv divides by b1"),
        ("fedacg", {"eta": 1.0, "beta": 0.5, "nu": 0.5}, r"eta = 1/\(1-beta\) = 2, which this misses by -1"),
        ("ema-nesterov", {"eta": 1.0, "beta": 0.9, "nu": 0.5}, r"eta = 1/\(1-nu\) = 2, .* misses by -1"),
        ("ema-nesterov", {"eta": 10.0, "beta": 0.5, "nu": 0.9}, r"0 <= nu <= beta = 0\.5"),
    ],
)
def test_an_inverse_that_does_not_exist_says_why_and_by_how_much(target, parameters, message):
    with pytest.raises(ConfigError, match=message):
        convert("fedgm", parameters, target)


def test_without_momentum_every_damped_or_summed_form_exists():
    assert convert("fedavg", {}, "flower-fedavgm") == {"lr": 1.0, "beta": 0.0}
    assert convert("fedgm", {"eta": 2.0, "beta": 0.9, "nu": 0.0}, "fedsgd") == {"eta": 2.0}
    assert momentum_of("pid", convert("fedsgd", {"eta": 2.0}, "pid")) == Momentum(2.0, 0.0, 0.0)
    assert momentum_of("pid-opt", convert("fedsgd", {"eta": 2.0}, "pid-opt")) == Momentum(2.0, 0.0, 0.0)
