"""Eq. 2, the server step."""

import warnings

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fedgm.errors import ConfigError
from fedgm.server import GeneralMomentum, Momentum, gain, server_step


def run(updates, m, x=0.0, d=0.0):
    for delta in updates:
        x, d = server_step(x, d, delta, m)
    return x, d


def test_eq2_two_rounds_by_hand():
    # d1=.1*1=.1         h1=.3*1+.7*.1=.37      x1=-.74
    # d2=.1*3+.9*.1=.39  h2=.3*3+.7*.39=1.173   x2=-.74-2.346=-3.086
    x, d = run([1.0, 3.0], Momentum(eta=2.0, beta=0.9, nu=0.7))
    assert (x, d) == pytest.approx((-3.086, 0.39), abs=1e-12)


@pytest.mark.parametrize("nu", ["0", "1", "beta"])
def test_nu_0_1_beta_are_plain_heavy_ball_and_nesterov_of_torch(nu):
    # torch sums its momentum, so its lr is eta (1 - beta).
    beta, lr = 0.9, 0.2
    kwargs = {
        "0": {},
        "1": {"momentum": beta},
        "beta": {"momentum": beta, "nesterov": True},
    }[nu]
    eta = lr if nu == "0" else lr / (1 - beta)
    m = Momentum(eta, beta, {"0": 0.0, "1": 1.0, "beta": beta}[nu])
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(30, dtype=torch.float64, generator=generator)
    weight = torch.nn.Parameter(x.clone())
    optimizer = torch.optim.SGD([weight], lr=lr, **kwargs)
    d = torch.zeros_like(x)
    for _ in range(25):
        delta = torch.randn(30, dtype=torch.float64, generator=generator)
        x, d = server_step(x, d, delta, m)
        weight.grad = delta.clone()
        optimizer.step()
    torch.testing.assert_close(x, weight.detach(), rtol=0, atol=1e-12)


def test_the_momentum_is_damped_not_summed():
    # A steady update moves the model by eta a round in the end, not by eta / (1 - beta).
    m = Momentum(eta=1.0, beta=0.9, nu=1.0)
    x, d = run([1.0] * 400, m)
    x_next, _ = server_step(x, d, 1.0, m)
    assert x - x_next == pytest.approx(1.0, abs=1e-12)


def test_first_round_gain():
    m = Momentum(eta=5.0, beta=0.95, nu=0.95)
    assert gain(m) == pytest.approx(0.4875, abs=1e-12)
    assert run([1.0], m)[0] == pytest.approx(-0.4875, abs=1e-12)
    assert GeneralMomentum(5.0, 0.95, 0.95).gain({"eta": 5.0, "beta": 0.95, "nu": 0.95}) == gain(m)


@settings(deadline=None)
@given(st.floats(0.1, 10), st.floats(0, 0.99), st.floats(-2, 3))
def test_the_first_step_is_the_gain_for_every_triple(eta, beta, nu):
    m = Momentum(eta, beta, nu)
    assert -run([1.0], m)[0] == pytest.approx(gain(m), rel=1e-9, abs=1e-9)


def test_arguments_are_left_untouched():
    x, delta = torch.ones(4), torch.full((4,), 2.0)
    rule = GeneralMomentum(1.0, 0.9, 0.7)
    state = rule.init(x)
    x_next, state_next = rule.step(x, state, delta, rule.hyper)
    assert torch.equal(x, torch.ones(4))
    assert torch.equal(delta, torch.full((4,), 2.0))
    assert torch.equal(state["d"], torch.zeros(4))
    assert state_next["d"].data_ptr() != state["d"].data_ptr()
    assert x_next.dtype == torch.float32


@pytest.mark.parametrize("nu", [-0.5, 1.5])
def test_nu_outside_0_1_warns_and_is_not_clamped(nu):
    with pytest.warns(UserWarning, match=r"algorithm\.nu=.* outside \[0, 1\]"):
        rule = GeneralMomentum(1.0, 0.5, nu)
    x, _ = rule.step(torch.zeros(1), rule.init(torch.zeros(1)), torch.ones(1), rule.hyper)
    assert x.item() == pytest.approx(-(1 - 0.5 * nu))


@pytest.mark.parametrize("nu", [0.0, 0.5, 1.0])
def test_nu_in_0_1_does_not_warn(nu):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        GeneralMomentum(1.0, 0.5, nu)


@pytest.mark.parametrize(
    ("values", "key"),
    [
        ((0.0, 0.9, 0.9), "algorithm.eta"),
        ((1.0, 1.0, 0.9), "algorithm.beta"),
        ((1.0, -0.1, 0.9), "algorithm.beta"),
        ((1.0, 0.9, float("nan")), "algorithm.nu"),
    ],
)
def test_values_out_of_range_are_refused_by_key(values, key):
    with pytest.raises(ConfigError) as caught:
        GeneralMomentum(*values)
    assert caught.value.key == key
