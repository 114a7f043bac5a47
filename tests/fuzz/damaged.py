"""Random damage to a paused or a finished run, then its own command again."""

import random
from pathlib import Path

from tests.fuzz.damage import hurt
from tests.fuzz.readers import require_true
from tests.fuzz.runs import MODES, PAUSE, FindingError, Runs, any_mode, good, refusal, same_or_refused


def case(runs: Runs, draw: random.Random, place: Path) -> str:
    """Its command ends with the bytes of the undisturbed run, or as a refusal that ``rerun=true`` answers."""
    mode, done = any_mode(draw)
    home = place / "out"
    folder = runs.copy(mode, done, home)
    what = f"{mode}, done={done}: {[hurt(draw, folder) for _ in range(draw.choice((1, 1, 2)))]}"
    require_true(home, [runs.template(mode, done)], what)
    if not done and draw.random() < 0.3:
        pause_again(runs, home, mode, what)
    ended = same_or_refused(runs, runs.run(home, *MODES[mode]), mode, 0, what)
    if ended != "good" and draw.random() < 0.3:
        command = runs.run(home, *MODES[mode], "rerun=true")
        if same_or_refused(runs, command, mode, 0, f"{what}, rerun=true") != "good":
            raise FindingError(f"{what}: rerun=true fails\n{command.text}")
    return ended


def pause_again(runs: Runs, home: Path, mode: str, what: str) -> None:
    """The command of a paused run once more, with the same ``stop_after``: its rows, or a refusal."""
    command = runs.run(home, *MODES[mode], f"stop_after={PAUSE}")
    if command.code != 0:
        refusal(command, f"{what}, stop_after again")
    elif good(command)[1] != runs.reference(mode)[1][:PAUSE]:
        raise FindingError(f"{what}: other rows after the same pause\n{command.text}")
