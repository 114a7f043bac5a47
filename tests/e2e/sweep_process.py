"""`fedgm sweep` beside the test: how it starts, how it is killed, and what it leaves."""

import json
import os
import random
import re
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from fedgm.results import rows, summary
from tests.e2e.commands import is_alive, timeless
from tests.waiting import PATIENCE, until

PROGRAM = [sys.executable, "-m", "fedgm", "sweep"]
SMALL = (
    "profile=tiny, data.train_samples=200, data.test_samples=20, eval.train_samples=20, clients.count=10, "
    "clients.per_round=2, local.unit=steps, local.epochs=1, track.mode=disabled"
)


def sweep_file(
    folder: Path, etas: str, betas: str = "[0.5]", more: str = "", rounds: int = 12, words: str = ""
) -> Path:
    path = folder / "grid.yaml"
    path.write_text(
        "method: grid\nmetric: {name: test/acc, goal: maximize}\nparameters:\n"
        f"  algorithm.eta: {{values: {etas}}}\n  algorithm.beta: {{values: {betas}}}\n{more}"
        f'command: ["${{program}}", +experiment=fedgm, {SMALL}, rounds={rounds}{words}, '
        '"${args_no_hyphens}"]\n'
    )
    return path


def start(path: Path, output_dir: Path, *arguments: str) -> subprocess.Popen:
    command = [*PROGRAM, str(path), "--output-dir", str(output_dir), "--workers", "2", *arguments]
    # A pytest in the background ignores SIGINT, and its children would inherit that.
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, stdin=subprocess.DEVNULL,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )  # fmt: skip


def finish(process: subprocess.Popen, code: int = 0) -> str:
    text, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == code, text
    return text


def until_seen(condition, process: subprocess.Popen) -> None:
    """Wait for something to be seen of a sweep, which must not end before."""

    def is_seen():
        if process.poll() is not None:
            raise AssertionError(process.communicate()[0])
        return condition()

    until(is_seen)


def kill_all(process: subprocess.Popen) -> None:
    """kill -9 to the runner; returns when its server and its runs are gone, too."""
    family = descendants(process.pid)
    process.kill()
    process.communicate(timeout=PATIENCE)
    until(lambda: not any(is_alive(pid) for pid in family))


def descendants(pid: int) -> list[int]:
    """The server first, then its runs."""
    try:
        own = [int(p) for p in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except (FileNotFoundError, ProcessLookupError):
        return []
    return own + [grandchild for child in own for grandchild in descendants(child)]


def folders(output_dir: Path) -> list[Path]:
    """Of all runs that have begun to write."""
    return sorted(path.parent for path in output_dir.glob("*/*/seed=*/output.log"))


def outcome(output_dir: Path) -> dict[str, tuple[bytes, list]]:
    """Model and rows of every run, by folder."""
    found = {}
    for model in sorted(output_dir.glob("*/*/seed=*/model.safetensors")):
        own = timeless(rows.read(model.parent / "metrics.jsonl"))
        found[str(model.parent.relative_to(output_dir))] = (model.read_bytes(), own)
    return found


def rows_below(output_dir: Path) -> int:
    """Of all runs; what lies deeper, such as their checkpoints, may vanish at any moment."""
    return sum(len(rows.read(path)) for path in output_dir.glob("*/*/seed=*/metrics.jsonl"))


def begun(folder: Path) -> int:
    """How often the run has come through its first round."""
    return len(re.findall(r" round 1/", (folder / "output.log").read_text()))


def is_continued(folder: Path) -> bool:
    """Whether a later process went on from a checkpoint."""
    return "continuing after round" in (folder / "output.log").read_text()


def has_checkpoint(folder: Path) -> bool:
    """A run that ends deletes them, perhaps while they are listed."""
    with suppress(FileNotFoundError):
        return any((folder / "checkpoints").glob("round-*.ckpt"))
    return False


def is_open(folder: Path) -> bool:
    """Whether the run is neither done nor paused."""
    return summary.read(folder).get("status") not in summary.WELL


def note_lost(output_dir: Path, lost: dict[Path, int]) -> None:
    """After a kill: runs without a checkpoint must begin again, so what they have begun does not count."""
    for folder in folders(output_dir):
        if is_open(folder) and not has_checkpoint(folder):
            lost[folder] = begun(folder)


def run_of(pid: int, output_dir: Path) -> Path | None:
    """The folder that a run's process has locked."""
    for path in output_dir.glob("*/*/seed=*/lock"):
        try:
            if json.loads(path.read_text())["pid"] == pid:
                return path.parent
        except (OSError, ValueError):  # it ends, or begins, at this moment
            continue
    return None


def kill_a_run(process: subprocess.Popen, output_dir: Path, draw: random.Random) -> Path:
    """kill -9 to one run that has a checkpoint, and its folder; it is halted first, so that it cannot end."""
    while True:
        until_seen(lambda: _halfway(process, output_dir), process)
        found = _halfway(process, output_dir)
        if not found:  # it has ended meanwhile
            continue
        pid, folder = draw.choice(found)
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGSTOP)
            if (pid, folder) in _halfway(process, output_dir):
                os.kill(pid, signal.SIGKILL)
                return folder
            os.kill(pid, signal.SIGCONT)


def _halfway(process: subprocess.Popen, output_dir: Path) -> list[tuple[int, Path]]:
    """Open runs that have a checkpoint, by their processes."""
    found = [(pid, run_of(pid, output_dir)) for pid in descendants(process.pid)[1:]]
    return [(pid, folder) for pid, folder in found if folder and is_open(folder) and has_checkpoint(folder)]
