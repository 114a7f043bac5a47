"""Server rules beyond Eq. 2 in the real loop against the recursions of their papers: 30 rounds in float64."""

import numpy as np
import pytest
import torch

from fedgm.errors import ConfigError
from fedgm.schedule import Constant
from fedgm.server import GeneralMomentum
from fedgm.server.arrivals import Amplified, DelayedNesterov, MomentumApproximation
from fedgm.server.engine import Engine, RoundFacts
from fedgm.server.sketched import FetchSGD, TrueTopK, count_sketch
from fedgm.upload.message import Sketch
from tests.federated.federated_run import configured
from tests.paper import recursions_server as papers
from tests.paper.recursions_problem import COHORTS, START, gradient, keys
from tests.paper.server_bowls import LR, Listed, continued, error, trained
from tests.paper.system_recursions import mean_delta, one_delta

CLOSE = 1e-10
DELTA = mean_delta(COHORTS, gradient, keys(3), LR)
ONE = one_delta(gradient, keys(3), LR)
# (client, age) of each arrival: client i of N comes every N-th time and starts from what it saw last
SINGLE = [[(j % 4, min(j, 3))] for j in range(30)]
STALE = [[(c, min(t, (c + t) % 3)) for c in cohort] for t, cohort in enumerate(COHORTS)]


def versions(cohorts):
    """(client, version) as the recursions count: 0 is x_0."""
    return [[(client, t - age) for client, age in cohort] for t, cohort in enumerate(cohorts)]


def sketch_of(rule):
    hashes = count_sketch(rule.seed, rule.rows, rule.columns, 3, torch.device("cpu"))
    return papers.CountSketch(hashes.bucket.long().numpy(), hashes.sign.double().numpy(), rule.columns)


@pytest.mark.parametrize("every", [1, 4])
def test_amplified(every):
    run = trained(Amplified(eta=1.7, every=every), Listed(COHORTS))
    assert error(run.past, papers.amplified(START, 30, DELTA, every, 1.7)) < CLOSE


def test_amplified_special_cases():
    fedsgd = trained(GeneralMomentum(1.7, 0.0, 0.0), Listed(COHORTS)).past
    assert error(trained(Amplified(eta=1.7, every=1), Listed(COHORTS)).past, fedsgd) < CLOSE
    fedavg = trained(GeneralMomentum(1.0, 0.0, 0.0), Listed(COHORTS)).past
    assert error(trained(Amplified(eta=1.0, every=5), Listed(COHORTS)).past, fedavg) < CLOSE


@pytest.mark.parametrize("k", [1, 2, 3])
def test_true_topk(k):
    run = trained(TrueTopK(eta=0.7, rho=0.6, k=k), Listed(COHORTS))
    assert error(run.past, papers.true_topk(START, 30, DELTA, k, 0.6, 0.7)) < CLOSE
    assert run.rows[0]["bytes/up"] == 2 * 3 * 8  # whole updates, in float64 here


@pytest.mark.parametrize("official", [False, True])
@pytest.mark.parametrize(("k", "columns"), [(1, 2), (2, 5)])
def test_fetchsgd(official, k, columns):
    rule = FetchSGD(eta=0.3, rho=0.5, k=k, rows=3, columns=columns, seed=4, official=official)
    run = trained(rule, Listed(COHORTS), upload=Sketch(3, columns))
    flags = dict.fromkeys(("rate_on_step", "zero_error", "mask_momentum"), official)
    want = papers.fetchsgd(START, 30, DELTA, sketch_of(rule), k, 0.5, 0.3, **flags)
    assert error(run.past, want) < CLOSE
    assert run.rows[0]["bytes/up"] == 2 * 4 * 3 * columns  # two clients send R C numbers of 32 bits


def test_fetchsgd_without_collisions_that_moves_all_entries_is_fedavgm_summed():
    rule = FetchSGD(eta=0.07, rho=0.9, k=3, rows=1, columns=4096, seed=0)
    assert len(set(sketch_of(rule).bucket[0].tolist())) == 3
    momentum = trained(GeneralMomentum(0.07 / (1 - 0.9), 0.9, 1.0), Listed(COHORTS)).past
    assert error(trained(rule, Listed(COHORTS)).past, momentum) < CLOSE
    masked = FetchSGD(eta=0.07, rho=0.9, k=3, rows=1, columns=4096, seed=0, official=True)
    fedsgd = trained(GeneralMomentum(0.07, 0.0, 0.0), Listed(COHORTS)).past
    assert error(trained(masked, Listed(COHORTS)).past, fedsgd) < CLOSE


