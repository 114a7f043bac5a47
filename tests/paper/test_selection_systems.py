"""Who trains and who sends, in the real loop against the recursions of their papers: 30 rounds in float64."""

from itertools import combinations, permutations

import numpy as np
import pytest

from fedgm.client.rules import LastUpdates
from fedgm.draws import generator
from fedgm.errors import ConfigError, RefusedError
from fedgm.participation import Cyclic, LongestAbsent, ideal
from fedgm.participation.choosing import Active, PowerOfChoice, active_chances
from fedgm.participation.deadline import Deadline, within
from fedgm.participation.devices import Devices
from fedgm.participation.task import ClientFacts
from fedgm.running.parts import build_parts
from fedgm.server import GeneralMomentum
from fedgm.upload.sending import Optimal, approximate_chances, exact_chances
from tests.federated.federated_run import configured
from tests.paper import recursions_client_state as kept
from tests.paper import recursions_selection as papers
from tests.paper.recursions_problem import ALL, START, N, gradient, keys, loss
from tests.paper.server_bowls import LR, Bowls, Listed, continued, error, trained, value
from tests.paper.system_recursions import Server, fedavg

CLOSE = 1e-10
RULE = GeneralMomentum(0.8, 0.6, 0.7)
MODEL = 3 * 8  # bytes of the three float64 numbers


def server():
    return Server(0.8, 0.6, 0.7)


def chi_square(counts, chances, draws):
    expected = np.array(chances) * draws
    return float(((np.array(counts) - expected) ** 2 / expected).sum())


# Sending or not -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("m", [2, 0.4])
def test_optimal_client_sampling(exact, m):
    run = trained(RULE, Listed(ALL), sending=Optimal(m, exact))
    want, _, senders = papers.optimal(
        START, ALL, gradient, keys(3), LR, m, lambda t, i: generator(0, "send", t, i).random(), exact,
        server=server(),
    )  # fmt: skip
    assert error(run.past, want) < CLOSE
    assert [row["cohort/senders"] for row in run.rows] == [len(who) for who in senders]
    assert [row["bytes/up"] for row in run.rows] == [MODEL * len(who) for who in senders]
    assert [row["bytes/down"] for row in run.rows] == [MODEL * N] * 30
    if exact:
        assert run.rows[0]["bytes/norms"] == N * (4 + 4)
    assert (m == 2) or any(not who for who in senders)  # rounds in which nobody sends are part of it


def test_chances_are_those_of_the_recursions():
    rng = np.random.default_rng(0)
    for _ in range(200):
        u, m = rng.exponential(size=8) ** 3, float(rng.integers(1, 8))
        p, q = exact_chances(u, m), approximate_chances(u, m, 4)[0]
        assert np.allclose(p, papers.ocs(u, m), atol=1e-12)
        assert np.allclose(q, papers.aocs(u, m), atol=1e-12)
        assert abs(p.sum() - m) < 1e-9
        assert q.sum() <= m + 1e-9
    assert exact_chances(np.full(8, 0.3), 2.0).tolist() == [0.25] * 8
    assert approximate_chances(np.full(8, 0.3), 2.0, 4)[0].tolist() == [0.25] * 8
    assert exact_chances(np.array([0.0, 0.0, 1.0]), 2.0).tolist() == [0.0, 0.0, 1.0]
    assert approximate_chances(np.zeros(3), 2.0, 4)[0].tolist() == [0.0] * 3


def test_optimal_sampling_is_unbiased_and_draws_by_its_chances():
    rng, rule = np.random.default_rng(1), Optimal(2, exact=True)
    deltas = rng.normal(size=(5, 3)) * np.array([[0.1], [0.5], [1.0], [2.0], [4.0]])
    u = np.linalg.norm(deltas, axis=1)
    drawn = [rule.senders(u, rng.random(5)).factors for _ in range(2000)]
    p, sent = rule.chances(u)[0], (np.array(drawn) > 0).sum(axis=0)
    between = (p > 0) & (p < 1)
    chi = ((sent - 2000 * p)[between] ** 2 / (2000 * p * (1 - p))[between]).sum()
    assert chi < 16.3  # 99.9 % of chi-square with 3 degrees of freedom; 4 at most are between
    assert (sent[p == 1] == 2000).all()
    mean = np.array(drawn) @ deltas / 5 / 2000
    spread = np.sqrt((u**2 * (1 / np.maximum(p, 1e-9) - 1)).sum() / 2000) / 5
    assert np.linalg.norm(mean.sum(axis=0) - deltas.mean(axis=0)) < 4 * spread


