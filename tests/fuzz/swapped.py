"""Files of one run in the folder of another: it ends as itself or is refused, never as a mixture."""

import random
import shutil
from pathlib import Path

from tests.e2e.commands import run_folder
from tests.fuzz.readers import require_true
from tests.fuzz.runs import MODES, Runs, any_mode, same_or_refused

OTHER = 1  # the seed of the other run


def case(runs: Runs, draw: random.Random, place: Path) -> str:
    """All files of the same mode with another seed, or some of them, take the place of the run's own."""
    mode, done = any_mode(draw)
    home, giver = place / "out", run_folder(runs.template(mode, draw.choice((done, done, not done)), OTHER))
    folder = runs.copy(mode, done, home)
    moved = move(draw, giver, folder)
    what = f"{mode}, done={done}: {', '.join(moved)} of seed {OTHER}"
    require_true(home, [runs.template(mode, done), runs.template(mode, True, OTHER)], what)
    return same_or_refused(runs, runs.run(home, *MODES[mode], "seed=0"), mode, 0, what)


def move(draw: random.Random, giver: Path, taker: Path) -> list[str]:
    """Copies what ``cp`` would: the whole folder, a folder in it, one file, or some files; says which."""
    files = sorted(path.relative_to(giver) for path in giver.rglob("*") if path.is_file())
    folders = sorted({path.parent for path in files} - {Path()})
    chosen = draw.choice(
        (
            files,
            [draw.choice(files)],
            draw.sample(files, draw.randint(1, len(files))),
            [file for file in files if file.parent == draw.choice(folders or [Path()])],
        )
    )
    if chosen == files and draw.random() < 0.5:  # cp -r to a place where nothing is
        shutil.rmtree(taker)
    for file in chosen:
        (taker / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(giver / file, taker / file)
    return ["all files"] if chosen == files else [str(file) for file in chosen]
