"""The other server rules against their recursions, written out here coordinate by coordinate in float64."""

from math import isnan, sqrt

import pytest
import torch

from fedgm.errors import ConfigError
from fedgm.server.adaptive import FedAdagrad, FedAdam, FedAMS, FedAMSGrad, FedYogi, NormalizedMomentum, QHAdam

ETA, B1, B2, TAU, N1, N2 = 0.05, 0.8, 0.95, 0.01, 0.6, 0.7
ROUNDS, SIZE = 30, 7


def adagrad(v, D):
    return v + D * D


def adam(v, D):
    return B2 * v + (1 - B2) * D * D


def yogi(v, D):
    sign = (v > D * D) - (v < D * D)
    return v - (1 - B2) * D * D * sign


def adaptive(second):
    def recursion(x, updates):
        m, v = 0.0, TAU**2
        for D in updates:
            m = B1 * m + (1 - B1) * D
            v = second(v, D)
            x -= ETA * m / (sqrt(v) + TAU)
        return x

    return recursion


def ams(x, updates):
    m, v, largest = 0.0, 0.0, 0.0
    for D in updates:
        m = B1 * m + (1 - B1) * D
        v = adam(v, D)
        largest = max(largest, v, TAU)
        x -= ETA * m / sqrt(largest)
    return x


def amsgrad(x, updates):
    m, v, largest = 0.0, TAU**2, TAU**2
    for D in updates:
        m = B1 * m + (1 - B1) * D
        v = adam(v, D)
        largest = max(largest, v)
        x -= ETA * m / (sqrt(largest) + TAU)
    return x


def quasi_hyperbolic(x, updates):
    m, v = 0.0, 0.0
    for t, D in enumerate(updates, start=1):
        m = B1 * m + (1 - B1) * D
        v = adam(v, D)
        top = (1 - N1) * D + N1 * m / (1 - B1**t)
        x -= ETA * top / (sqrt((1 - N2) * D * D + N2 * v / (1 - B2**t)) + TAU)
    return x


def quasi_hyperbolic_uncorrected(x, updates):
    m, v = 0.0, TAU**2
    for D in updates:
        m = B1 * m + (1 - B1) * D
        v = adam(v, D)
        x -= ETA * ((1 - N1) * D + N1 * m) / (sqrt((1 - N2) * D * D + N2 * v) + TAU)
    return x


ADAPTIVE = [
    (FedAdagrad(ETA, B1, TAU), adaptive(adagrad)),
    (FedAdam(ETA, B1, TAU, B2), adaptive(adam)),
    (FedYogi(ETA, B1, TAU, B2), adaptive(yogi)),
    (FedAMS(ETA, B1, TAU, B2), ams),
    (FedAMSGrad(ETA, B1, TAU, B2), amsgrad),
    (QHAdam(ETA, B1, TAU, B2, N1, N2), quasi_hyperbolic),
    (QHAdam(ETA, B1, TAU, B2, N1, N2, bias_correction=False), quasi_hyperbolic_uncorrected),
]
RULES = [*(rule for rule, _ in ADAPTIVE), NormalizedMomentum(ETA, B1)]
names = [f"{type(rule).__name__}-{place}" for place, rule in enumerate(RULES)]