# Choosing with the model ----------------------------------------------------------------------------------

SIZES = (1, 2, 3, 4)


def chosen_by(sampler, rounds=30, checkpoint=None):
    data = Bowls(sizes=SIZES)
    return trained(RULE, ideal(N, 2, 1, 0, sampler=sampler), rounds, data, checkpoint=checkpoint)


@pytest.mark.parametrize("variant", ["pow", "cpow", "rpow"])
def test_power_of_choice(variant):
    run = chosen_by(PowerOfChoice(N, 2, 0, 3, variant))
    drawn = PowerOfChoice(N, 2, 0, 3, facts=ClientFacts(size=SIZES.__getitem__))
    candidates = [drawn.candidates(t) for t in range(1, 31)]
    probe = {"pow": lambda t, i: None, "cpow": lambda t, i: (-t, 0), "rpow": None}[variant]
    want, cohorts = papers.power_of_choice(
        START, candidates, gradient, keys(3), LR, 2, value, probe, server()
    )
    assert error(run.past, want) < CLOSE
    assert len({tuple(sorted(who)) for who in cohorts}) > 2
    probed = 0 if variant == "rpow" else 3
    assert {row["cohort/probed"] for row in run.rows} == {probed}
    assert {row["bytes/probe_up"] for row in run.rows} == {4 * probed}
    assert {row["bytes/probe_down"] for row in run.rows} == {MODEL if probed else 0}  # one does not train


def test_candidates_are_drawn_by_their_sample_counts():
    sampler = PowerOfChoice(N, 2, 5, 2, facts=ClientFacts(size=SIZES.__getitem__))
    pairs = list(combinations(range(N), 2))
    counts = dict.fromkeys(pairs, 0)
    for t in range(1, 2001):
        counts[tuple(sorted(sampler.candidates(t)))] += 1
    part = np.array(SIZES) / 10
    chances = [sum(part[i] * part[j] / (1 - part[i]) for i, j in permutations(pair)) for pair in pairs]
    assert chi_square(list(counts.values()), chances, 2000) < 20.5  # 99.9 % with 5 degrees of freedom


def test_power_of_choice_picks_the_hard_half():
    easy = {client: 0.1 if client < 5 else 2.0 for client in range(10)}
    all_of_them = PowerOfChoice(10, 5, 0, 10)
    assert sorted(all_of_them.choose(1, {c: easy[c] for c in all_of_them.candidates(1)})) == [5, 6, 7, 8, 9]
    some = PowerOfChoice(10, 2, 0, 4)
    for t in range(1, 50):
        candidates = some.candidates(t)
        hard = [c for c in candidates if c >= 5]
        assert some.choose(t, {c: easy[c] for c in candidates})[: len(hard)] == hard[:2]
        assert some.cohort(t)[: len(hard)] == hard[:2]
    with pytest.raises(RefusedError, match="decided during the run"):
        some.cohort(99)


def test_active():
    alpha = (0.25, 0.5, 0.4)
    run = chosen_by(Active(N, 2, 0, *alpha))

    def weighted(t, chances, k):
        return generator(0, "active", t).choice(N, k, replace=False, p=chances).tolist()

    def uniform(t, others, k):
        return generator(0, "cohort", t).choice(others, k, replace=False).tolist()

    want = papers.active(START, 30, SIZES, loss, gradient, keys(3), LR, 2, weighted, uniform, alpha, server())
    assert error(run.past, want.past) < CLOSE
    assert {row["cohort/probed"] for row in run.rows} == {2}
    assert {row["bytes/probe_down"] for row in run.rows} == {0}  # who is measured trains
    values = run.loop.optional.chooser.sampler.values
    assert np.allclose([values[i] for i in range(N)], want.values, atol=CLOSE)


def test_active_draws_by_its_chances():
    sampler = Active(10, 1, 3, alpha1=0.4, alpha2=0.5, alpha3=0.0)
    sampler.values = {client: float(client) for client in range(2, 10)}
    chances = active_chances(np.array([-np.inf, -np.inf, *range(2, 10)]), 0.4, 0.5)
    counts = np.zeros(10)
    for t in range(1, 2001):
        counts[sampler.candidates(t)] += 1
    assert counts[:4].tolist() == [0] * 4
    assert chi_square(counts[4:], chances[4:], 2000) < 20.5


