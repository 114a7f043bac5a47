"""kill -9 at random moments, to a run or one worker of two: the same command continues to the same bytes."""

import contextlib
import os
import random
import time
from pathlib import Path

from tests.e2e.commands import is_alive
from tests.fuzz.runs import MODES, FindingError, Runs, same_or_refused


def kill(runs: Runs, draw: random.Random, place: Path) -> str:
    """One to three, then the same command to its end."""
    mode = draw.choice(list(MODES))
    for _ in range(draw.choice((1, 2, 3))):
        command = runs.commands.start(place / "out", *MODES[mode])
        time.sleep(draw.uniform(0, 2.5))  # any moment will do, also one after its end
        command.send(9)
        command.wait()
    command = runs.run(place / "out", *MODES[mode])
    if same_or_refused(runs, command, mode, 0, f"{mode} after kills") != "good":
        raise FindingError(f"{mode}: code {command.code} after kills\n{command.text}")
    return "good"


def worker(runs: Runs, draw: random.Random, place: Path) -> str:
    """One worker of two is killed alone, at any moment from its fork on."""
    home = place / "out"
    command = runs.commands.start(home, *MODES["two workers"])
    forked = False
    while not forked and is_alive(command.pid):  # git has been asked before there is a summary
        forked = any(home.glob("*/*/seed=*/summary.json")) and bool(command.children())
    time.sleep(draw.choice((0.0, draw.uniform(0, 2))))
    for child in command.children()[:1]:
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, 9)
    runs.ended(command, "a killed worker")
    if command.code not in (0, 1):
        raise FindingError(f"code {command.code} after a killed worker\n{command.text[-3000:]}")
    if command.code == 1 and "worker 1 was killed" not in command.words:
        raise FindingError(f"a killed worker is not named\n{command.text[-3000:]}")
    again = runs.run(home, *MODES["two workers"])
    if same_or_refused(runs, again, "two workers", 0, "after a killed worker") != "good":
        raise FindingError(f"code {again.code} after a killed worker\n{again.text}")
    return f"good after code {command.code}"
