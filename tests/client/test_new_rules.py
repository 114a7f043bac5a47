"""Client rules in a run: what they refuse, that they go on after a pause, and that two workers equal one."""

from dataclasses import replace

import pytest
import torch

import fedgm
from fedgm.client.controls import EASGD, FedDyn
from fedgm.client.momenta import FedAvgM, FedCM, Stem
from fedgm.client.store import Kept
from fedgm.errors import ConfigError, FedGMError
from fedgm.participation import ClientTask
from fedgm.running.parts import build_parts
from fedgm.schedule.plateau import Plateau
from fedgm.server import GeneralMomentum
from fedgm.server.engine import Engine
from tests.conftest import quick
from tests.e2e.commands import result
from tests.federated.federated_run import configured
from tests.paper.bowls import fit
from tests.paper.recursions_problem import COHORTS

pytestmark = pytest.mark.filterwarnings("ignore:The '(train|val|test)_dataloader' does not have many workers")
OWN_SERVER = ["fedavg_m", "scaffold_m", "feddyn", "stem"]
READS_DELTA = [*OWN_SERVER, "fedcm", "dc_asgd", "easgd"]
PLAIN_SGD = ["fedcm", "fedavg_m", "scaffold_m", "mimelite", "ghbm", "stem", "dc_asgd", "per_fedavg"]
FEDAVG = ["algorithm=fedavg", "algorithm.eta=1", "algorithm.beta=0", "algorithm.nu=0"]


@pytest.mark.parametrize("client", OWN_SERVER)
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["algorithm=fedgm"], r"algorithm=fedgm: client=\w+ has its own server step.*Try algorithm=fedavg"),
        (["algorithm=fedadam"], r"algorithm=fedadam: .*Try algorithm=fedavg"),
        ([*FEDAVG, "algorithm.eta=2"], r"algorithm\.eta=2.*Try algorithm\.eta=1"),
        ([*FEDAVG, "schedule=cosine"], r"schedule=cosine: .*Try schedule=constant"),
        ([*FEDAVG, "schedule=plateau"], r"schedule=plateau: .*Try schedule=constant"),
        (["algorithm=fedgm", "schedule=auto", "rounds=50"], r"schedule=auto: .*Try schedule=constant"),
    ],
)
def test_a_rule_with_a_server_step_of_its_own_refuses_another(client, words, said):
    with pytest.raises(ConfigError, match=said):
        build_parts(configured(base=["profile=tiny", f"client={client}", *words]))


@pytest.mark.parametrize("client", READS_DELTA)
@pytest.mark.parametrize("scheme", ["fedasync", "anarchic"])
def test_updates_that_are_not_what_steps_moved_are_refused(client, scheme):
    words = ["profile=tiny", f"client={client}", "algorithm=fedavg", f"participation={scheme}"]
    with pytest.raises(ConfigError, match=rf"participation={scheme}.*Try participation=ideal"):
        build_parts(configured(base=words))


@pytest.mark.parametrize("client", PLAIN_SGD)
@pytest.mark.parametrize("word", ["local.momentum=0.9", "local.optimizer=adamw", "local.clip=1"])
def test_formulas_for_plain_sgd_refuse_other_optimisers(client, word):
    with pytest.raises(ConfigError, match=rf"client={client}: its formulas are right for plain SGD"):
        build_parts(configured(base=["profile=tiny", f"client={client}", "algorithm=fedavg", word]))


@pytest.mark.parametrize("client", ["feddyn", "easgd", "dc_asgd", "stem"])
def test_whole_updates_are_needed(client):
    words = ["profile=tiny", f"client={client}", "algorithm=fedavg", "upload=topk"]
    with pytest.raises(ConfigError, match=rf"upload=topk: client={client} needs whole updates.*upload=plain"):
        build_parts(configured(base=words))


@pytest.mark.parametrize("client", ["feddyn", "easgd", "mimelite", "stem"])
def test_the_plain_mean_is_needed(client):
    words = ["profile=tiny", f"client={client}", "algorithm=fedavg", "clients.weights=samples"]
    with pytest.raises(ConfigError, match=r"clients\.weights=samples.*Try clients\.weights=uniform"):
        build_parts(configured(base=words))


