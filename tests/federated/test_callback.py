"""The FedGM callback only fetches, calls the rule and writes back; here what it logs of Eq. 3."""

import pytest
import torch

from fedgm.errors import ConfigError
from fedgm.federated.callback import FedGM, ServerUpdate
from fedgm.schedule import Multistage
from fedgm.schedule.stages import Stages
from fedgm.server import GeneralMomentum, Momentum
from fedgm.server.adaptive import FedAdam


def logs(rule, schedule=Multistage, rounds=7):
    """T = 7, eta 2, 1, 0.5: stages of 1, 2 and 4 rounds."""
    callback = FedGM(rule, schedule([2.0, 1.0, 0.5]).plan(rounds, rule))
    x = torch.zeros(3)
    found = []
    for t in range(1, rounds + 1):
        update = ServerUpdate(t, x, torch.ones(3))
        callback.on_server_update(None, None, update)
        x = update.x
        found.append(update.log)
    return found


def test_stage_eta_and_the_two_constants_are_logged():
    found = logs(GeneralMomentum(2.0, 0.9, 0.9))
    assert [log["server/stage"] for log in found] == [1, 2, 2, 3, 3, 3, 3]
    assert [log["server/eta"] for log in found] == [2, 1, 1, 0.5, 0.5, 0.5, 0.5]
    assert [log["server/W1"] for log in found] == pytest.approx([16.2] * 7)  # 2 * .9 * .9 / .1
    assert [log["server/W2"] for log in found] == [2.0] * 7  # 1 * 2 = 2 * 1 = 4 * .5
    assert found[0]["server/gain"] == pytest.approx(0.38)  # 2 (1 - .81)


def test_a_rule_without_nu_has_no_w1():
    found = logs(FedAdam(2.0, 0.9, 1e-3, 0.99), Stages)
    assert {log["server/W1"] for log in found} == {None}
    assert {log["server/nu"] for log in found} == {None}


def test_d_is_carried_over_stage_ends_and_into_a_checkpoint():
    rule = GeneralMomentum(1.0, 0.5, 1.0)
    plan = Multistage([2.0, 1.0]).plan(3, rule)
    first, second = FedGM(rule, plan), FedGM(rule, plan)
    first.on_server_update(None, None, ServerUpdate(1, torch.zeros(2), torch.ones(2)))
    second.load_state_dict(first.state_dict())
    update = ServerUpdate(2, torch.zeros(2), torch.zeros(2))
    second.on_server_update(None, None, update)  # D = 0: only the memory moves x
    assert torch.allclose(update.x, -1.0 * plan.at(2)[1]["beta"] * torch.full((2,), 0.5))


def test_rates_alone_are_eq_2_and_a_schedule_goes_with_them():
    plan = Multistage([2.0, 1.0, 0.5]).plan(7, GeneralMomentum(2.0, 0.9, 0.9))
    assert FedGM(eta=2, beta=0.9, nu=0.9, schedule=plan).engine.rule == GeneralMomentum(2, 0.9, 0.9)


WRONG = [
    ({}, "eta, beta and nu"),
    ({"eta": 1.0, "beta": 2.0, "nu": 0.9}, "^beta=2.0: expected 0 <= beta < 1. Try beta=0.9$"),
    ({"eta": 2, "beta": 0.9}, r"\['nu'\] missing"),
    ({"rule": Momentum(2.0, 0.9, 0.7)}, r"Try FedGM\(eta=2, beta=0.9, nu=0.7\)"),
    ({"rule": GeneralMomentum}, "a server rule"),
    ({"rule": torch.optim.SGD([torch.zeros(1)], lr=1.0)}, "a server rule"),
    ({"rule": GeneralMomentum(1.0, 0.9, 0.9), "eta": 2.0}, "its own eta"),
    ({"eta": 1, "beta": 0.9, "nu": 0.9, "schedule": [2.0, 1.0]}, r"Multistage\(\[2.0, 1.0, 0.5\]\)"),
]


@pytest.mark.parametrize(("words", "said"), WRONG)
def test_what_is_no_rule_is_refused_with_what_to_write(words, said):
    with pytest.raises(ConfigError, match=said):
        FedGM(**words)


def test_an_eta_that_the_schedule_would_ignore_is_refused():
    stages = Multistage([2.0, 1.0, 0.5])
    FedGM(eta=2, beta=0.9, nu=0.9, schedule=stages)
    with pytest.raises(ConfigError, match=r"eta=1: the schedule's first eta is used instead\. Try eta=2"):
        FedGM(eta=1, beta=0.9, nu=0.9, schedule=stages)
