"""A worker that is killed, and Ctrl-C before anything has begun: a line each, no traceback."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import fedgm
from tests.e2e.commands import TINY, read_summary, result
from tests.waiting import PATIENCE, until

RUN = (*TINY, "rounds=20", "clients.count=6", "clients.per_round=3", "local.unit=steps", "local.epochs=1")
ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("workers", [2, pytest.param(3, marks=pytest.mark.slow)])
def test_a_killed_worker_is_named_and_the_run_continues(commands, tmp_path, workers):
    command = commands.start(tmp_path / "out", *RUN, f"trainer.workers={workers}")
    command.until_row(2)
    os.kill(min(command.children()), signal.SIGKILL)
    assert command.wait() == 1, command.text
    assert "error: worker 1 was killed (out of memory?); the same command continues\n" in command.text
    assert "gloo" not in command.text.lower()
    assert "Traceback" not in command.text
    assert "worker 1 was killed" in read_summary(tmp_path / "out")["reason"]
    if workers == 2:
        assert commands.run(tmp_path / "out", *RUN).code == 0
        fedgm.run([*RUN, f"output_dir={tmp_path / 'reference'}"])
        assert result(tmp_path / "out") == result(tmp_path / "reference")


@pytest.mark.slow
@pytest.mark.parametrize("workers", [2, 3])
def test_a_worker_killed_before_the_others_meet_it_is_not_waited_for(commands, tmp_path, workers):
    command = commands.start(tmp_path / "out", *RUN, "rounds=3", f"trainer.workers={workers}")
    command.until(lambda: any(tmp_path.glob("out/*/*/seed=*/summary.json")))  # git has been asked by then
    command.until(command.children, step=0)
    os.kill(min(command.children()), signal.SIGKILL)
    assert command.wait() == 1, command.text
    assert "error: worker 1 was killed (out of memory?); the same command continues\n" in command.text
    assert "Traceback" not in command.text
    assert commands.run(tmp_path / "out", *RUN, "rounds=3").code == 0


STARTS = {
    "run.py": ("run.py", *RUN),
    "fedgm run": ("-m", "fedgm", "run", *RUN),
    "fedgm theory": ("-m", "fedgm", "theory", *RUN),
}


@pytest.mark.parametrize(
    ("start", "library"),
    [
        ("run.py", "libtorch_cpu"),
        pytest.param("run.py", "_multiarray_umath", marks=pytest.mark.slow),
        pytest.param("run.py", "libtorch_python", marks=pytest.mark.slow),
        pytest.param("fedgm run", "libtorch_cpu", marks=pytest.mark.slow),
        pytest.param("fedgm theory", "libtorch_cpu", marks=pytest.mark.slow),
    ],
)
def test_ctrl_c_while_it_is_importing(tmp_path, start, library):
    command = [sys.executable, *STARTS[start], f"output_dir={tmp_path}"]
    process = subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )  # fmt: skip
    maps = Path(f"/proc/{process.pid}/maps")
    until(lambda: library in maps.read_text(), step=0.005)
    process.send_signal(signal.SIGINT)
    out, said = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert said == "stopped before the run began; the same command begins it\n"
    assert out == ""


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_before_the_command_is_known(tmp_path, signum):
    """While click is imported, the first of all; here an import that is interrupted and then goes on."""
    (tmp_path / "click.py").write_text(f"import os, time\nos.kill(os.getpid(), {signum:d})\ntime.sleep(60)\n")
    done = subprocess.run(
        [sys.executable, "-m", "fedgm", "list"], cwd=ROOT, env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True, text=True, timeout=PATIENCE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )  # fmt: skip
    assert done.returncode == 130
    assert done.stderr == "stopped before the run began; the same command begins it\n"


@pytest.mark.parametrize(
    ("rank", "code", "said"), [(None, 0, "stopped\n"), ("0", 0, "stopped\n"), ("1", -15, "")]
)
def test_sigterm_means_ctrl_c_once_imports_are_over(rank, code, said):
    """But for a worker that torchrun has started: it may wait where no exception reaches it."""
    script = (
        "import os, signal\nfrom fedgm.starting import quietly, ready\nquietly()\nready()\n"
        "try:\n    os.kill(os.getpid(), signal.SIGTERM)\n    signal.pause()\n"
        "except KeyboardInterrupt:\n    print('stopped')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE,
        env={**os.environ, **({"RANK": rank} if rank else {})},
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (code, said, "")
