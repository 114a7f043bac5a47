"""Deployments on 127.0.0.1 as separate processes, and which processes belong to them."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from tests.e2e.commands import is_alive
from tests.flower.memory_post import WORDS

PATIENCE = 1800.0  # seconds for a whole deployment; an idle machine needs a thirtieth of it
FEDGM = [sys.executable, "-m", "fedgm"]


class Deployment:
    """``fedgm deploy local`` in a process of its own."""

    def __init__(self, output: Path, *words: str, nodes: int = 5, options: tuple[str, ...] = ()) -> None:
        self.output, self.log = output, output.with_suffix(".log")
        output.mkdir(parents=True, exist_ok=True)
        every = [*WORDS, *words, f"output_dir={output}"]
        command = [*FEDGM, "deploy", "local", "--nodes", str(nodes), *options, *every]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                command, stdout=log, stderr=log, start_new_session=True,
                preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # ignored in the background
            )  # fmt: skip

    def wait(self) -> int:
        """Its exit code; all that it started has ended."""
        try:
            code = self.process.wait(PATIENCE)
        finally:
            if self.process.poll() is None:
                self.process.kill()
        until(lambda: not self.pids(), self)
        return code

    def pids(self, name: str = "") -> list[int]:
        """Processes of this deployment, whatever session they are in, told by their FLWR_HOME."""
        mark, found = f"FLWR_HOME={self.output}/".encode(), []
        for entry in Path("/proc").glob("[0-9]*"):
            try:
                words = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                mine = mark in (entry / "environ").read_bytes()
            except OSError:
                continue
            if mine and name in words and is_alive(int(entry.name)):
                found.append(int(entry.name))
        return found

    def kill(self, name: str) -> None:
        """kill -9 of the processes with that name, which must be there."""
        found = self.pids(name)
        assert found, f"no {name} is running:\n{self.text()}"
        for pid in found:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue

    def rows(self) -> int:
        """Rounds that are recorded."""
        return sum(path.read_text().count("\n") for path in self.output.glob("*/*/seed=*/metrics.jsonl"))

    def wait_for_rounds(self, least: int) -> None:
        """Until so many are recorded, or it has ended."""
        until(lambda: self.rows() >= least or self.process.poll() is not None, self)

    def folder(self) -> Path:
        """Of the one run."""
        (folder,) = self.output.glob("*/*/seed=*")
        return folder

    def text(self) -> str:
        """What it has printed, and the ends of Flower's logs."""
        logs = sorted(self.output.glob(".deploy/*/*.log"))
        tails = [f"--- {path.name}\n{path.read_text(errors='replace')[-2000:]}" for path in logs]
        return "\n".join([self.log.read_text(), *tails])


def until(condition, deployment: Deployment) -> None:
    """Wait for what is needed, never for a time; a deployment that ends before it fails the test."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, f"waited in vain:\n{deployment.text()}"
        time.sleep(0.1)


def model(folder: Path) -> bytes:
    """What must be equal."""
    return (folder / "model.safetensors").read_bytes()
