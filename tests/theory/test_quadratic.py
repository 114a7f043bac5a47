"""The model of `fedgm suggest`: against a simulation, against numbers worked by hand, and what it chooses."""

from math import inf

import numpy as np
import pytest

from fedgm.errors import RefusedError
from fedgm.server import GeneralMomentum, Momentum, server_step
from fedgm.server.momentum import PrimalAveraging
from fedgm.theory import suggestion
from fedgm.theory.auto import PROBING, Auto, with_drops
from fedgm.theory.quadratic import Problem, Stretch, calibrated, excess, losses, noise_share, second_moments
from fedgm.theory.stability import IDEAL, READINGS, response
from fedgm.theory.suggestion import (
    ETAS,
    PAIRS,
    TILTS,
    Measured,
    best_constant,
    fitted,
    measure,
    needed,
    share_of_noise,
    suggest,
)

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


def row(t, norm=1.0, drift=1.0, m=5):
    return {"round": t, "update/norm": norm, "client/drift": drift, "cohort/clients": m}


def test_rounds_without_a_drift_or_with_one_client_say_nothing():
    """The rounds of the share by hand, among others that would divide by zero or count as free of noise."""
    rows = [row(4, 9.0, 0.0, 3), row(5, 2.0, 4.0, 3), row(6, 9.0, None, 3), row(7, 9.0, 0.0, 1)]
    found = measure([*rows, row(8, 4.0, 2.0, 3), row(9, float("nan"), 0.0, 3)], clients=9)
    assert (found.share, found.error) == (pytest.approx(1 / 3), pytest.approx(0.4))
    assert found.rounds == range(5, 10)


@pytest.mark.parametrize(
    "rows",
    [
        [],
        [row(4), row(5)],
        [row(5), row(6, m=1)],
        [row(5, drift=None), row(6, drift=None)],
        [row(5, 0.0, 0.0), row(6, 0.0, 0.0)],
    ],
    ids=["none", "too early", "one client", "no drift", "no update"],
)
def test_a_probe_that_says_too_little_is_refused(rows):
    with pytest.raises(RefusedError, match="Try a longer probe"):
        measure(rows, clients=100)


def test_more_noise_asks_for_a_smaller_eta():
    """And each choice is better on its own problem than that of the other, by more than the plateau."""
    problems = Problem(0.003), Problem(0.6)
    quiet, loud = (best_constant(problem, 60, 20) for problem in problems)
    assert loud.eta < quiet.eta
    reached = [excess(problem, [[Stretch(60, quiet)], [Stretch(60, loud)]], 20) for problem in problems]
    assert reached[0][0] < 0.95 * reached[0][1]
    assert reached[1][1] < 0.95 * reached[1][0]


@pytest.mark.slow
def test_stale_clients_get_a_smaller_eta():
    stale = suggest(NOISY, 40, 10, READINGS[1])
    fresh = suggest(NOISY, 40, 10)
    assert stale.momentum.eta < fresh.momentum.eta
    assert stale.fedavg < fresh.fedavg
    middle = needed(fitted(NOISY, IDEAL), fresh.momentum, 40, 10)
    assert (fresh.speedup[1], fresh.fedavg) == middle
    shares = [Measured(share, 0.0, PROBE) for share in (0.53, 0.59, 0.65)]  # two standard errors either side
    problems = [fitted(share, IDEAL, tilts) for tilts in TILTS for share in shares]
    spread = [needed(problem, fresh.momentum, 40, 10)[0] for problem in problems]
    assert 1 < min(spread) < max(spread)
    assert (fresh.speedup[0], fresh.speedup[2]) == (min(spread), max(spread))


def test_fedavg_needs_the_rounds_after_which_it_is_as_good():
    """At the eta that is said, and at no other eta sooner; both are judged over 10 rounds."""
    problem, momentum = Problem(0.02), Momentum(4.0, 0.9, 0.9)
    times, eta = needed(problem, momentum, 40, 10)
    goal, t = excess(problem, [[Stretch(40, momentum)]], 10)[0], round(40 * times)
    assert t > 40
    assert excess(problem, [[Stretch(t, Momentum(eta, 0.0, 0.0))]], 10)[0] <= goal
    every = [[Stretch(t - 1, Momentum(other, 0.0, 0.0))] for other in ETAS]
    assert excess(problem, every, 10).min() > goal


def test_a_fedavg_that_never_gets_there_needs_more_than_was_looked_at(monkeypatch):
    problem, momentum = Problem(0.02), Momentum(4.0, 0.9, 0.9)
    monkeypatch.setattr(suggestion, "FARTHEST", 2)
    assert needed(problem, momentum, 40, 10) == (inf, 1.5)
    monkeypatch.setattr(suggestion, "FARTHEST", 3)
    assert 2 < needed(problem, momentum, 40, 10)[0] < 3


