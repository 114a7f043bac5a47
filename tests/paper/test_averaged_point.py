"""Schedule-Free as a member of the family, and the averaged point that it and GPA evaluate."""

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

import fedgm
from fedgm.errors import ConfigError
from fedgm.running.parts import build_parts
from fedgm.schedule.every_round import UniformAverage
from fedgm.schedule.plan import Constant, Multistage
from fedgm.server.adaptive import NormalizedMomentum
from fedgm.server.momentum import GeneralMomentum, Momentum, averaged, server_step
from fedgm.server.schemes import ema_nesterov, fedacg, schedule_free
from tests.federated.federated_run import flat
from tests.paper.convex import configured, fit

ROUNDS = 60
TINY = [
    "profile=tiny", "rounds=3", "clients.count=10", "clients.per_round=2", "data.train_samples=100",
    "trainer.workers=1", "track.mode=disabled", "local.epochs=1",
]  # fmt: skip
SCHEDULE_FREE = ["algorithm=schedule_free", "schedule=schedule_free"]


@pytest.fixture
def updates():
    return np.random.default_rng(1).standard_normal((ROUNDS, 20))


def follow(rule, plan, updates):
    """(sent, averaged point) after every round, by Eq. 2 under the plan."""
    x, d, points = np.zeros(20), np.zeros(20), []
    for t, D in enumerate(updates, start=1):
        x, d = server_step(x, d, D, Momentum(**plan.at(t)[1]))
        points.append((x, averaged(x, d, Momentum(**plan.after(t)))))
    return points


@pytest.mark.parametrize(("a", "b"), [(1.0, 0.9), (0.3, 0.5), (2.0, 0.0)])
def test_schedule_free_is_fedgm_with_a_growing_beta_at_both_points(a, b, updates):
    rule = schedule_free(a, b)
    z, total, count = np.zeros(20), np.zeros(20), 1  # x is the mean of all z, z_1 = 0 among them
    for D, (sent, mean) in zip(
        updates, follow(rule, UniformAverage().plan(ROUNDS, rule), updates), strict=True
    ):
        z = z - a * D
        total, count = total + z, count + 1
        x = total / count
        assert np.abs(sent - ((1 - b) * z + b * x)).max() < 1e-12
        assert np.abs(mean - x).max() < 1e-12


@pytest.mark.parametrize(("a", "mu_x", "mu_y"), [(1.3, 0.9, 0.7), (0.5, 0.95, 0.0), (1.0, 0.5, 1.0)])
def test_the_averaged_point_is_x_of_primal_averaging(a, mu_x, mu_y, updates):
    rule = GeneralMomentum(a, mu_x, mu_y)
    z = x = np.zeros(20)
    for D, (sent, mean) in zip(updates, follow(rule, Constant().plan(ROUNDS, rule), updates), strict=True):
        z = z - a * D
        x = mu_x * x + (1 - mu_x) * z
        assert np.abs(sent - (mu_y * x + (1 - mu_y) * z)).max() < 1e-12
        assert np.abs(mean - x).max() < 1e-12


def test_beta_and_the_weights_of_updates_by_hand():
    plan = UniformAverage().plan(4, schedule_free(1.0, 0.9))
    assert [plan.at(t)[1]["beta"] for t in (1, 2, 3, 4)] == pytest.approx([0, 1 / 3, 1 / 2, 3 / 5])
    assert plan.at(4)[1] | {"beta": 0} == pytest.approx({"eta": 0.55, "beta": 0, "nu": 9 / 11})
    assert plan.after(4)["beta"] == pytest.approx(4 / 6)  # beyond the last round, where the average needs it
    d = 0.0
    for t, D in enumerate([1.0, 10.0, 100.0], start=1):  # in a mean of three, update s weighs s/6
        beta = plan.at(t)[1]["beta"]
        d = (1 - beta) * D + beta * d
    assert d == pytest.approx(1 / 6 + 20 / 6 + 300 / 6)


def test_fednag_keeps_nu_tied_and_a_rule_without_beta_is_refused():
    tied = UniformAverage().plan(9, GeneralMomentum(1.0, 0.9, 0.9, nu_is_beta=True)).at(3)[1]
    assert tied == {"eta": 1.0, "beta": 0.5, "nu": 0.5}
    assert UniformAverage().plan(9, NormalizedMomentum(1.0, 0.9)).at(3)[1] == {"eta": 1.0, "beta": 0.5}
    with pytest.raises(ConfigError, match=r"schedule=schedule_free.*no beta"):
        build_parts(configured("algorithm=fedadam", "schedule=schedule_free"))


