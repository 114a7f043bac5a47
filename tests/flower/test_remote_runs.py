"""A run whose clients are on nodes ends with the bytes of the simulation; a server that dies continues."""

import json

import pytest

import fedgm
from fedgm.errors import FedGMError, RefusedError
from fedgm.flower.post import Answer, Terms
from fedgm.flower.server import serve
from tests.conftest import quick
from tests.flower.memory_post import WORDS, Killed, MemoryPost

QUICK = Terms(wait=0.5, poll=0.0)
pytestmark = pytest.mark.filterwarnings("ignore:round . goes on without")


def simulated(tmp_path, *words):
    return fedgm.run([*WORDS, *words, f"output_dir={tmp_path / 'simulated'}", "trainer.workers=1"]).folder


def served(post, tmp_path, *words, terms=QUICK):
    return serve(post, [*WORDS, *words, f"output_dir={tmp_path / 'served'}"], terms)


def model(folder):
    return (folder / "model.safetensors").read_bytes()


def rows(folder):
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    clock = ("time/round", "time/eval", "samples_per_s")
    return [{k: v for k, v in row.items() if k not in clock} for row in lines]


def memory(tmp_path, *words, **kwargs):
    return MemoryPost([*WORDS, *words], tmp_path / "nodes", **kwargs)


EQUAL = {
    "fedavg": ["algorithm=fedavg"],
    "multistage": ["schedule=multistage", "schedule.etas=[2.0,1.0]"],
    "topk": ["upload=topk", "upload.share=0.1"],
    "fedadam by samples": ["algorithm=fedadam", "clients.weights=samples"],
    "scaffold": ["client=scaffold", "local.epochs=2"],
    "batchnorm": ["model.norm=batch", "data.min_samples=2"],
    "stale": ["participation=autonomous_current", "participation.delay=3"],
    "qsparse": ["upload=qsparse", "upload.share=0.2", "local.optimizer=adamw", "local.state=keep"],
}


@pytest.mark.parametrize("name", quick(EQUAL, "multistage", "batchnorm", "qsparse"))
def test_it_ends_with_the_bytes_of_the_simulation(name, tmp_path):
    words = EQUAL[name]
    here, post = simulated(tmp_path, *words), memory(tmp_path, *words)
    there = served(post, tmp_path, *words).folder
    assert model(there) == model(here)
    assert rows(there) == rows(here)
    assert here.name == there.name
    assert here.parent.name == there.parent.name  # the same run, by its identity
    assert len(post.trained()) == 9
    if any(word.startswith("upload=") for word in words):  # on the wire, not only in the count
        assert max(post.sizes) < 19_954 * 4 / 3


# With what they need besides; FedProx and MIFA, too
RULES = {
    "fedprox": [],
    "mifa": [],
    "fedcm": [],
    "mimelite": [],
    "per_fedavg": ["client.hessian=0.01", "local.epochs=3"],
    "fedavg_m": ["algorithm=fedavg"],
    "scaffold_m": ["algorithm=fedavg"],
    "feddyn": ["algorithm=fedavg"],
    "stem": ["algorithm=fedavg"],
}


@pytest.mark.slow
@pytest.mark.parametrize("rule", RULES)
def test_client_rules_of_nodes_are_those_of_the_simulation(rule, tmp_path):
    words = ["clients.count=3", "clients.per_round=2", f"client={rule}", *RULES[rule]]
    here, post = simulated(tmp_path, *words), memory(tmp_path, *words, clients=3)
    there = served(post, tmp_path, *words).folder
    assert model(there) == model(here)
    assert rows(there) == rows(here)


@pytest.mark.parametrize("client", quick(["plain", "scaffold"], "scaffold"))
def test_a_killed_server_continues_to_the_same_bytes(client, tmp_path):
    words = [f"client={client}"]
    here, post = simulated(tmp_path, *words), memory(tmp_path, *words)
    post.kill_at = 4  # in the third round, when nodes have trained and answered
    with pytest.raises(Killed):
        served(post, tmp_path, *words)
    again = memory(tmp_path, *words)
    there = served(again, tmp_path, *words).folder
    assert model(there) == model(here)
    assert rows(there) == rows(here)
    assert 0 < len(again.trained()) < 9


def test_nodes_that_come_late_and_messages_that_get_lost_change_nothing(tmp_path):
    here, post = simulated(tmp_path), memory(tmp_path, named=True)
    lost = {"times": 0}

    def once(parcel):
        lost["times"] += 1
        return Answer("", error="the node is gone", lost=True) if lost["times"] == 1 else parcel

    post.faults = dict.fromkeys(range(5), once)
    post.slow = {0: 3, 2: 7}
    there = served(post, tmp_path).folder
    assert model(there) == model(here)
    assert len(post.trained()) == 10
    assert ("query", 0) not in post.pushed  # its name says which client a node is


def nan(parcel):
    from safetensors.torch import load, save

    tensors = load(parcel)
    tensors["update"][3] = float("nan")
    return save(tensors)


def short(parcel):
    from safetensors.torch import load, save

    tensors = load(parcel)
    tensors["update"] = tensors["update"][:-1].clone()
    return save(tensors)