def test_what_the_model_does_not_know_is_refused():
    with pytest.raises(RefusedError, match="79 % of D is noise in rounds 5 to 25, and the model has 78 % at"):
        fitted(Measured(0.79, 0.1, PROBE), IDEAL)
    assert fitted(Measured(0.77, 0.1, PROBE), IDEAL).s > fitted(NOISY, IDEAL).s


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


def test_drops_know_of_the_rounds_before_them():
    problem, first = fitted(Measured(0.2, 0.03, range(5, 9)), IDEAL), Momentum(6.0, 0.8, 0.9)
    probe = [Stretch(8, PROBING)]
    after, alone = with_drops(problem, first, 22, 2, probe), with_drops(problem, first, 22, 2)
    assert sum(stretch.rounds for stretch in after) == 22
    assert np.less(*excess(problem, [[*probe, *after], [*probe, *alone]], 1))


def auto(**keys):
    return Auto(**{"probe": 8, "clients": 100, "every": 5} | keys)


def seen(plan, rounds, drift=0.3):
    for t in rounds:
        plan.observe(row(t, 0.2, drift))
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


def test_auto_chooses_for_a_model_that_its_probe_has_moved():
    """Of all points that follow 8 rounds of FedAvg, the smallest eta that is within 2 % of the best."""
    plan = seen(auto(drops=0).plan(30, GeneralMomentum(eta=2.0, beta=0.9, nu=0.9)), range(1, 9), 0.3152)
    problem = fitted(measure([row(t, 0.2, 0.3152) for t in range(5, 9)], 100), IDEAL)
    points = [Momentum(eta, *pair) for pair in PAIRS for eta in ETAS]
    reached = excess(problem, [[Stretch(8, PROBING), Stretch(22, m)] for m in points], 7)
    chosen = Momentum(**plan.stages[1].hyper)
    near = [m.eta for m, loss in zip(points, reached, strict=True) if np.log(loss / reached.min()) <= 0.02]
    assert chosen.eta == min(near)
    assert reached[points.index(chosen)] == min(
        loss for m, loss in zip(points, reached, strict=True) if m.eta == chosen.eta
    )
    assert chosen != best_constant(problem, 22, 7)  # what would be best from the start


@pytest.mark.parametrize(
    ("drift", "why"), [(9.0, "48094 % of D is noise in rounds 5 to 8"), (None, "from round 5 on, 0 rounds")]
)
def test_auto_says_why_it_takes_the_algorithms_own_values(drift, why):
    rule = GeneralMomentum(eta=2.0, beta=0.9, nu=0.8)
    with pytest.warns(UserWarning, match=f"schedule=auto goes on with .* eta 2, beta 0.9, nu 0.8: {why}"):
        plan = seen(auto().plan(40, rule), range(1, 9), drift)
    assert [stage.hyper for stage in plan.stages[1:]] == [rule.hyper]


@pytest.mark.parametrize(
    ("keys", "rounds", "said"),
    [
        ({"probe": 6}, 40, "schedule.probe=6"),
        ({"drops": 4}, 40, "schedule.drops=4"),
        ({}, 15, "rounds=15: .*Try rounds=16, or schedule.probe=7"),
        ({}, 13, "rounds=13: .*Try rounds=16$"),
    ],
)
def test_auto_refuses(keys, rounds, said):
    with pytest.raises(RefusedError, match=said):
        auto(**keys).plan(rounds, GeneralMomentum(eta=2.0, beta=0.9, nu=0.9))


@pytest.mark.parametrize(
    "rule", [GeneralMomentum(1.0, 0.9, 0.9, nu_is_beta=True), PrimalAveraging(1.0, 0.9, 0.9)]
)
def test_auto_refuses_rules_whose_values_are_not_free(rule):
    with pytest.raises(RefusedError, match="Try algorithm=fedgm"):
        auto().plan(40, rule)


def test_a_reading_changes_the_response_alone():
    """One round by hand: 1 to 6 epochs from x_0 move by the mean of 1 - q^e; start and noise stay."""
    problem, eta = Problem(0.1, reading=READINGS[2]), 0.5
    q = (1 - problem.c) ** (1 / 3)
    a = np.mean([1 - q**e for e in range(1, 7)], axis=0)
    moments = second_moments(problem, [[Stretch(1, Momentum(eta, 0.0, 0.0))]])[:, 0]
    assert moments[0] == pytest.approx(Problem(0.1).start)
    assert moments[1] == pytest.approx((1 - eta * a) ** 2 * Problem(0.1).start + eta**2 * Problem(0.1).noise)
