"""The model of `fedgm suggest`: against a simulation, against numbers worked by hand, and what it chooses."""

from dataclasses import replace

import numpy as np
import pytest

from fedgm.errors import RefusedError
from fedgm.server import GeneralMomentum, Momentum, server_step
from fedgm.theory.auto import Auto, with_drops
from fedgm.theory.quadratic import Problem, Stretch, calibrated, excess, losses, noise_share, second_moments
from fedgm.theory.stability import IDEAL, READINGS, response
from fedgm.theory.suggestion import ETAS, Measured, best_constant, fitted, share_of_noise, suggest

PROBE = range(5, 26)
NOISY = Measured(0.59, 0.03, PROBE)


def simulated(problem, plan, draws, seed):
    """E x^2 at the end by direction, from Eq. 2 itself with drawn noise."""
    rng = np.random.default_rng(seed)
    a = np.stack([response(problem.reading, (1 - c) ** (1 / 3)) for c in problem.c])
    x = np.sqrt(problem.start)[None, :] * np.ones((draws, 1))
    past, d = [x] * a.shape[1], np.zeros_like(x)
    for rounds, m in plan:
        for _ in range(rounds):
            delta = sum(a[:, k] * past[k] for k in range(len(past)))
            delta = delta + rng.normal(size=x.shape) * np.sqrt(problem.noise)
            x, d = server_step(past[0], d, delta, m)
            past = [x, *past[:-1]]
    return (past[0] ** 2).mean(axis=0)


@pytest.mark.parametrize("reading", [IDEAL, READINGS[3]], ids=["ideal", "delay 5"])
def test_second_moments_are_those_of_a_simulation(reading):
    problem = Problem(0.05, reading=reading)
    plan = [Stretch(12, Momentum(0.8, 0.8, 0.9)), Stretch(8, Momentum(0.4, 0.9, 0.9))]
    expected = second_moments(problem, [plan])[-1, 0]
    drawn = simulated(problem, plan, draws=40_000, seed=3)
    assert np.allclose(drawn, expected, rtol=0.05)  # 40,000 draws: 0.7 % is one deviation
    assert drawn.sum() == pytest.approx(expected.sum(), rel=0.01)


def test_one_direction_by_hand():
    """c = 1, FedAvg at 0.5, s: x_1 = x_0 / 2 - xi / 2, so E x^2 is a quarter of x_0^2 and of the noise."""
    problem = Problem(0.3)
    start, noise = problem.start[-1], problem.noise[-1]
    moments = second_moments(problem, [[Stretch(2, Momentum(0.5, 0.0, 0.0))]])[:, 0, -1]
    assert moments == pytest.approx([start, (start + noise) / 4, (start + noise) / 16 + noise / 4])


def test_the_excess_loss_starts_at_one_and_a_plan_that_diverges_is_lost():
    curves = losses(
        Problem(0.01), [[Stretch(300, Momentum(1.0, 0.0, 0.0))], [Stretch(300, Momentum(9.0, 0.0, 0.0))]]
    )
    assert curves[0] == pytest.approx([1, 1])
    assert curves[-1, 0] < 0.1
    assert curves[-1, 1] > 1e11


def test_calibration_finds_the_noise_that_was_put_in():
    problem = Problem(0.07)
    found = calibrated(Problem(1.0), noise_share(problem, 1.0, PROBE), 1.0, PROBE)
    assert found.s == pytest.approx(0.07, rel=2e-3)
    most = noise_share(Problem(1e3), 1.0, PROBE)
    for share in (0.99 * most, 0.999):  # the model has no such problem: as noisy as it can tell
        assert noise_share(calibrated(Problem(1.0), share, 1.0, PROBE), 1.0, PROBE) == pytest.approx(
            0.96 * most, rel=1e-3
        )


def test_a_share_by_hand():
    """m = 3 of n = 9: noise is (1 - 1/3) drift^2 / 2, here 4/3 and 16/3, over a mean square of 10."""
    share, error = share_of_noise([2.0, 4.0], [2.0, 4.0], [3, 3], clients=9)
    assert (share, error) == (pytest.approx(1 / 3), pytest.approx(0.0))
    share, error = share_of_noise([2.0, 4.0], [4.0, 2.0], [3, 3], clients=9)
    assert share == pytest.approx(1 / 3)
    assert error == pytest.approx(0.4)  # residuals (16/3 - 4/3, 4/3 - 16/3)/10 = +-0.4