def test_hashes_come_from_the_seed_alone():
    one, same, other = (count_sketch(seed, 5, 64, 1000, torch.device("cpu")) for seed in (1, 1, 2))
    count_sketch.cache_clear()
    again = count_sketch(1, 5, 64, 1000, torch.device("cpu"))
    assert torch.equal(one.bucket, again.bucket)
    assert torch.equal(same.sign, again.sign)
    assert not torch.equal(one.bucket, other.bucket)
    assert one.bucket.min() == 0
    assert one.bucket.max() == 63
    assert abs(one.sign.double().mean().item()) < 0.1


@pytest.mark.parametrize("c", [0.0, 0.2])
def test_delayed_nesterov_on_single_arrivals(c):
    rule = DelayedNesterov(eta=0.8, beta=0.6, every=4, c=c)
    run = trained(rule, Listed(SINGLE, history=4))
    arrivals = [cohort[0] for cohort in versions(SINGLE)]
    assert error(run.past, papers.delayed_nesterov(START, arrivals, ONE, 0.8, 0.6, 4, c)) < CLOSE


def test_delayed_nesterov_at_milestones_is_nesterov_on_the_mean_of_its_arrivals():
    rng = np.random.default_rng(0)
    pushes = torch.from_numpy(rng.normal(size=(40, 5)))
    rule, family = DelayedNesterov(eta=0.8, beta=0.6, every=4), GeneralMomentum(0.8 / (1 - 0.6), 0.6, 0.6)
    engine, other = (Engine(each, Constant().plan(40, each)) for each in (rule, family))
    x = y = torch.zeros(5, dtype=torch.float64)
    for t in range(1, 41):
        x = engine.step(t, x, pushes[t - 1])
        if t % 4 == 0:
            y = other.step(t // 4, y, pushes[t - 4 : t].mean(dim=0))
            assert (x - y).abs().max() < 1e-12


@pytest.mark.parametrize("target", ["momentum", "step"])
@pytest.mark.parametrize("nu", [1.0, 0.6])
def test_momentum_approximation_under_staleness(target, nu):
    rule = MomentumApproximation(eta=0.7, beta=0.8, nu=nu, target=target)
    run = trained(rule, Listed(STALE, history=3))
    want = papers.momentum_approximation(START, versions(STALE), ONE, 0.7, 0.8, nu, target)
    assert error(run.past, want.past) < CLOSE
    assert any(age for cohort in STALE for _, age in cohort)


def test_momentum_approximation_without_staleness_is_eq2():
    family = trained(GeneralMomentum(0.7, 0.8, 0.6), Listed(COHORTS)).past
    assert error(trained(MomentumApproximation(0.7, 0.8, 0.6), Listed(COHORTS)).past, family) < CLOSE
    engine = Engine(MomentumApproximation(0.7, 0.8), Constant().plan(3, MomentumApproximation(0.7, 0.8)))
    fresh = engine.step(1, torch.ones(2), torch.ones(2))  # without facts: all are fresh
    stale = Engine(engine.rule, engine.plan).step(
        1, torch.ones(2), torch.ones(2), RoundFacts(ages=lambda: {0: 1})
    )
    assert torch.equal(fresh, stale)


RULES = {
    "amplified": Amplified(1.7, 4),
    "true_topk": TrueTopK(0.7, 0.6, 1),
    "fetchsgd": FetchSGD(0.3, 0.5, 1, 3, 2, 4),
    "delayed_nesterov": DelayedNesterov(0.8, 0.6, 4, 0.2),
    "momentum_approximation": MomentumApproximation(0.7, 0.8),
}


@pytest.mark.parametrize("name", RULES)
def test_a_run_that_was_broken_off_goes_on_to_the_same_bits(name, tmp_path):
    whole = trained(RULES[name], Listed(STALE, history=3))
    past, _ = continued(
        lambda rounds, path: trained(RULES[name], Listed(STALE, history=3), rounds, checkpoint=path),
        folder=tmp_path,
    )
    assert all(np.array_equal(a, b) for a, b in zip(past, whole.past, strict=True))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["algorithm=fetchsgd", "algorithm.rows=4"], "odd number"),
        (["algorithm=fetchsgd", "upload=topk"], "upload=sketch"),
        (["algorithm=fetchsgd", "upload=sketch", "upload.columns=7"], "upload.columns=10000"),
        (["upload=sketch"], "only algorithm=fetchsgd"),
        (["algorithm=delayed_nesterov", "algorithm.c=0.5"], "1/every"),
        (["algorithm=amplified", "algorithm.every=0"], "at least 1"),
        (["algorithm=true_topk", "algorithm.k=0"], "at least 1"),
        (["algorithm=momentum_approximation", "algorithm.target=d"], "momentum or step"),
        (["algorithm=amplified", "schedule=multistage"], "Eq. 3 needs eta, beta and nu"),
    ],
)
def test_what_does_not_fit_is_refused(words, said):
    from fedgm.running.parts import build_parts

    base = ["profile=tiny", "rounds=7", "trainer.workers=1"]
    with pytest.raises(ConfigError, match=said):
        build_parts(configured(*words, base=base))