PICKLE = b"\x80\x04\x95\x0b\x00\x00\x00\x00\x00\x00\x00\x8c\x07builtins."
# What nodes 1 to 6 make of what they trained, and what is said of it
HOSTILE = [
    (nan, "its update is not finite"),
    (short, "update is torch.float32 of shape [19953], not torch.float32 of shape [19954]"),
    (lambda parcel: PICKLE, "it is not a message of fedgm"),
    (lambda parcel: bytes(2_000_000_000), "it has 2,000,000,000 bytes, at most"),
    (lambda parcel: b"", "it is not a message of fedgm"),
    (lambda parcel: Answer("", error="out of memory"), "out of memory"),
]


def test_what_a_node_should_not_send_is_named_and_ends_the_round_or_not(tmp_path):
    words = ["clients.count=7", "clients.per_round=7", "rounds=1"]
    post = memory(tmp_path, *words, clients=7)
    post.faults = {client: fault for client, (fault, _) in enumerate(HOSTILE, start=1)}
    with pytest.raises(FedGMError, match=r"round 1: 1 of 7 clients returned, 7 are needed") as error:
        served(post, tmp_path, *words)
    for client, (_, said) in enumerate(HOSTILE, start=1):
        assert f"client {client}: {said}" in str(error.value)
    with pytest.warns(UserWarning, match="round 1 goes on without client 1: "):
        result = served(post, tmp_path, *words, terms=Terms(0.5, poll=0.0, min_replies=1))
    assert result.status == "finished"
    assert [row["cohort/clients"] for row in rows(result.folder)] == [1]


def test_where_every_update_is_nan_the_run_has_diverged(tmp_path):
    post = memory(tmp_path)
    post.faults = dict.fromkeys(range(5), nan)
    result = served(post, tmp_path)
    assert result.status == "diverged"
    assert "became non-finite in round 1" in result.summary["reason"]


def test_who_is_missing_is_named(tmp_path):
    post = memory(tmp_path, "clients.per_round=5")
    del post.online[104]
    post.mute = {1}
    terms = Terms(wait=0.1, timeout=1.0, poll=0.01)
    with pytest.raises(FedGMError, match=r"3 of 5 clients returned") as error:
        served(post, tmp_path, "clients.per_round=5", terms=terms)
    assert "client 1: no answer after 1 s" in str(error.value)
    assert "client 4: its node is not online (waited 0.1 s)" in str(error.value)


def test_a_node_that_is_there_and_slow_to_say_who_it_is_is_not_missing(tmp_path):
    post = memory(tmp_path, "rounds=1")
    post.slow = dict.fromkeys(range(5), 20)
    assert served(post, tmp_path, "rounds=1", terms=Terms(wait=0.0, poll=0.0)).status == "finished"


def test_two_nodes_that_are_the_same_client_are_refused(tmp_path):
    post = memory(tmp_path)
    post.online[200] = 3
    with pytest.raises(FedGMError, match="two nodes are client 3"):
        served(post, tmp_path, terms=Terms(wait=0.5, poll=0.0, linger=-1.0))


def test_a_node_that_was_killed_looks_online_for_a_while_and_its_successor_gets_the_work(tmp_path):
    here, post = simulated(tmp_path), memory(tmp_path)
    post.online[200] = 3  # another id, as after a restart without a key
    post.dead = {103}
    there = served(post, tmp_path).folder
    assert model(there) == model(here)


def test_a_node_with_another_configuration_refuses(tmp_path):
    post = memory(tmp_path)
    post.words.append("local.lr=0.5")
    with pytest.raises(FedGMError, match=r"the server runs .*, but this node's configuration is"):
        served(post, tmp_path)


def test_a_node_with_data_of_its_own_is_checked_too(tmp_path):
    post = memory(tmp_path, "clients.per_round=5")
    post.own = {1: ("data.source.noise=0.4",), 2: ("local.lr=0.5",)}
    with pytest.raises(
        FedGMError, match=r"4 of 5 clients returned.* client 2: local\.lr=0\.5: words of a node"
    ):
        served(post, tmp_path, "clients.per_round=5")
    post.words.append("local.lr=0.5")
    post.own = dict.fromkeys(range(5), ("data.source.noise=0.4",))
    with pytest.raises(FedGMError, match=r"0 of 5 .*client 4: the server runs .*, but this node's conf"):
        served(post, tmp_path, "clients.per_round=5")


def test_a_node_with_another_model_is_named(tmp_path):
    post = memory(tmp_path, "clients.per_round=5")
    post.own[2] = ("data.source.classes=4",)
    with pytest.raises(
        FedGMError, match="client 2: the server's model has 19,954 parameters, that of this node"
    ):
        served(post, tmp_path, "clients.per_round=5")


def test_updates_measured_from_the_newest_model_cannot_be_compressed(tmp_path):
    words = ["participation=autonomous_current", "upload=topk"]
    with pytest.raises(RefusedError, match=r"participation.anchor=current"):
        served(memory(tmp_path, *words), tmp_path, *words)


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("sending=optimal", "sending=optimal: not in deployments: every update has been sent"),
        ("privacy=central", "privacy=central: not in deployments: nodes know the seed"),
        ("work=post_local", "work=post_local: not in deployments: nodes do the work of local"),
        ("client=ghbm", "client=GHBM: it needs models that a node has not got"),
        ("client=easgd", "client=EASGD: it needs models"),
        ("client=dc_asgd", "client=DCASGD: it needs models"),
        (
            "participation/sampler=power_of_choice",
            "participation/sampler=power_of_choice: not in deployments",
        ),
    ],
)
def test_what_deployments_do_not_have_is_refused(word, said, tmp_path):
    with pytest.raises(RefusedError) as error:
        served(memory(tmp_path), tmp_path, word)
    assert str(error.value).startswith(said)
