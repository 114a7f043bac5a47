"""privacy=central in the real loop against its recursion, and epsilon against bounds worked out by hand."""

import numpy as np
import pytest
import torch

from fedgm.draws import generator
from fedgm.errors import ConfigError, FedGMError
from fedgm.participation import ideal
from fedgm.server import GeneralMomentum
from fedgm.upload.privacy import Central, accountant
from tests.federated.federated_run import configured
from tests.paper import recursions_privacy as papers
from tests.paper.recursions_problem import START, N, gradient, keys
from tests.paper.server_bowls import LR, continued, error, trained
from tests.paper.system_recursions import Server

pytest.importorskip("dp_accounting")

CLOSE = 1e-10
COHORTS = [[task.client for task in ideal(N, 2, 1, 0).tasks(t)] for t in range(1, 31)]


def private(rounds=30, checkpoint=None, **keys):
    privacy = Central(N, 2, 0, **{"clip": 0.1, "noise": 0.8, "delta": 1e-5, **keys})
    return trained(
        GeneralMomentum(0.8, 0.6, 0.7), ideal(N, 2, 1, 0), rounds, checkpoint=checkpoint, privacy=privacy
    )


@pytest.mark.parametrize("adaptive", [False, True])
@pytest.mark.parametrize("noise", [0.8, 0.0])
def test_central_privacy(adaptive, noise):
    run = private(adaptive=adaptive, noise=noise, bit_noise=0.9)
    want = papers.central(
        START, COHORTS, gradient, keys(3), LR, 0.1, noise,
        lambda t: generator(0, "privacy", t).standard_normal(3),
        (0.5, 0.2, 0.9) if adaptive else None,
        lambda t: float(generator(0, "privacy-bits", t).standard_normal()),
        Server(0.8, 0.6, 0.7),
    )  # fmt: skip
    assert error(run.past, want.past) < CLOSE
    assert np.allclose([row["privacy/clip"] for row in run.rows], want.clips[:30], atol=1e-12)
    assert any(row["privacy/clipped"] > 0 for row in run.rows)


def test_a_private_run_that_was_broken_off_goes_on_to_the_same_bits(tmp_path):
    def make(rounds, path):
        return private(rounds, path, adaptive=True, bit_noise=0.9)

    past, rows = continued(make, folder=tmp_path)
    whole = make(30, None)
    assert all(np.array_equal(a, b) for a, b in zip(past, whole.past, strict=True))
    assert [row["privacy/epsilon"] for row in rows] == [row["privacy/epsilon"] for row in whole.rows]


def test_clipping_bounds_every_update_and_noise_has_its_deviation():
    privacy = Central(100, 5, 0, clip=0.3, noise=1.5, delta=1e-5)
    for size in (0.01, 0.3, 5.0, 1e6):
        delta, norm = privacy.clipped(torch.full((50,), size))
        assert delta.double().norm() <= 0.3 * (1 + 1e-6)
        assert norm == pytest.approx(size * 50**0.5, rel=1e-6)
    mean, _ = privacy.noised(torch.zeros(100_000), 1, torch.zeros(5))
    assert mean.double().std().item() == pytest.approx(1.5 * 0.3 / 5, rel=0.01)  # 1e5 draws: .22 % deviation
    assert abs(mean.double().mean().item()) < 4 * (1.5 * 0.3 / 5) / 100_000**0.5
    other, _ = privacy.noised(torch.zeros(100_000), 2, torch.zeros(5))
    assert not torch.equal(mean, other)


@pytest.mark.parametrize(
    ("n", "m", "z", "rounds"), [(100, 5, 1.0, 50), (1000, 10, 2.0, 100), (50, 5, 4.0, 20)]
)
def test_epsilon_lies_between_bounds_that_need_no_library(n, m, z, rounds):
    delta, q, s = 1e-5, m / n, z / 2  # sensitivity of the sum 2C: deviation over sensitivity is z/2
    epsilon = accountant(n, m, z, delta)(rounds)
    assert epsilon <= papers.sampled_epsilon(delta, rounds, q, s) + 1e-9
    one = accountant(n, m, z, delta)(1)
    assert papers.one_round_delta(one, q, s) <= delta  # no correct accountant is below it
    assert epsilon > one


def test_epsilon_of_whole_cohorts_is_between_the_exact_one_and_the_closed_form():
    for rounds, z in ((1, 4.0), (30, 8.0)):
        epsilon = accountant(20, 20, z, 1e-5)(rounds)
        assert papers.gaussian_epsilon(1e-5, rounds, z / 2) <= epsilon + 1e-9
        assert epsilon <= papers.renyi_closed_form(1e-5, rounds, z / 2) * 1.01  # orders are a grid


def test_rows_have_epsilon_and_the_trap_is_avoided():
    rows = private(rounds=3).rows
    assert [row["privacy/epsilon"] for row in rows] == sorted(row["privacy/epsilon"] for row in rows)
    assert rows[0]["privacy/delta"] == 1e-5
    # z in the place of z/2 would give less than the exact cost of one round of all clients
    trap = accountant(20, 20, 8.0, 1e-5)(1)  # the number that z = 4 would get by passing z
    assert papers.gaussian_delta(trap, 1, 4.0 / 2) > 1e-4


def test_buffers_are_refused():
    from fedgm.federated.fitting import require_private

    place = type("Place", (), {"name": "bn.running_mean"})()
    with pytest.raises(FedGMError, match=r"bn\.running_mean"):
        require_private(Central(10, 5, 0, 0.1, 1.0, 1e-5), [place])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["clients.weights=samples"], "clients.weights=uniform"),
        (["client=scaffold"], "client=plain"),
        (["client=mifa"], "client=plain"),
        (["upload=qsgd"], "upload=plain"),
        (["algorithm=fedexp"], "norms of updates"),
        (["participation/sampler=bernoulli"], "exactly m of n"),
        (["participation/sampler=biased"], "exactly m of n"),
        (["participation/sampler=power_of_choice"], "exactly m of n"),
        (["participation=event"], "exactly m of n"),
        (["participation=autonomous"], "participation.normalize=none"),
        (["sending=optimal"], "sending=all"),
        (["schedule=plateau"], "losses on the clients' data.*Try schedule.watch=test/loss"),
        (
            ["schedule=auto", "rounds=50"],
            "schedule=auto decides by losses.*Try schedule=constant, or privacy=none",
        ),
        (["clients.nonfinite=drop"], "clients.nonfinite=stop"),
        (["privacy.clip=0"], "privacy.clip=0.1"),
        (["privacy.adaptive=true", "privacy.bit_noise=0.4"], "privacy.bit_noise="),
    ],
)
def test_what_breaks_the_accounting_is_refused(words, said):
    from fedgm.running.parts import build_parts

    base = ["profile=tiny", "rounds=7", "trainer.workers=1", "privacy=central"]
    with pytest.raises(ConfigError, match=said):
        build_parts(configured(*words, base=base))
    build_parts(configured("algorithm=fedgm", base=base))
