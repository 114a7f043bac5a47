"""What torchrun and srun start, on one machine: two groups of processes that meet on the loopback device."""

import os
import socket
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

import fedgm
from tests.e2e.commands import TINY, read_summary, result
from tests.waiting import PATIENCE

RUN = (
    "profile=tiny", "track.mode=disabled", "clients.count=6", "clients.per_round=3", "local.unit=steps",
    "local.epochs=2", "eval.every=5", "eval.train_samples=50", "data.train_samples=600",
    "data.test_samples=50",
)  # fmt: skip
ROOT = Path(__file__).parents[2]


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def torchrun(rank: int, port: int, per_node: int = 1) -> dict[str, str]:
    """What torchrun --nnodes=2 --nproc-per-node=PER_NODE gives to a process."""
    return {
        "TORCHELASTIC_RUN_ID": "none", "RANK": str(rank), "LOCAL_RANK": str(rank % per_node),
        "GROUP_RANK": str(rank // per_node), "WORLD_SIZE": str(2 * per_node),
        "LOCAL_WORLD_SIZE": str(per_node), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port),
        "GLOO_SOCKET_IFNAME": "lo",
    }  # fmt: skip


def srun(rank: int, port: int) -> dict[str, str]:
    """What srun --nodes=2 --ntasks-per-node=1 gives to a task."""
    return {
        "SLURM_NTASKS": "2", "SLURM_STEP_NUM_TASKS": "2", "SLURM_STEP_NUM_NODES": "2", "SLURM_NNODES": "2",
        "SLURM_NTASKS_PER_NODE": "1", "SLURM_PROCID": str(rank), "SLURM_LOCALID": "0",
        "SLURM_NODEID": str(rank), "SLURM_NODELIST": "127.0.0.1", "SLURM_JOB_NAME": "fedgm",
        "SLURM_JOB_ID": "7", "MASTER_PORT": str(port), "GLOO_SOCKET_IFNAME": "lo",
    }  # fmt: skip


def start(commands, home, environment, *words, ranks=2):
    port = free_port()
    return [commands.start(home, *RUN, *words, **environment(rank, port)) for rank in range(ranks)]


def assert_nothing_left(started):
    """Every command is a process group of its own: whatever it has started belongs to it."""
    for command in started:
        with pytest.raises(ProcessLookupError):
            os.killpg(command.pid, 0)


@pytest.mark.slow
@pytest.mark.parametrize("environment", [torchrun, srun])
def test_two_nodes_are_one_process_bit_for_bit_and_one_writes(commands, tmp_path, environment):
    first, second = start(commands, tmp_path / "out", environment, "rounds=3")
    assert (first.wait(), second.wait()) == (0, 0), first.text + second.text
    fedgm.run([*RUN, "trainer.workers=1", "rounds=3", f"output_dir={tmp_path / 'reference'}"])
    assert result(tmp_path / "out") == result(tmp_path / "reference")
    assert "workers 2" in first.words
    assert second.text == ""
    assert_nothing_left([first, second])
    again = start(commands, tmp_path / "out", environment, "rounds=3")
    assert [command.wait() for command in again] == [0, 0]
    assert "already done" in again[0].text


@pytest.mark.slow
@pytest.mark.parametrize("victim", [0, 1])
def test_a_killed_process_ends_the_other_and_the_run_continues(commands, tmp_path, victim):
    ranks = start(commands, tmp_path / "out", torchrun, "rounds=40")
    ranks[0].until_row(2)
    ranks[victim].kill()
    other = ranks[1 - victim]
    assert other.wait() == 1, other.text
    assert_nothing_left(ranks)
    assert "another process of this run has ended" in other.words
    assert "the same command continues" in other.words
    assert "Traceback" not in other.text
    status = read_summary(tmp_path / "out")["status"]
    assert status == ("running" if victim == 0 else "failed")  # the first one keeps the record
    ranks = start(commands, tmp_path / "out", torchrun, "rounds=40")
    assert [command.wait() for command in ranks] == [0, 0], ranks[0].text
    assert "continuing after round" in ranks[0].words
    assert_nothing_left(ranks)
    fedgm.run([*RUN, "trainer.workers=1", "rounds=40", f"output_dir={tmp_path / 'reference'}"])
    assert result(tmp_path / "out") == result(tmp_path / "reference")


@pytest.mark.slow
def test_two_processes_on_each_of_two_nodes_and_a_whole_node_is_lost(commands, tmp_path):
    """Four processes, three clients a round: one of them has nothing to do."""
    environment = partial(torchrun, per_node=2)
    ranks = start(commands, tmp_path / "out", environment, "rounds=30", ranks=4)
    ranks[0].until_row(2)
    for lost in ranks[2:]:
        lost.kill()
    assert [command.wait() for command in ranks[:2]] == [1, 1], ranks[0].text
    assert "another process of this run has ended" in ranks[0].words
    assert_nothing_left(ranks)
    ranks = start(commands, tmp_path / "out", environment, "rounds=30", ranks=4)
    assert [command.wait() for command in ranks] == [0] * 4, ranks[0].text
    assert "workers 4" in ranks[0].words
    assert [command.text for command in ranks[1:]] == [""] * 3
    assert_nothing_left(ranks)
    fedgm.run([*RUN, "trainer.workers=1", "rounds=30", f"output_dir={tmp_path / 'reference'}"])
    assert result(tmp_path / "out") == result(tmp_path / "reference")


@pytest.mark.slow
def test_what_cannot_be_is_refused_by_every_rank(commands, tmp_path):
    ranks = start(commands, tmp_path / "out", torchrun, "rounds=2", "trainer.workers=3")
    assert ranks[0].wait() == 2, ranks[0].text
    assert "torchrun or srun has started 2 processes" in ranks[0].words
    assert ranks[1].wait() != 0
    assert "the first one failed" in ranks[1].words


@pytest.mark.slow
def test_torchrun_itself_with_two_agents(tmp_path):
    port, out = free_port(), tmp_path / "out"
    agents = [
        subprocess.Popen(
            [
                sys.executable, "-m", "torch.distributed.run", "--nnodes=2", "--nproc-per-node=1",
                f"--node-rank={node}", "--rdzv-backend=static", "--master-addr=127.0.0.1",
                f"--master-port={port}", "run.py", *RUN, "rounds=3", f"output_dir={out}",
            ],
            cwd=ROOT, env={**os.environ, "GLOO_SOCKET_IFNAME": "lo"}, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for node in (0, 1)
    ]  # fmt: skip
    assert [agent.wait(timeout=PATIENCE) for agent in agents] == [0, 0]
    fedgm.run([*RUN, *TINY, "rounds=3", f"output_dir={tmp_path / 'reference'}"])
    assert result(out) == result(tmp_path / "reference")