def updates_of(dtype):
    # Sizes differ by coordinate and shrink over rounds: v of Adam, Yogi and AMS then part ways.
    scale = torch.logspace(-2, 0, SIZE, dtype=torch.float64)
    fade = torch.linspace(1, 0.1, ROUNDS, dtype=torch.float64).unsqueeze(1)
    noise = torch.randn(ROUNDS, SIZE, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    return (noise * scale * fade).to(dtype)


def steps(rule, x, updates, hyper=None):
    state = rule.init(x)
    for delta in updates:
        x, state = rule.step(x, state, delta, hyper or rule.hyper)
    return x, state


@pytest.mark.parametrize(("rule", "recursion"), ADAPTIVE, ids=names[:-1])
def test_adaptive_rules_follow_their_recursions(rule, recursion):
    updates = updates_of(torch.float64)
    x, _ = steps(rule, torch.ones(SIZE, dtype=torch.float64), updates)
    expected = [recursion(1.0, updates[:, i].tolist()) for i in range(SIZE)]
    assert x.tolist() == pytest.approx(expected, abs=1e-12)


def test_the_adaptive_rules_differ_from_one_another():
    updates = updates_of(torch.float64)
    ends = [steps(rule, torch.ones(SIZE, dtype=torch.float64), updates)[0] for rule in RULES]
    for i, a in enumerate(ends):
        assert all((a - b).abs().max() > 1e-3 for b in ends[i + 1 :])


def test_the_first_round_of_fedadam_by_hand():
    # m = .1*2 = .2; v = .99*.01 + .01*4 = .0499; x = -.5*.2/(sqrt(.0499)+.1)
    rule = FedAdam(eta=0.5, beta1=0.9, tau=0.1, beta2=0.99)
    x, state = steps(rule, torch.zeros(1, dtype=torch.float64), torch.tensor([[2.0]], dtype=torch.float64))
    assert x.item() == pytest.approx(-0.1 / (sqrt(0.0499) + 0.1), abs=1e-12)
    assert (state["d"].item(), state["v"].item()) == pytest.approx((0.2, 0.0499), abs=1e-12)


def test_normalised_momentum_takes_steps_of_length_eta():
    updates = updates_of(torch.float64)
    rule = NormalizedMomentum(ETA, B1)
    x, d = torch.zeros(SIZE, dtype=torch.float64), torch.zeros(SIZE, dtype=torch.float64)
    state = rule.init(x)
    for delta in updates:
        before = x
        x, state = rule.step(x, state, delta, rule.hyper)
        d = (1 - B1) * delta + B1 * d
        torch.testing.assert_close(before - x, ETA * d / d.pow(2).sum().sqrt(), rtol=0, atol=1e-14)


def test_normalised_momentum_stands_still_without_an_update():
    x, _ = steps(NormalizedMomentum(ETA, B1), torch.ones(3), torch.zeros(2, 3))
    assert torch.equal(x, torch.ones(3))


def test_normalised_momentum_does_not_hide_a_divergence():
    x, _ = steps(NormalizedMomentum(ETA, B1), torch.ones(2), torch.tensor([[float("inf"), 1.0]]))
    assert not x.isfinite().all()


@pytest.mark.parametrize("nu", [0.0, 1.0])
def test_qhadam_has_fedadam_and_signed_updates_at_its_ends(nu):
    updates = updates_of(torch.float64)
    rule = QHAdam(ETA, B1, TAU, B2, nu, nu, bias_correction=False)
    x, _ = steps(rule, torch.ones(SIZE, dtype=torch.float64), updates)
    signed = torch.ones(SIZE, dtype=torch.float64) - (ETA * updates / (updates.abs() + TAU)).sum(0)
    expected = signed if nu == 0 else steps(FedAdam(ETA, B1, TAU, B2), torch.ones_like(x), updates)[0]
    torch.testing.assert_close(x, expected, rtol=0, atol=1e-12)


def test_qhadam_of_its_paper_is_torchs_adam_where_nothing_is_discounted():
    updates = updates_of(torch.float64)
    x, _ = steps(QHAdam(ETA, B1, TAU, B2, 1.0, 1.0), torch.ones(SIZE, dtype=torch.float64), updates)
    w = torch.nn.Parameter(torch.ones(SIZE, dtype=torch.float64))
    adam = torch.optim.Adam([w], lr=ETA, betas=(B1, B2), eps=TAU)
    for D in updates:
        w.grad = D.clone()
        adam.step()
    torch.testing.assert_close(x, w.detach(), rtol=0, atol=1e-12)


def test_the_first_round_of_fedams_by_hand():
    # m = .1*2 = .2, v = .01*4 = .04: above eps = .03 the divisor is sqrt(.04) = .2; below eps = .09 it is .3
    for eps, divisor in ((0.03, 0.2), (0.09, 0.3)):
        rule = FedAMS(eta=0.5, beta1=0.9, tau=eps, beta2=0.99)
        x, _ = steps(rule, torch.zeros(1, dtype=torch.float64), torch.tensor([[2.0]], dtype=torch.float64))
        assert x.item() == pytest.approx(-0.5 * 0.2 / divisor, abs=1e-12)


@pytest.mark.parametrize("rule", RULES, ids=names)
def test_float32_in_and_out_deterministic_arguments_untouched(rule):
    x, updates = torch.ones(SIZE), updates_of(torch.float32)
    state = rule.init(x)
    kept = {name: value.clone() for name, value in state.items()}
    delta = updates[0].clone()
    x_next, state_next = rule.step(x, state, delta, rule.hyper)
    again, state_again = rule.step(x, state, delta, rule.hyper)
    assert torch.equal(x_next, again)
    assert torch.equal(x, torch.ones(SIZE))
    assert torch.equal(delta, updates[0])
    assert state.keys() == state_next.keys() == state_again.keys()
    assert all(torch.equal(state[name], kept[name]) for name in kept)
    assert {value.dtype for value in (x_next, *state_next.values())} == {torch.float32}
    assert "d" in state_next
    storages = [value.data_ptr() for value in (x, delta, *state.values(), x_next, *state_next.values())]
    assert len(set(storages)) == len(storages)


@pytest.mark.parametrize("rule", RULES, ids=names)
def test_a_schedule_changes_eta_alone_and_the_step_obeys(rule):
    assert rule.follow(0.01, first=0.05) == {**rule.hyper, "eta": 0.01}
    assert isnan(rule.gain(rule.hyper))
    x, updates = torch.zeros(SIZE, dtype=torch.float64), updates_of(torch.float64)[:1]
    full, _ = steps(rule, x, updates)
    fifth, _ = steps(rule, x, updates, rule.follow(ETA / 5, first=ETA))
    torch.testing.assert_close(fifth, full / 5, rtol=1e-12, atol=0)


@pytest.mark.parametrize(
    ("make", "key"),
    [
        (lambda: FedAdagrad(0.0, 0.9, 0.1), "algorithm.eta"),
        (lambda: FedAdagrad(0.1, 1.0, 0.1), "algorithm.beta1"),
        (lambda: FedAdam(0.1, 0.9, 0.0, 0.9), "algorithm.tau"),
        (lambda: FedYogi(0.1, 0.9, 0.1, 1.0), "algorithm.beta2"),
        (lambda: QHAdam(0.1, 0.9, 0.1, 0.9, float("nan"), 1.0), "algorithm.nu1"),
        (lambda: QHAdam(0.1, 0.9, 0.1, 0.9, 0.7, 1.5), "algorithm.nu2"),
        (lambda: NormalizedMomentum(0.1, 1.0), "algorithm.beta"),
    ],
)
def test_values_out_of_range_are_refused_by_key(make, key):
    with pytest.raises(ConfigError) as caught:
        make()
    assert caught.value.key == key
