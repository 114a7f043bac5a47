"""Plans that are decided during the run, and local work by stage, in the real loop: 30 rounds in float64."""

import numpy as np
import pytest

from fedgm import config
from fedgm.errors import ConfigError, RefusedError
from fedgm.running.parts import build_parts
from fedgm.running.terminal import caption
from fedgm.schedule import Constant, Multistage
from fedgm.schedule.plateau import Plateau
from fedgm.schedule.work import BatchGrowth, Local, PostLocal, Stages, Work
from fedgm.server import GeneralMomentum
from fedgm.study.longer import _begins_as
from fedgm.theory.setting import theory_stages
from tests.federated.federated_run import configured
from tests.paper import recursions_schedules as papers
from tests.paper.recursions_problem import COHORTS, START, gradient, keys
from tests.paper.server_bowls import LR, Bowls, Listed, continued, error, trained
from tests.paper.system_recursions import Server, fedavg, mean_delta

CLOSE = 1e-10
RULE = GeneralMomentum(2.0, 0.6, 0.7)
PLATEAU = Plateau(patience=2, threshold=0.05, factor=0.5, watch="local/loss")
LOCAL = Local(epochs=3, lr=LR, batch_size=10, unit="steps")


def watched(rounds=30, checkpoint=None):
    return trained(RULE, Listed(COHORTS), rounds, plan=PLATEAU, checkpoint=checkpoint)


def test_plateau():
    run = watched()
    losses = [row["local/loss"] for row in run.rows]
    drops = papers.plateau(losses, 2.0, 0.6, 0.7, 2, 0.05, 0.5)
    assert 1 < len(drops) < 8
    server, delta, x = Server(2.0, 0.6, 0.7), mean_delta(COHORTS, gradient, keys(3), LR), START
    past = [x]
    for t in range(1, 31):
        x = server.step(x, delta(t, x))
        past.append(x)
        for drop in drops:
            if drop.evaluation == t:
                server.eta, server.beta = drop.eta, drop.beta
    assert error(run.past, past) < CLOSE
    ends = run.trainer.callbacks[0].engine.plan.ends
    assert ends == [*(drop.evaluation for drop in drops if drop.evaluation < 30), 30]
    assert [row["server/stage"] for row in run.rows] == [
        1 + sum(t > end for end in ends) for t in range(1, 31)
    ]
    constants = [row["server/W1"] for row in run.rows]
    assert max(constants) - min(constants) < 1e-12  # W1 is kept at a drop


@pytest.mark.parametrize("at", [3, 13])
def test_a_plan_that_was_broken_off_goes_on_to_the_same_bits(at, tmp_path):
    past, rows = continued(watched, at, tmp_path)
    whole = watched()
    assert all(np.array_equal(a, b) for a, b in zip(past, whole.past, strict=True))
    assert [row["server/eta"] for row in rows] == [row["server/eta"] for row in whole.rows]


def test_theory_does_not_guess_stages():
    with pytest.raises(RefusedError, match="decided during the run"):
        theory_stages(PLATEAU.plan(30, RULE))


@pytest.mark.parametrize(
    ("words", "shared"),
    [([], True), (["schedule=plateau"], False), (["work=post_local", "local.unit=steps"], False)],
)
def test_a_longer_run_holds_a_shorter_one_only_where_its_plan_is_known(words, shared):
    short, long = (config.compose(["profile=tiny", f"rounds={rounds}", *words]) for rounds in (4, 8))
    assert _begins_as(short, long) is shared


def test_captions_say_that_stages_were_decided_during_the_run():
    facts = {
        "profile": "tiny", "model": "resnet", "data": "synthetic", "rounds_done": 9, "rounds": 9, "seed": 0,
        "local_steps": 3.0, "stages": [{"rounds": 4, "eta": 2.0}, {"rounds": 5, "eta": 1.0}],
    }  # fmt: skip
    assert "decided" not in caption(facts, {})
    said = caption({**facts, "decided": "during the run"}, {})
    assert said.endswith("eta 2 then 1, stages end after rounds 4, stages decided during the run")


def test_batch_growth_in_both_forms():
    etas, plan = [2.0, 1.0, 0.5], Multistage([2.0, 1.0, 0.5]).plan(30, RULE)
    instead = BatchGrowth("instead", etas).stages(30, Constant().plan(30, RULE), LOCAL)
    assert [work.batch_size for _, work in instead] == papers.batches_instead_of_drops(10, etas)
    assert [end for end, _ in instead] == plan.ends
    scale = BatchGrowth("scale").stages(30, plan, LOCAL)
    assert [work.batch_size for _, work in scale] == papers.batches_that_scale(10, etas)
    data = Bowls()
    trained(RULE, Listed(COHORTS), data=data, work=instead)
    used = {t: size for size, _, t in data.asked}
    ends = [end for end, _ in instead]
    assert [used[t] for t in range(1, 31)] == [
        instead[sum(t > end for end in ends)][1].batch_size for t in range(1, 31)
    ]


def test_post_local_sgd():
    stages = PostLocal(0.4).stages(30, Constant().plan(30, RULE), LOCAL)
    assert stages == [(12, Work(epochs=1)), (30, Work(epochs=3))]
    fedavg_rule = GeneralMomentum(1.0, 0.0, 0.0)
    run = trained(fedavg_rule, Listed(COHORTS), data=Bowls(steps=1), work=stages)
    want = papers.post_local(START, COHORTS, gradient, keys(3), LR, lambda t: 1 if t <= 12 else 3)
    assert error(run.past, want) < CLOSE
    assert [row["cohort/steps"] for row in run.rows] == [2] * 12 + [6] * 18
    assert [row["work/epochs"] for row in run.rows] == [1] * 12 + [3] * 18


def test_local_rates_by_stage(tmp_path):
    plan = Multistage([2.0, 1.0, 0.5]).plan(30, RULE)
    stages = Stages(lrs=[0.05, 0.02, 0.01]).stages(30, plan, LOCAL)

    def at(rounds, path):
        return trained(GeneralMomentum(1.0, 0.0, 0.0), Listed(COHORTS), rounds, checkpoint=path, work=stages)

    rates = {end: work.lr for end, work in stages}
    want = fedavg(START, COHORTS, gradient, keys(3), lambda t: next(rates[end] for end in rates if t <= end))
    assert error(at(30, None).past, want) < CLOSE
    assert error(continued(at, folder=tmp_path)[0], want) < CLOSE


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["schedule=plateau", "schedule.watch=loss"], "train/loss or test/loss"),
        (["schedule=plateau", "schedule.factor=1"], "between 0 and 1"),
        (["schedule=plateau", "work=batch_growth"], "decided during the run"),
        (["work=post_local"], "local.unit=steps"),
        (["work=stages", "work.lrs=[0.1,0.2]"], "there are 1 stages"),
        (["work=stages", "work.lrs=[0.1]", "work.lengths=[3]"], "add up to 3"),
        (["work=batch_growth", "work.form=scale"], "null with form=scale"),
        (["work=batch_growth", "participation=autonomous"], "participation=ideal"),
        (["work=batch_growth", "participation=event"], "participation=ideal"),
        (["work=batch_growth", "participation=fednova"], "participation=ideal"),
    ],
)
def test_what_does_not_fit_is_refused(words, said):
    with pytest.raises(ConfigError, match=said):
        build_parts(configured(*words, base=["profile=tiny", "rounds=7", "trainer.workers=1"]))