def test_under_eq3_the_average_does_not_jump_at_a_stage_end():
    # W1 and nu are the same in all stages, so (1-nu) eta beta/(1-beta) = (1-nu) W1/nu is, too.
    plan = Multistage([2.0, 1.0, 0.5]).plan(70, GeneralMomentum(2.0, 0.9, 0.8))
    before, after = (averaged(0.0, 1.0, Momentum(**plan.at(t)[1])) for t in (10, 11))
    assert plan.ends[0] == 10
    assert before == pytest.approx(after) == pytest.approx(0.2 * 2.0 * 0.9 / 0.1)
    assert plan.after(70) == plan.at(70)[1]


def test_schedule_free_needs_its_schedule_and_adaptive_rules_have_no_average():
    with pytest.raises(ConfigError, match=r"schedule=constant.*Try schedule=schedule_free"):
        build_parts(configured("algorithm=schedule_free"))
    with pytest.raises(ConfigError, match=r"eval\.point=average.*no averaged point"):
        build_parts(configured("algorithm=fedadam", "eval.point=average"))


@pytest.mark.parametrize("name", ["gpa", "fedacg", "fedexp", "fedexp_gm"])
def test_an_average_is_evaluated_where_the_authors_do_so(name):
    engine = build_parts(configured(f"algorithm={name}", "eval.point=average")).engine
    assert engine.averages is engine.rule


@pytest.mark.parametrize("name", ["triple", "ema_nesterov", "robust", "pid", "diloco", "fedgm", "fedavgm"])
def test_elsewhere_it_would_be_a_third_point_and_is_refused(name):
    with pytest.raises(
        ConfigError, match=r"eval\.point=average.*no averaged point that its authors evaluate"
    ):
        build_parts(configured(f"algorithm={name}", "eval.point=average"))


def test_the_average_of_fedacg_is_its_x_and_that_of_ema_nesterov_would_not_be(updates):
    x, m, lam = np.zeros(20), np.zeros(20), 0.85
    rule = fedacg(lam)
    for D, (sent, mean) in zip(updates, follow(rule, Constant().plan(ROUNDS, rule), updates), strict=True):
        m = lam * m + D
        x = x - m
        assert np.abs(mean - x).max() < 1e-10
        assert np.abs(sent - (x - lam * m)).max() < 1e-10
    x, m, b, g = np.zeros(20), np.zeros(20), 0.5, 0.8
    rule = ema_nesterov(b, g)
    points = follow(rule, Constant().plan(ROUNDS, rule), updates)
    for D, (sent, _) in zip(updates, points, strict=True):
        x, before = x + b * m - D, x
        m = g * m + (1 - g) * (x - before)
        assert np.abs(sent - (x + b * m)).max() < 1e-10
    assert np.abs(points[-1][1] - x).max() > 0.1


def test_a_point_that_does_not_exist():
    with pytest.raises(ConfigError, match=r"eval\.point=middle"):
        configured("eval.point=middle")


@pytest.mark.parametrize("point", ["sent", "average"])
def test_the_loop_evaluates_the_point_that_is_asked_for_and_trains_the_same(point, tmp_path):
    words = ["algorithm=gpa", "algorithm.a=1.0", "algorithm.mu_x=0.7", "algorithm.mu_y=0.4"]
    module, loop = fit(configured(*words, f"eval.point={point}"), tmp_path)
    plain, reference = fit(configured(*words), tmp_path / "sent")
    assert torch.equal(flat(module), flat(plain))  # the average is looked at, not sent
    same = loop.row["train/loss"] == reference.row["train/loss"]
    assert same is (point == "sent")


def test_the_model_that_is_kept_is_the_one_that_was_evaluated(tmp_path):
    kept = {}
    for point in ("sent", "average"):
        run = fedgm.run([*TINY, *SCHEDULE_FREE, f"eval.point={point}", f"output_dir={tmp_path}"])
        assert run.status == "finished"
        kept[point] = load_file(run.folder / "model.safetensors"), run.summary["final"]["train/loss"]
    (sent, sent_loss), (average, average_loss) = kept.values()
    assert sent.keys() == average.keys()
    assert any(not torch.equal(sent[name], average[name]) for name in sent)
    assert sent_loss != average_loss


@pytest.mark.parametrize(
    "words",
    [
        [*SCHEDULE_FREE, "eval.point=average"],
        pytest.param(["algorithm=fedexp", "eval.point=average"], marks=pytest.mark.slow),
        pytest.param(["algorithm=qhadam"], marks=pytest.mark.slow),
    ],
    ids=lambda words: words[0],
)
def test_a_run_that_paused_ends_as_one_that_did_not(words, tmp_path):
    whole = fedgm.run([*TINY, *words, f"output_dir={tmp_path / 'whole'}"])
    assert fedgm.run([*TINY, *words, "stop_after=2", f"output_dir={tmp_path / 'paused'}"]).status == "paused"
    rest = fedgm.run([*TINY, *words, f"output_dir={tmp_path / 'paused'}"])
    assert rest.summary["final"] == whole.summary["final"]
    for name, kept in load_file(whole.folder / "model.safetensors").items():
        assert torch.equal(kept, load_file(rest.folder / "model.safetensors")[name])
