"""Clocks that step, stand still, jump and run away: no byte of a result depends on them, no reader fails."""

import math
import random
import time
from contextlib import nullcontext
from pathlib import Path
from unittest.mock import patch

from tests.clocks.sitecustomize import unreliable
from tests.fuzz.readers import commands, typed
from tests.fuzz.runs import MODES, FindingError, Runs, any_mode, same_or_refused

STEPS = (0.0, 0.004, 0.02, 1.0, math.inf)
BACK = (0.0, 0.0, 0.05, 0.3, 2.0)
AHEAD = (0.0, 0.0, 86400.0, -86400.0, 4e9, -1.7e9)  # seconds that time.time is wrong by


def case(runs: Runs, draw: random.Random, place: Path) -> str:
    """A run, new or paused, under a clock, and every reader under another."""
    mode, done = any_mode(draw)
    home = place / "out"
    if draw.random() < 0.6:
        runs.copy(mode, done, home)
    clock = draw.choice(STEPS), draw.choice(BACK), draw.choice(AHEAD)
    what = f"{mode}, done={done}: clock {clock}"
    command = runs.run(home, *MODES[mode], odd={"clock": [str(number) for number in clock]})
    ended = same_or_refused(runs, command, mode, 0, what)
    if ended != "good":
        raise FindingError(f"{what}: a clock refuses a run\n{command.text}")
    other = draw.choice(STEPS), draw.choice(BACK), draw.choice(AHEAD)
    (folder,) = home.glob("*/*/seed=*")
    (place / "scratch").mkdir()
    for words in draw.sample(commands(home, folder, place / "scratch"), 3):
        with clocked(*other):
            code, text = typed(words, f"{what}, read under {other}")
        if code and typed(words, what)[0] == 0:
            raise FindingError(f"{what}: refused under {other}: {text}")
    return ended


def clocked(step: float, back: float, ahead: float):
    """The clocks of this process."""
    clocks = unreliable(step, back, ahead)
    return patch.multiple(time, **clocks) if clocks else nullcontext()
