"""The real `wandb sweep` and `wandb agent` on copies of a sweep file, against a server on loopback."""

import json
import os
import re
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import yaml

from tests.e2e.commands import result, timeless
from tests.e2e.wandb_client import ROOT, logged_in, numbers, of_rounds, same_rows, start_wandb
from tests.e2e.wandb_stub import Stub, serving
from tests.e2e.wandb_sweep_stub import Sweep
from tests.waiting import PATIENCE, until

TINY = ("profile=tiny", "trainer.workers=1")


@dataclass
class Grid:
    """A small copy of sweeps/autonomous_fedgm_grid.yaml, whose nu is ``${algorithm.beta}``."""

    server: Stub
    env: dict[str, str]
    folder: Path
    agents: list[subprocess.Popen] = field(default_factory=list)

    @property
    def output_dir(self) -> Path:
        return self.folder / "o"

    @property
    def log(self) -> str:
        """What all programs have printed."""
        return (self.folder / "log").read_text()

    def create(self, etas: list[float], betas: list[float], rounds: list[int]) -> Sweep:
        """`wandb sweep FILE`; the copy differs from the file in its size alone."""
        config = yaml.safe_load((ROOT / "sweeps/autonomous_fedgm_grid.yaml").read_text())
        config["parameters"]["algorithm.eta"]["values"] = etas
        config["parameters"]["algorithm.beta"]["values"] = betas
        config["parameters"]["rounds"] = {"values": rounds}
        config["command"][-1:-1] = [*TINY, f"output_dir={self.output_dir}"]
        copy = self.folder / "grid.yaml"
        copy.write_text(yaml.safe_dump(config, sort_keys=False))
        creating = start_wandb(self.env, self.folder / "log", "sweep", str(copy))
        assert creating.wait(PATIENCE) == 0, self.log
        (sweep,) = self.server.sweeps.known.values()
        return sweep

    def start_agent(self, **env: str) -> subprocess.Popen:
        """The command that `wandb sweep` told the user to type."""
        told = re.search(r"Run sweep agent with: wandb agent (\S+)", self.log)
        assert told is not None, self.log
        agent = start_wandb({**self.env, **env}, self.folder / "log", "agent", told[1])
        self.agents.append(agent)
        return agent

    def rows(self, run: str) -> list[dict]:
        """metrics.jsonl of the point that the run has."""
        point = self.server.run(run)["config"]
        eta, beta = (f"{point[f'algorithm.{key}']['value']:g}" for key in ("eta", "beta"))
        words = f"*beta={beta},eta={eta},*rounds={point['rounds']['value']}-*"
        (path,) = self.output_dir.glob(f"*/{words}/seed=0/metrics.jsonl")
        return [json.loads(line) for line in path.read_text().splitlines()]

    def until(self, condition) -> None:
        until(condition, lambda: self.log)

    def rounds_recorded(self) -> int:
        return sum(len(p.read_text().splitlines()) for p in self.output_dir.glob("*/*/seed=*/metrics.jsonl"))

    def kill_runs(self) -> None:
        """kill -9 to the runs of this grid, each with all that it has started."""
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                words = path.read_bytes().decode().split("\0")
                if f"output_dir={self.output_dir}" in words:
                    os.killpg(int(path.parent.name), signal.SIGKILL)  # an agent's run leads its group
            except (FileNotFoundError, ProcessLookupError):
                continue

    def close(self) -> None:
        for agent in self.agents:
            agent.kill()
            agent.wait()
        self.kill_runs()


@pytest.fixture
def grid(tmp_path, stranger):
    with serving() as server:
        grid = Grid(server, logged_in(stranger, server.url, tmp_path), tmp_path)
        yield grid
        grid.close()


@pytest.mark.slow
def test_a_point_that_is_already_finished_is_sent_whole(grid, commands):
    words = ("+experiment=autonomous", *TINY, "rounds=2", "algorithm.eta=2", "algorithm.beta=0.7")
    done = commands.run(grid.output_dir, *words, "algorithm.nu=0.7", "track.mode=disabled")
    assert done.code == 0, done.text
    before = result(grid.output_dir)
    sweep = grid.create([2.0], [0.7], rounds=[2])
    assert grid.start_agent().wait(PATIENCE) == 0, grid.log
    assert "already done" in grid.log  # ${algorithm.beta} is 0.7: it was found
    (run,) = sweep.runs
    assert same_rows(grid.server.rows(run), grid.rows(run))
    assert result(grid.output_dir) == before
    sent = grid.server.run(run)
    assert (sent["sweep"], sent["exit"], sent["summary"]["status"]) == (sweep.name, 0, "finished")
    assert sent["config"]["resolved"]["value"]["algorithm"]["nu"] == 0.7


