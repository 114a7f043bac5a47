"""Commands that run beside the test, and what the tests compare of their results."""

import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

from tests.waiting import PATIENCE, until

TINY = ("profile=tiny", "track.mode=disabled", "trainer.workers=1")


class Commands:
    """Starts ``python run.py ARGUMENTS`` by forking a process that has everything imported."""

    def __init__(self) -> None:
        script = Path(__file__).with_name("warm_process.py")
        self._process = subprocess.Popen(
            [sys.executable, str(script)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._number = 0
        assert self._answer() == {"ready": True}

    def start(self, output_dir: Path, *arguments: str, odd: dict | None = None, **env: str) -> "Command":
        """Start it and return at once; ``odd``: what else its surroundings have (warm_process.py)."""
        self._number += 1
        output_dir.mkdir(parents=True, exist_ok=True)
        log = output_dir.parent / f"{output_dir.name}-{self._number}.log"
        words = [*arguments, f"output_dir={output_dir}"]
        pid = self.ask(arguments=words, out=str(log), env=env, odd=odd or {})["pid"]
        return Command(self, pid, log, output_dir)

    def run(self, output_dir: Path, *arguments: str, **env: str) -> "Command":
        """Start it and wait for its end."""
        command = self.start(output_dir, *arguments, **env)
        command.wait()
        return command

    def tool(self, output_dir: Path, *arguments: str, **env: str) -> "Command":
        """Start ``fedgm ARGUMENTS`` and return at once; they name ``output_dir`` themselves."""
        self._number += 1
        output_dir.mkdir(parents=True, exist_ok=True)
        log = output_dir.parent / f"{output_dir.name}-{self._number}.log"
        pid = self.ask(arguments=list(arguments), out=str(log), env=env, tool=True)["pid"]
        return Command(self, pid, log, output_dir)

    def ask(self, **request):
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        return self._answer()

    def _answer(self):
        assert self._process.stdout is not None
        return json.loads(self._process.stdout.readline())

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(PATIENCE)
        self._process.stdout.close()


@dataclass
class Command:
    """One started command."""

    starter: Commands
    pid: int
    log: Path
    output_dir: Path
    code: int | None = field(default=None)

    @property
    def text(self) -> str:
        """What it has printed so far, stdout and stderr together."""
        return self.log.read_text() if self.log.exists() else ""

    @property
    def words(self) -> str:
        """The same without line breaks."""
        return " ".join(self.text.split())

    def wait(self, timeout: float = PATIENCE) -> int:
        """Its exit code; a command that hangs is killed and fails the test."""
        self.code = self.starter.ask(wait=self.pid, timeout=timeout)["code"]
        if self.code is None:
            self.send(signal.SIGKILL)
            self.starter.ask(wait=self.pid, timeout=PATIENCE)
            raise AssertionError(f"no end after {timeout} s:\n{self.text}")
        return self.code

    def send(self, signum: signal.Signals) -> None:
        os.kill(self.pid, signum)

    def send_group(self, signum: signal.Signals) -> None:
        """To it and all its workers."""
        os.killpg(self.pid, signum)

    def kill(self) -> None:
        """kill -9."""
        self.send(signal.SIGKILL)
        assert self.wait() == -signal.SIGKILL, f"it ended before it was killed:\n{self.text}"

    def until(self, condition, step: float = 0.005) -> None:
        """Wait for something to be seen of it, which must not end before."""

        def is_seen() -> bool:
            alive = is_alive(self.pid)  # asked first: what it did last is still seen
            seen = bool(condition())
            assert seen or alive, f"it ended before:\n{self.text}"
            return seen

        until(is_seen, lambda: self.text, step)

    def until_row(self, number: int) -> None:
        """Wait until round ``number`` is recorded."""
        self.until(lambda: len(rows(self.output_dir)) >= number)

    def children(self) -> list[int]:
        """Processes that it has forked or started."""
        return [int(pid) for pid in Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()]


def run_folder(output_dir: Path) -> Path:
    """The one run below ``output_dir``."""
    (folder,) = output_dir.glob("*/*/seed=*")
    return folder


def read_summary(output_dir: Path) -> dict:
    return json.loads((run_folder(output_dir) / "summary.json").read_text())


def rows(output_dir: Path) -> list[dict]:
    """Whole rows of the one run, none where there is no run yet."""
    found = []
    for path in output_dir.glob("*/*/seed=*/metrics.jsonl"):
        found += [
            json.loads(line) for line in path.read_text().splitlines(keepends=True) if line.endswith("\n")
        ]
    return found


def newest_checkpoint(output_dir: Path) -> int:
    """The round of the newest checkpoint, 0 where there is none."""
    names = (run_folder(output_dir) / "checkpoints").glob("round-*.ckpt")
    return max((int(path.stem.removeprefix("round-")) for path in names), default=0)


def timeless(found: list[dict]) -> list[dict]:
    """Rows without what a clock says."""
    return [
        {k: v for k, v in row.items() if not k.startswith("time/") and k != "samples_per_s"} for row in found
    ]


def result(output_dir: Path) -> tuple[bytes, list[dict]]:
    """All that must be equal between two runs of one configuration."""
    return (run_folder(output_dir) / "model.safetensors").read_bytes(), timeless(rows(output_dir))


def is_alive(pid: int) -> bool:
    """Whether the process exists and is more than an entry that nobody has collected."""
    try:
        return state(pid) not in ("Z", "X")
    except (FileNotFoundError, ProcessLookupError):
        return False


def state(pid: int) -> str:
    """The letter of its state: T where it is halted."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