@pytest.mark.parametrize(
    "word",
    [
        "client=fedcm client.a=0", "client=fedavg_m client.beta=0", "client=fedavg_m client.gamma=0",
        "client=scaffold_m client.beta=1.5", "client=mimelite client.beta=1", "client=feddyn client.alpha=0",
        "client=ghbm client.tau=0", "client=ghbm client.beta=1", "client=stem client.w=0",
        "client=stem client.c=-1", "client=dc_asgd client.lam=-1", "client=dc_asgd client.decay=1",
        "client=easgd client.a=0", "client=per_fedavg client.alpha=-1", "client=per_fedavg client.hessian=0",
    ],
)  # fmt: skip
def test_values_out_of_range_are_refused_by_their_key(word):
    key = word.split()[1]
    with pytest.raises(ConfigError, match=rf"{key.split('=')[0]}=.*Try {key.split('=')[0]}="):
        build_parts(configured(base=["profile=tiny", "algorithm=fedavg", *word.split()]))


@pytest.mark.parametrize("rule", [FedAvgM(), FedDyn(), Stem()])
def test_federate_refuses_another_server_step_too(rule):
    with pytest.raises(FedGMError, match=r"its formulas hold where the server does x -= D"):
        fit(rule, server=(1.0, 0.9, 1.0))
    fedavg = GeneralMomentum(1.0, 0.0, 0.0)
    with pytest.raises(FedGMError, match=r"its formulas hold where the server does x -= D"):
        fit(rule, server=Engine(fedavg, Plateau().plan(len(COHORTS), fedavg)))  # eta may drop


def test_federate_refuses_updates_measured_from_the_newest_model():
    with pytest.raises(ConfigError, match="participation=Given"):
        fit(FedCM(), anchor="current")


def test_a_rule_that_keeps_more_than_it_says_is_told_so():
    clients = fit(cohorts=COHORTS[:1]).loop.clients
    clients.parts = replace(clients.parts, store=None)
    kept = Kept({"own": torch.zeros(1)}, {}, {})
    with pytest.raises(FedGMError, match="Plain keeps a state for each client, but its `keeps` is 0"):
        clients._keep(ClientTask(0, 0, 1, 1.0), 1, kept)


RUN = [
    "profile=tiny", "data.train_samples=120", "data.test_samples=20", "eval.train_samples=20",
    "clients.count=5", "clients.per_round=3", "local.unit=steps", "local.epochs=3", "rounds=6",
    "eval.every=6",
    "checkpoint.every=2", "trainer.workers=1", "track.mode=disabled",
]  # fmt: skip
STALE = ["participation=autonomous", "participation.delay=3"]
MODES = {
    "fedcm": ["client=fedcm", *STALE],
    "scaffold_m": ["client=scaffold_m", *FEDAVG],
    "mimelite": ["client=mimelite"],
    "feddyn": ["client=feddyn", *FEDAVG],
    "ghbm": ["client=ghbm", "client.tau=2", *STALE],
    "stem": ["client=stem", *FEDAVG],
    "dc_asgd": ["client=dc_asgd", *STALE],
    "easgd": ["client=easgd"],
    "per_fedavg": ["client=per_fedavg", "client.hessian=0.01"],
    "muon": ["local.optimizer=muon", "local.state=keep", "algorithm=muloco", "local.lr=0.001"],
}


@pytest.mark.parametrize("mode", quick(MODES, "mimelite", "ghbm", "easgd"))
def test_paused_twice_with_another_number_of_workers_equals_never_paused(mode, tmp_path):
    words = [*RUN, *MODES[mode]]
    whole = fedgm.run([*words, f"output_dir={tmp_path / 'whole'}"])
    assert whole.status == "finished"
    for last in (3, 5, 6):
        workers = f"trainer.workers={1 + last % 2}"
        fedgm.run([*words, workers, f"output_dir={tmp_path / 'paused'}", f"stop_after={last}"])
    assert result(tmp_path / "paused") == result(tmp_path / "whole")


def test_easgd_and_others_know_what_a_client_costs():
    assert (EASGD.keeps, FedDyn.keeps, Stem.keeps, FedCM.keeps) == (1, 1, 0, 0)
