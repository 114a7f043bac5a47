"""Real SuperLink, real SuperNodes, on 127.0.0.1: the bytes of the simulation, whatever is killed."""

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import fedgm
from fedgm.flower.loopback import free_port, loopback, make_keys
from tests.flower.loopback_run import FEDGM, Deployment, model, until
from tests.flower.memory_post import WORDS

pytest.importorskip("flwr", reason="deployments need the extra `flower`, which has a venv of its own")
pytestmark = pytest.mark.deploy

EQUAL = {
    "fedavg": ["algorithm=fedavg"],
    "fedgm": [],
    "multistage": ["schedule=multistage", "schedule.etas=[2.0,1.0]"],
    "fedadam": ["algorithm=fedadam"],
    "scaffold": ["client=scaffold"],
    "batchnorm": ["model.norm=batch", "data.min_samples=2"],
}
TWO = ["rounds=2", "clients.count=3", "clients.per_round=2"]


def simulated(tmp_path, *words):
    return fedgm.run([*WORDS, *words, f"output_dir={tmp_path / 'simulated'}", "trainer.workers=1"]).folder


@pytest.fixture(scope="module")
def nodes(tmp_path_factory):
    """A SuperLink and three SuperNodes, with TLS and a registered key each."""
    with loopback(tmp_path_factory.mktemp("nodes"), nodes=3, tls=True) as deployment:
        deployment.start()
        yield deployment


@pytest.mark.parametrize("words", EQUAL.values(), ids=EQUAL)
def test_it_ends_with_the_bytes_of_the_simulation(words, nodes, tmp_path):
    words = [*TWO, *words]
    every = shlex.join([*WORDS, *words, f"output_dir={tmp_path / 'deployed'}"])
    said = []
    code = nodes.run({"words": every, "log": str(tmp_path / "log")}, said.append)
    assert code == 0, (said, nodes.log("run").read_text())
    (folder,) = (tmp_path / "deployed").glob("*/*/seed=0")
    assert model(folder) == model(simulated(tmp_path, *words))
    assert any("finished" in line for line in said)


def test_the_command_is_a_run_like_any_other(tmp_path):
    words = ["rounds=1", "clients.per_round=1"]
    deployment = Deployment(tmp_path / "deployed", *words)
    assert deployment.wait() == 0, deployment.text()
    assert model(deployment.folder()) == model(simulated(tmp_path, *words))
    listed = subprocess.run(
        [*FEDGM, "list", str(deployment.output)], capture_output=True, text=True, check=True
    )
    assert "finished" in listed.stdout
    again = Deployment(tmp_path / "deployed", *words)  # nothing is left to do
    assert again.wait() == 0
    assert "already done" in again.log.read_text()


def test_after_kills_the_same_command_continues_to_the_same_bytes(tmp_path):
    """Of a node between rounds, which comes back; of the ServerApp and of the SuperLink, which end it."""
    words = ["client=scaffold", "clients.count=2", "clients.per_round=2", "rounds=4"]
    output = tmp_path / "deployed"

    def deployed(least, *victims):
        """Start it, wait for so many rounds, kill, wait for one more, kill."""
        deployment = Deployment(output, *words, nodes=2)
        for number, victim in enumerate(victims, start=least):
            deployment.wait_for_rounds(number)
            deployment.kill(victim)
        return deployment

    first = deployed(1, "partition-id=1", "flwr-serverapp")
    assert first.wait() != 0
    assert "the ServerApp has ended before the run was done" in first.log.read_text()
    done = first.rows()
    assert done >= 2  # it went on without a restart when a node was killed
    second = deployed(done + 1, "flower-superlink")
    assert second.wait() != 0
    assert f"continuing after round {done}" in second.log.read_text()
    done = second.rows()
    third = deployed(0)
    assert third.wait() == 0, third.text()
    assert f"continuing after round {done}" in third.log.read_text()
    assert model(third.folder()) == model(simulated(tmp_path, *words))


HOW = {"Ctrl-C": signal.SIGINT, "kill": signal.SIGTERM, "kill -9": signal.SIGKILL}


@pytest.mark.parametrize("how", HOW.values(), ids=HOW)
def test_nothing_is_left_running(how, tmp_path):
    one = ["clients.count=1", "clients.per_round=1"]
    deployment = Deployment(tmp_path / "deployed", *one, nodes=1)
    until(lambda: deployment.pids("flwr-clientapp") or deployment.process.poll() is not None, deployment)
    os.kill(deployment.process.pid, how)
    assert deployment.wait() == (-how if how == signal.SIGKILL else 130)
    assert deployment.pids() == []