@pytest.mark.slow
def test_two_agents_share_a_grid_and_its_rows_arrive(grid):
    sweep = grid.create([1.0, 2.0], [0.7, 0.9], rounds=[3])
    for agent in [grid.start_agent(), grid.start_agent()]:
        assert agent.wait(PATIENCE) == 0, grid.log
    assert len(sweep.runs) == len(sweep.started) == 4
    assert {agent for agent, _ in sweep.started} == {"sweep0/1", "sweep0/2"}
    assert sorted(grid.server.runs) == sorted(sweep.runs)
    for run, point in sweep.runs.items():
        history, sent = grid.server.rows(run), grid.server.run(run)
        assert numbers(history) == [0, 1, 2, 3]
        assert same_rows(history, grid.rows(run))
        assert (sent["sweep"], sent["exit"]) == (sweep.name, 0)
        assert sent["config"]["algorithm"]["value"] == "fedgm"
        for row in history[1:-1]:  # the first is the untrained model, the last the picture
            assert row["server/eta"] == point["algorithm.eta"]
            assert row["server/beta"] == row["server/nu"] == point["algorithm.beta"]


@pytest.mark.slow
def test_killed_agents_lose_nothing(grid, commands, tmp_path):
    sweep = grid.create([1.0], [0.7, 0.9], rounds=[8])
    first = grid.start_agent()
    grid.until(lambda: grid.rounds_recorded() >= 2)
    first.kill()  # kill -9: its run goes on without it
    grid.until(lambda: grid.server.run("run0")["exit"] == 0)
    assert same_rows(grid.server.rows("run0"), grid.rows("run0"))

    second = grid.start_agent()
    grid.until(lambda: grid.rounds_recorded() >= 8 + 3)
    second.kill()
    grid.kill_runs()  # and now the run, too, as when a machine dies
    sweep.forget("run1")
    assert grid.start_agent().wait(PATIENCE) == 0, grid.log
    assert "continuing after round" in grid.log
    assert list(sweep.runs) == ["run0", "run2"]
    assert numbers(grid.server.rows("run2")) == list(range(9))
    assert same_rows(grid.server.rows("run2"), grid.rows("run2"))

    words = ("+experiment=autonomous", *TINY, "rounds=8", "algorithm.eta=1", "algorithm.beta=0.9")
    calm = commands.run(tmp_path / "calm", *words, "algorithm.nu=0.9", "track.mode=disabled")
    assert calm.code == 0, calm.text
    assert timeless(grid.rows("run2")) == result(tmp_path / "calm")[1]


@pytest.mark.slow
def test_a_run_that_early_terminate_stops_is_no_failure_of_the_agent(grid):
    sweep = grid.create([1.0], [0.7], rounds=[100_000, 2])  # the first cannot end before it is stopped
    agent = grid.start_agent(WANDB_AGENT_MAX_INITIAL_FAILURES="1")
    grid.until(lambda: grid.rounds_recorded() >= 2)
    sweep.hopeless.add("run0")
    assert agent.wait(PATIENCE) == 0, grid.log
    assert list(sweep.runs) == ["run0", "run1"]
    stopped, other = grid.server.run("run0"), grid.server.run("run1")
    assert (stopped["exit"], stopped["summary"]["status"]) == (0, "stopped")
    assert (other["exit"], other["summary"]["status"]) == (0, "finished")
    sent, own = of_rounds(grid.server.rows("run0")), grid.rows("run0")
    assert same_rows(sent[: 1 + len(own)], own)
    assert len(sent) - len(own) in (1, 2)  # the stop may come when a row is sent and not yet stored


@pytest.mark.slow
def test_a_sweep_without_server_sends_its_pictures_where_runs_go_online(tmp_path, stranger, commands):
    (tmp_path / "grid.yaml").write_text(
        "method: grid\nmetric: {name: test/loss, goal: minimize}\nparameters:\n"  # no two losses are equal
        "  algorithm.eta: {values: [0.5, 2.0]}\n  algorithm.beta: {values: [0.5, 0.9]}\n"
        'command: ["${program}", profile=tiny, rounds=2, "${args_no_hyphens}"]\n'
    )
    words = ("profile=tiny", "rounds=2", "algorithm=fedavg", "track.mode=disabled")
    assert commands.run(tmp_path / "o", *words).code == 0  # what the advantage map is drawn against
    with serving() as server:
        env = logged_in(stranger, server.url, tmp_path)
        command = [sys.executable, "-m", "fedgm", "sweep", str(tmp_path / "grid.yaml")]
        done = subprocess.run(
            [*command, "--output-dir", str(tmp_path / "o")],
            env=env, cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        assert "4 pictures sent to the W&B project fedgm" in done.stdout
        (name,) = (name for name in server.runs if name.startswith("sweep-"))
        (row,), sent = server.rows(name), server.run(name)["files"]
    drawn = {path.stem: path.read_bytes() for path in (tmp_path / "o" / "sweeps").glob("*/*/*.png")}
    assert set(drawn) == {"heatmap", "parallel", "importance", "advantage"}
    for stem, content in drawn.items():  # the row names the file, and the file has arrived whole
        assert row[stem]["format"] == "png"
        assert sent[row[stem]["path"]] == content