@pytest.mark.parametrize(
    "make", [lambda: PowerOfChoice(N, 2, 0, 3, "rpow"), lambda: Active(N, 2, 0, 0.25, 0.5, 0.4)]
)
def test_a_choice_that_was_broken_off_goes_on_to_the_same_bits(make, tmp_path):
    past, rows = continued(lambda rounds, path: chosen_by(make(), rounds, path), folder=tmp_path)
    whole = chosen_by(make())
    assert all(np.array_equal(a, b) for a, b in zip(past, whole.past, strict=True))
    assert [row["cohort/probed"] for row in rows] == [row["cohort/probed"] for row in whole.rows]


# Samplers and schemes -------------------------------------------------------------------------------------


def test_cyclic():
    sampler = Cyclic(10, 2, 0, groups=3)
    order = generator(0, "cycle").permutation(10)
    for t in range(1, 13):
        assert sampler.present(t) == papers.cyclic(order, 3, t)
        assert set(sampler.cohort(t)) <= set(sampler.present(t))
        assert len(set(sampler.cohort(t))) == 2
    assert sampler.cohort(1) != sampler.cohort(1, draw=1)


@pytest.mark.parametrize("available", [1.0, 0.6])
def test_longest_absent_with_mifa_is_fedlaavg(available, tmp_path):
    sampler = LongestAbsent(N, 2, 0, available)
    run = trained(GeneralMomentum(1.0, 0.0, 0.0), ideal(N, 2, 1, 0, sampler=sampler), client=LastUpdates())
    present = [sampler._present(t) for t in range(1, 31)]
    want, cohorts = kept.fedlaavg(START, present, 2, gradient, keys(3), LR, N)
    assert error(run.past, want) < CLOSE
    fresh = LongestAbsent(N, 2, 0, available)
    assert [fresh.cohort(t) for t in (30, 3, 17)] == [cohorts[29], cohorts[2], cohorts[16]]


def test_deadline_takes_whom_fedcs_takes():
    rng = np.random.default_rng(0)
    for _ in range(200):
        update, upload = rng.exponential(3.0, size=9), rng.exponential(1.0, size=9)
        chosen = within(8.0, list(range(9)), update.tolist(), upload.tolist())
        assert chosen.clients == papers.fedcs(range(9), update, upload, 8.0)
        assert chosen.ends < 8.0


def test_deadline_in_the_loop():
    scheme = Deadline(N, 0, 1, 4.0, 0.75, 0.5, Devices(0, step_time=1.0, speed_sigma=0.5))
    run = trained(RULE, scheme)
    made = run.loop.participation  # it knows the clients' steps
    cohorts = [[task.client for task in made.tasks(t)] for t in range(1, 31)]
    assert error(run.past, fedavg(START, cohorts, gradient, keys(3), LR, server())) < CLOSE
    assert len({len(who) for who in cohorts}) > 1
    times = [row["clock/time"] for row in run.rows]
    assert all(b - a > 0 for a, b in zip([0.0, *times], times, strict=False))
    assert max(np.diff([0.0, *times])) < 4.0 * 32
    with pytest.raises(RefusedError, match="Try a later deadline"):
        Deadline(N, 0, 1, 1e-6, 0.75, 0.5, Devices(0)).tasks(1)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["participation/sampler=power_of_choice", "participation.sampler.d=1"], "clients.per_round"),
        (["participation/sampler=power_of_choice", "participation=event"], "participation=ideal"),
        (["participation/sampler=longest_absent", "participation=sync"], "participation=ideal"),
        (["participation/sampler=cyclic", "participation.sampler.groups=99"], "groups="),
        (["participation/sampler=active", "participation.sampler.alpha1=2"], "0 to 1"),
        (["participation=deadline", "participation.share=0"], "share"),
        (["sending=optimal", "client=scaffold"], "sending=all"),
        (["sending=optimal", "upload=topk"], "sending=all"),
        (["sending=optimal", "algorithm=fedexp"], "sending=all"),
        (["sending=optimal", "sending.m=99"], "clients.per_round"),
    ],
)
def test_what_does_not_fit_is_refused(words, said):
    with pytest.raises(ConfigError, match=said):
        build_parts(configured(*words, base=["profile=tiny", "rounds=7", "trainer.workers=1"]))