def test_what_nodes_should_not_send_is_named_and_the_round_goes_on(tmp_path):
    words = ["rounds=1", "clients.count=4", "clients.per_round=4", f"output_dir={tmp_path / 'deployed'}"]
    said = []
    with loopback(tmp_path / "home", nodes=4, tls=False) as nodes:
        source = "data.source._target_=tests.flower.broken_source."
        nodes.words |= {1: f"{source}nan", 2: "data.source.classes=4", 3: f"{source}unreadable"}
        nodes.start()
        settings = {"words": shlex.join([*WORDS, *words]), "log": str(tmp_path / "log"), "min-replies": 1}
        assert nodes.run(settings, said.append) == 0, (said, nodes.log("run").read_text())
    (line,) = [line for line in said if "round 1 goes on without" in line]
    assert "client 1: its update is not finite" in line
    assert "the server's model has 19,954 parameters" in line
    assert "client 2: " in line
    assert "no disk" in line
    (folder,) = (tmp_path / "deployed").glob("*/*/seed=0")
    (row,) = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    assert row["cohort/clients"] == 1


@pytest.fixture
def link(tmp_path):
    """A SuperLink with TLS and node keys, and keys of somebody else beside it."""
    with loopback(tmp_path / "home", nodes=1, tls=True) as deployment:
        deployment._link()
        make_keys(tmp_path, nodes=1)
        yield deployment


@pytest.mark.parametrize(
    ("ca", "key", "reason"),
    [
        ("home/keys/ca.crt", "keys/client-0", ""),  # an unregistered key
        ("keys/ca.crt", "home/keys/client-0", "certificate"),  # a SuperLink that it does not know
        (None, None, ""),  # plain HTTP
    ],
    ids=["unregistered", "wrong certificate", "plain HTTP"],
)
def test_nobody_gets_in_who_should_not(ca, key, reason, link, tmp_path):
    words = ["flower-supernode", "--superlink", f"127.0.0.1:{link.port}", "--host", "127.0.0.1"]
    words += ["--port", str(free_port()), "--max-retries", "1"]
    given = ["--root-certificates", tmp_path / str(ca), "--auth-supernode-private-key", tmp_path / str(key)]
    link._start("stranger", [*words, *(map(str, given) if ca else ["--insecure"])])
    while link.codes.get("stranger") is None:
        link._ask({"ask": True})
        time.sleep(0.1)
    said = link.log("stranger").read_text()
    assert link.codes["stranger"] != 0, said
    assert reason in said.lower()
    private = [path for path in (link.home / "keys").iterdir() if not path.suffix or path.suffix == ".key"]
    assert [path.name for path in private if path.stat().st_mode & 0o077] == []


LIVE = ["participation=live", "clients.count=4", "clients.per_round=2", "rounds=8", "eval.every=8"]


def test_alg_4_on_nodes_one_slow_one_killed_twice_is_replayed_to_the_same_bytes(tmp_path, record_property):
    words, output = [*WORDS, *LIVE], tmp_path / "deployed"
    script = [sys.executable, str(Path(__file__).with_name("live_deployment.py")), str(tmp_path / "home")]
    said = subprocess.run([*script, *words, f"output_dir={output}"], capture_output=True, text=True)
    assert said.returncode == 0, said.stdout + said.stderr
    (folder,) = output.glob("*/*/seed=0")
    stored = [json.loads(line) for line in (folder / "arrivals.jsonl").read_text().splitlines()]
    numbers = [number for row in stored for number in row["numbers"]]
    works = [(task[0], row["round"] - task[1]) for row in stored for task in row["tasks"]]
    assert len(numbers) == len(set(numbers)) == len(set(works)) == 16
    replay = ["participation=replay", f"participation.arrivals={folder}", "trainer.workers=1"]
    rest = [word for word in words if word != "participation=live"]
    again = fedgm.run([*rest, *replay, f"output_dir={tmp_path / 'replayed'}"]).folder
    assert model(again) == model(folder)
    ages = [task[1] for row in stored for task in row["tasks"]]
    record_property("counts", f"staleness {min(ages)} to {max(ages)}; {said.stdout.splitlines()[-1]}")
