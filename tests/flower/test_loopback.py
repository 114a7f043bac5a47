"""Real SuperLink, real SuperNodes, on 127.0.0.1: the bytes of the simulation, whatever is killed."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import fedgm
from tests.flower.loopback_run import FEDGM, Deployment, model, until
from tests.flower.memory_post import WORDS

pytest.importorskip("flwr", reason="deployments need the extra `flower`, which has a venv of its own")
pytestmark = pytest.mark.deploy

EQUAL = {
    "fedavg": ["algorithm=fedavg", "rounds=2"],
    "fedgm": ["rounds=2"],
    "multistage": ["schedule=multistage", "schedule.etas=[2.0,1.0]"],
    "fedadam": ["algorithm=fedadam", "rounds=2"],
    "scaffold": ["client=scaffold"],
    "batchnorm": ["model.norm=batch", "data.min_samples=2", "rounds=2"],
}


def simulated(tmp_path, *words):
    return fedgm.run([*WORDS, *words, f"output_dir={tmp_path / 'simulated'}", "trainer.workers=1"]).folder


@pytest.mark.parametrize("words", EQUAL.values(), ids=EQUAL)
def test_it_ends_with_the_bytes_of_the_simulation(words, tmp_path):
    deployment = Deployment(tmp_path / "deployed", *words)
    assert deployment.wait() == 0, deployment.text()
    assert model(deployment.folder()) == model(simulated(tmp_path, *words))
    assert "finished" in deployment.log.read_text()
    listed = subprocess.run(
        [*FEDGM, "list", str(deployment.output)], capture_output=True, text=True, check=True
    )
    assert "finished" in listed.stdout
    again = Deployment(tmp_path / "deployed", *words)  # nothing is left to do
    assert again.wait() == 0
    assert "already done" in again.log.read_text()


@pytest.mark.parametrize("victim", ["flwr-serverapp", "flower-superlink"])
def test_after_a_kill_the_same_command_continues_to_the_same_bytes(victim, tmp_path):
    words = ["client=scaffold"]
    deployment = Deployment(tmp_path / "deployed", *words)
    until(lambda: deployment.rows() >= 1 or deployment.process.poll() is not None, deployment)
    deployment.kill(victim)
    assert deployment.wait() != 0
    done = deployment.rows()
    again = Deployment(tmp_path / "deployed", *words)
    assert again.wait() == 0, again.text()
    assert f"continuing after round {done}" in again.log.read_text()
    assert model(again.folder()) == model(simulated(tmp_path, *words))


def test_a_killed_node_comes_back_and_nothing_changes(tmp_path):
    words = ["client=scaffold", "clients.per_round=5"]
    deployment = Deployment(tmp_path / "deployed", *words)
    until(lambda: deployment.rows() >= 1 or deployment.process.poll() is not None, deployment)
    deployment.kill("partition-id=2")
    assert deployment.wait() == 0, deployment.text()
    assert model(deployment.folder()) == model(simulated(tmp_path, *words))


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL], ids=["Ctrl-C", "kill -9"])
def test_nothing_is_left_running(how, tmp_path):
    deployment = Deployment(tmp_path / "deployed", nodes=5)
    until(lambda: len(deployment.pids("flower-supernode")) >= 5, deployment)
    os.kill(deployment.process.pid, how)
    assert deployment.wait() == (130 if how == signal.SIGINT else -9)
    assert deployment.pids() == []


def test_tls_and_keys(tmp_path):
    deployment = Deployment(tmp_path / "deployed", "rounds=1", options=("--tls",))
    assert deployment.wait() == 0, deployment.text()
    assert model(deployment.folder()) == model(simulated(tmp_path, "rounds=1"))
    (home,) = (tmp_path / "deployed" / ".deploy").iterdir()
    assert all(path.stat().st_mode & 0o077 == 0 for path in (home / "keys").iterdir() if not path.suffix)
    assert "register" in "".join(path.name for path in home.iterdir())


class TestRefusals:
    """A SuperLink with TLS and node keys lets nobody in who should not be."""

    @pytest.fixture
    def link(self, tmp_path):
        from fedgm.flower.loopback import loopback, make_keys

        with loopback(tmp_path / "home", nodes=1, tls=True) as deployment:
            deployment._link()
            make_keys(tmp_path, nodes=1)  # of somebody else
            yield deployment

    def node(self, link, tmp_path, name, *words):
        """Start a SuperNode with these words; how it ended, and what it said."""
        port = f"127.0.0.1:{link.port}"
        start = [
            "flower-supernode",
            "--superlink",
            port,
            "--host",
            "127.0.0.1",
            "--max-retries",
            "1",
            "--port",
            "0",
        ]
        link._start(name, [*start, *words])
        while link.codes.get(name) is None:
            link._ask({"ask": True})
        return link.codes[name], link.log(name).read_text()

    def test_an_unregistered_key(self, link, tmp_path):
        key, ca = tmp_path / "keys" / "client-0", link.home / "keys" / "ca.crt"
        code, said = self.node(
            link,
            tmp_path,
            "unknown",
            "--root-certificates",
            str(ca),
            "--auth-supernode-private-key",
            str(key),
        )
        assert code != 0, said

    def test_a_wrong_certificate(self, link, tmp_path):
        key, ca = link.home / "keys" / "client-0", tmp_path / "keys" / "ca.crt"
        code, said = self.node(
            link, tmp_path, "wrong", "--root-certificates", str(ca), "--auth-supernode-private-key", str(key)
        )
        assert code != 0, said
        assert "certificate" in said.lower()

    def test_plain_http(self, link, tmp_path):
        code, said = self.node(link, tmp_path, "plain", "--insecure")
        assert code != 0, said


def test_alg_4_on_nodes_one_slow_one_killed_twice_is_replayed_to_the_same_bytes(tmp_path, record_property):
    from fedgm.flower.loopback import loopback

    words = [
        *WORDS,
        "participation=live",
        "clients.count=4",
        "clients.per_round=2",
        "rounds=30",
        "eval.every=30",
    ]
    output = tmp_path / "deployed"
    script = Path(__file__).with_name("live_deployment.py")
    said = subprocess.run(
        [sys.executable, str(script), str(tmp_path / "home"), *words, f"output_dir={output}"],
        capture_output=True, text=True,
    )  # fmt: skip
    assert said.returncode == 0, said.stdout + said.stderr
    (folder,) = output.glob("*/*/seed=0")
    stored = [json.loads(line) for line in (folder / "arrivals.jsonl").read_text().splitlines()]
    numbers = [number for row in stored for number in row["numbers"]]
    assert len(numbers) == len(set(numbers)) == 60
    works = [(task[0], row["round"] - task[1]) for row in stored for task in row["tasks"]]
    assert len(set(works)) == 60
    assert {client for client, _ in works} == {0, 1, 2, 3}
    rest = [word for word in words if word != "participation=live"]
    replay = [
        "participation=replay",
        f"participation.arrivals={folder}",
        f"output_dir={tmp_path / 'replayed'}",
    ]
    assert model(fedgm.run([*rest, *replay, "trainer.workers=1"]).folder) == model(folder)
    ages = [task[1] for row in stored for task in row["tasks"]]
    record_property(
        "counts", f"60 arrivals, staleness {min(ages)} to {max(ages)}; {said.stdout.splitlines()[-1]}"
    )
    assert loopback is not None