def test_more_noise_asks_for_a_smaller_eta_or_more_memory():
    quiet, loud = (best_constant(Problem(s), 60, 20) for s in (0.003, 0.6))
    assert loud.eta < quiet.eta
    assert loud in [Momentum(eta, loud.beta, loud.nu) for eta in ETAS]


@pytest.mark.slow
def test_stale_clients_get_a_smaller_eta():
    stale = suggest(NOISY, 40, 10, READINGS[1])
    fresh = suggest(NOISY, 40, 10)
    assert stale.momentum.eta < fresh.momentum.eta
    assert stale.fedavg < fresh.fedavg
    low, middle, high = fresh.speedup
    assert 1 <= low <= middle <= high


def test_what_the_model_does_not_know_is_refused():
    with pytest.raises(RefusedError, match="100 % of D is noise in rounds 5 to 25"):
        fitted(Measured(0.999, 0.001, PROBE), IDEAL)
    assert fitted(Measured(1.1, 0.2, PROBE), IDEAL).s > fitted(NOISY, IDEAL).s  # not clearly all noise


def test_drops_keep_w1_and_come_late():
    first = Momentum(4.0, 0.9, 0.9)
    plan = with_drops(Problem(0.2), first, 100, drops=2)
    assert len(plan) > 1
    assert sum(stretch.rounds for stretch in plan) == 100
    assert plan[0].rounds >= 60
    W1 = [m.eta * m.beta * m.nu / (1 - m.beta) for _, m in plan]
    assert pytest.approx([W1[0]] * len(W1)) == W1
    assert with_drops(Problem(0.2), first, 100, drops=0) == [Stretch(100, first)]
    assert excess(Problem(0.2), [plan], 1) < excess(Problem(0.2), [[Stretch(100, first)]], 1)


def auto(**keys):
    return Auto(**{"probe": 8, "clients": 100, "per_round": 5, "every": 5, "participation": "ideal"} | keys)


def seen(plan, rounds, drift=0.3):
    for t in rounds:
        plan.observe({"round": t, "update/norm": 0.2, "client/drift": drift, "cohort/clients": 5})
    return plan


def test_auto_decides_after_its_probe_and_goes_on_from_a_checkpoint():
    rule = GeneralMomentum(eta=2.0, beta=0.9, nu=0.9)
    whole = seen(auto().plan(40, rule), range(1, 30))
    assert whole.ends[0] == 8
    assert whole.ends[-1] == 40
    assert whole.stages[0].hyper == {"eta": 1.0, "beta": 0.0, "nu": 0.0}
    assert whole.stages[1].hyper["beta"] > 0
    first, second = seen(auto().plan(40, rule), range(1, 7)), auto().plan(40, rule)
    second.load_state_dict(first.state_dict())
    assert seen(second, range(7, 30)).stages == whole.stages


def test_auto_takes_the_algorithms_own_values_where_the_model_does_not_apply():
    rule = GeneralMomentum(eta=2.0, beta=0.9, nu=0.9)
    plan = seen(auto().plan(40, rule), range(1, 9), drift=9.0)
    assert [stage.hyper for stage in plan.stages[1:]] == [rule.hyper]


@pytest.mark.parametrize(
    ("keys", "rounds", "said"),
    [
        ({"probe": 6}, 40, "schedule.probe=6"),
        ({"drops": 4}, 40, "schedule.drops=4"),
        ({"participation": "autonomous"}, 40, "participation=autonomous"),
        ({"per_round": 1}, 40, "clients.per_round=1"),
        ({"per_round": 100}, 40, "clients.per_round=100"),
        ({}, 15, "rounds=15"),
    ],
)
def test_auto_refuses(keys, rounds, said):
    with pytest.raises(RefusedError, match=said):
        auto(**keys).plan(rounds, GeneralMomentum(eta=2.0, beta=0.9, nu=0.9))


def test_readings_change_the_response_alone():
    ideal, stale = Problem(0.1), replace(Problem(0.1), reading=READINGS[2])
    assert (ideal.noise == stale.noise).all()
    assert (ideal.start == stale.start).all()
