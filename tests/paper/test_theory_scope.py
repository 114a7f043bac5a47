"""What `fedgm theory` makes of a configuration: K, m and tau of its own tasks, and what no theorem covers."""

import numpy as np
import pytest
import torch
from click.testing import CliRunner

from fedgm import commands as cli
from fedgm import config
from fedgm.participation import ClientTask
from fedgm.running import diagnosis
from fedgm.running.trainer import build_module
from fedgm.theory import theorem2, theorem3
from tests.paper.theorems import PROBLEM

TINY = ["profile=tiny", "rounds=4", "clients.count=4", "clients.per_round=2", "local.batch_size=4"]
# Equal clients of equal work: alpha = inf deals the images out evenly.
EQUAL = ["data.alpha=inf", "data.train_samples=40", "local.epochs=2"]


class Alternating:
    """A scheme of somebody else's: no `epochs` key, one client a round, one epoch and two by turns."""

    history, anchor = 1, "start"

    def tasks(self, t):
        return [ClientTask(t % 4, 0, 1 + t % 2, 1.0)]

    def log(self, t):
        return {}


def composed(*overrides):
    return config.validate(config.compose([*TINY, *overrides]))


def setting(*overrides):
    return diagnosis.setting_of(composed(*overrides))


def theory(*arguments):
    return CliRunner().invoke(cli.main, ["theory", *arguments])


def test_k_is_that_of_the_partition_by_hand():
    s = setting(*EQUAL)  # 10 images a client, batch 4: 3 steps an epoch, 2 epochs
    assert (s.n, s.m, s.K, s.K_law, s.spread, s.notes) == (4, 2, 6, (), (6, 6), ())
    assert setting(*EQUAL, "local.unit=steps", "local.epochs=7").K == 7
    # 41 images: one client has 11, still 3 steps; 45: one has 12 and the others 11; batch 11: 2, 1, 1, 1
    assert setting(*EQUAL, "data.train_samples=45").spread == (6, 6)
    uneven = setting(*EQUAL, "data.train_samples=45", "local.batch_size=11", "clients.per_round=4")
    assert (uneven.K, uneven.spread) == (2, (2, 4))  # the mean of 4, 2, 2, 2 is 2.5, rounded to even


def test_uneven_clients_are_a_condition_that_fails():
    s = setting("data.alpha=0.3", "data.min_samples=1", "local.lr=1e-12")
    assert s.spread[0] < s.spread[1]
    report = theorem2(PROBLEM, s)
    assert [c.subject for c in report.conditions if not c.holds] == ["the largest w_i K_i"]
    # delta / K_i, Alg. 4 as printed, counts everyone alike
    alike = setting("data.alpha=0.3", "data.min_samples=1", "local.lr=1e-12", "participation.normalize=steps")
    assert alike.spread == pytest.approx((1, 1))
    assert theorem3(PROBLEM, alike).holds


def test_delays_and_epochs_of_the_tasks():
    s = setting(*EQUAL, "participation=autonomous", "participation.delay=3", "rounds=400")
    assert s.tau == 2
    assert [K for K, _ in s.K_law] == [3, 6, 9, 12, 15, 18]
    assert [p for _, p in s.K_law] == pytest.approx([1 / 6] * 6, abs=0.06)  # drawn, 800 times
    assert s.spread == pytest.approx((6, 6))  # reference: w_i K_i is what the client does in local.epochs
    assert s.stages[0].eta == pytest.approx(6 * setting(*EQUAL).stages[0].eta)
    late = setting(*EQUAL, "participation=event", "participation.max_staleness=7")
    assert (late.tau, late.m) == (7, 2)
    # a binomial cohort: the smallest counts
    some = setting(*EQUAL, "participation=autonomous", "participation/sampler=bernoulli", "rounds=50")
    assert some.m == 1


def test_own_data_and_data_without_a_size(tmp_path):
    rng = np.random.default_rng(0)
    images, labels = rng.integers(0, 256, (40, 8, 8, 3), dtype=np.uint8), np.arange(40) % 2
    np.savez(tmp_path / "own.npz", x_train=images, y_train=labels, x_test=images, y_test=labels)
    own = ["data=npz", f"data.path={tmp_path / 'own.npz'}", "data.alpha=inf", "local.epochs=2"]
    assert setting(*own).K == 6
    # synthetic makes 10,000 where no size is given: 2,500 a client, 625 batches, 2 epochs
    assert setting("data.alpha=inf", "data.train_samples=null", "local.epochs=2").K == 1250


def test_a_scheme_without_epochs():
    own = composed(*EQUAL)
    own.participation = {"name": "own", "_target_": f"{__name__}.Alternating"}
    s = diagnosis.setting_of(own)
    # rounds 1..4: 2, 1, 2, 1 epochs of 3 steps; unnormalised, so eta takes on the mean K
    assert (s.m, s.tau, s.K_law, s.spread) == (1, 0, ((3, 0.5), (6, 0.5)), (3, 6))
    assert s.stages[0].eta == pytest.approx(4.5 * setting(*EQUAL).stages[0].eta)
    assert diagnosis.covered_setting(own)[1] is False  # nothing is known of who arrives: the corollary


@pytest.mark.parametrize(
    ("overrides", "reasons"),
    [
        (["client=scaffold"], ["client=scaffold: its clients keep a state"]),
        (["client=mifa"], ["client=mifa: its clients keep a state"]),
        (["client=fedprox"], ["client=fedprox: it changes the gradients"]),
        (["local.momentum=0.9"], ["local.momentum=0.9: a local step depends on"]),
        (["local.optimizer=adamw"], ["local optimizer AdamW: its steps are adaptive"]),
        (["local.weight_decay=0.1"], ["local.weight_decay=0.1: clients then minimise another"]),
        (["local.clip=1.0"], ["local.clip=1: a clipped gradient is biased"]),
        (["clients.weights=samples"], ["clients.weights=samples: f is the plain mean"]),
        (["participation=fedbuff"], ["participation.staleness=polynomial: an old update counts in full"]),
        (["participation=autonomous_current"], ["participation.anchor=current: Alg. 4 measures"]),
        (
            ["participation=fedasync", "local.momentum=0.9"],
            ["participation.staleness=polynomial", "participation.anchor=current", "local.momentum=0.9"],
        ),
    ],
)
def test_what_no_theorem_covers_is_refused_with_every_reason(overrides, reasons):
    result = theory(*TINY, *overrides)
    assert result.exit_code == 2
    assert "error: no theorem covers this configuration:" in result.output
    assert all(f"- {reason}" in result.output for reason in reasons)
    assert result.output.count("- ") == len(reasons)
    assert "Theorem" not in result.output  # no verdict


@pytest.mark.filterwarnings("ignore:algorithm.nu=1.2 lies outside")
def test_nu_outside_the_unit_interval_is_refused_by_theorem_3_alone():
    wild = [*TINY, *EQUAL, "algorithm.nu=1.2", "participation=autonomous"]
    refused = theory(*wild)
    assert refused.exit_code == 2
    assert "nu=1.2: Theorem 3 and its corollary cover 0 <= nu <= 1" in refused.output
    every = theory(*wild, "--theorem", "all")
    assert every.exit_code == 0
    assert "─ Theorem 2 (corrected)" in every.output
    assert "Theorem 3: nu=1.2: Theorem 3" in every.output
    assert "Theorem 2" in theory(*TINY, *EQUAL, "algorithm.nu=1.2").output


def test_the_corollary_needs_the_largest_difference():
    biased = [*TINY, *EQUAL, "participation=autonomous", "participation/sampler=biased"]
    assert "is not known" in theory(*biased).output
    assert "is not known" not in theory(*biased, "--sigma-max", "1").output
    assert "differs most, 2." in " ".join(theory(*biased, "--sigma-max", "2").output.split())
    assert theory(*biased, "--sigma-max", "0.5").exit_code == 2  # below sigma_g = 1


def test_measuring_uses_one_thread_and_gives_the_others_back(tmp_path, monkeypatch):
    from safetensors.torch import save_file

    run = config.validate(config.compose([*TINY, *EQUAL]))
    weights = build_module(run, {"num_classes": 10}).state_dict()
    save_file({name: each.contiguous() for name, each in weights.items()}, tmp_path / "model.safetensors")
    seen = []
    monkeypatch.setattr(diagnosis, "measure", lambda *given, **more: seen.append(torch.get_num_threads()))
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        diagnosis.estimate_run(run, tmp_path, 2)
        assert seen == [1]
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
