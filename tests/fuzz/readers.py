"""Whatever reads stored runs goes on, and shows nothing as finished that the run has not written.

All readers run in this process, one after the other, with limits on their time and their memory.
"""

import random
import resource
import signal
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
from click.testing import CliRunner

import fedgm
from fedgm.commands import main
from fedgm.errors import FedGMError
from fedgm.results.find import below, read_folder
from tests.e2e.commands import run_folder, timeless
from tests.e2e.odd_process import drop_rights, limit_memory, restore_rights
from tests.fuzz.damage import hurt
from tests.fuzz.runs import FindingError, Runs, any_mode
from tests.waiting import PATIENCE

MEMORY = 4 * 2**30  # bytes that readers may take besides what the process has
SHOWN = frozenset("\n\t")  # control characters that a command may print


def case(runs: Runs, draw: random.Random, place: Path) -> str:
    """One file of a run folder is damaged, and every reader reads it."""
    mode, done = any_mode(draw)
    folder = runs.copy(mode, done, place / "out")
    what = f"{mode}, done={done}: {hurt(draw, folder)}"
    read_all(place / "out", folder, runs.template(mode, done), what)
    return "read"


def read_all(home: Path, folder: Path, undamaged: Path, what: str) -> None:
    """Every reader of a run folder, once."""
    scratch = home.parent / "scratch"
    scratch.mkdir(exist_ok=True)
    for words in commands(home, folder, scratch):
        typed(words, what)
    require_true(home, [undamaged], what)
    with limited(what):
        before = fedgm.load_model(run_folder(undamaged)).state_dict() if is_done(undamaged) else {}
        try:
            model = fedgm.load_model(folder).state_dict()
        except FedGMError:
            return
    run = read_folder(folder)
    vouched = run is not None and run.is_sealed
    if before and vouched and not all(torch.equal(model[name], value) for name, value in before.items()):
        raise FindingError(f"{what}: load_model returns other weights")


def is_done(home: Path) -> bool:
    return (run_folder(home) / "model.safetensors").exists()


def commands(home: Path, folder: Path, scratch: Path) -> list[list[str]]:
    """What can be typed about a run folder, and about all that lie below a place."""
    return [
        ["list", str(home)],
        ["list", str(home), "--sort", "-seed", "--filter", "algorithm.eta>0"],
        ["show", str(folder)],
        ["compare", str(home), "--out", str(scratch / "compare.png")],
        ["dashboard", str(home), "--out", str(scratch / "page.html"), "--partition"],
        ["timeline", str(folder), "--out", str(scratch / "timeline.png")],
        ["theory", "--estimate", str(folder), "--clients", "1"],
    ]


def typed(words: list[str], what: str) -> tuple[int, str]:
    """``fedgm WORDS`` in this process: its code and what it printed; a message wherever it is not 0."""
    with limited(f"{what}: fedgm {' '.join(words)}"):
        done = CliRunner().invoke(main, words, env={"COLUMNS": "100"})
    text = f"fedgm {' '.join(words)}: code {done.exit_code}\n{done.output[-2000:]}"
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise FindingError(f"{what}: {text}\n{done.exception!r}") from done.exception
    if "Traceback" in done.output or done.exit_code not in (0, 1, 2):
        raise FindingError(f"{what}: {text}")
    if done.exit_code and not done.output.strip():
        raise FindingError(f"{what}: no message from {text}")
    if odd := {c for c in done.output if not c.isprintable() and c not in SHOWN and not c.isspace()}:
        raise FindingError(f"{what}: {odd} printed by {text}")
    return done.exit_code, done.output


def require_true(home: Path, undamaged: list[Path], what: str) -> None:
    """What is shown as finished is a run that was: its values, its configuration and its rows."""
    with limited(what):
        shown, frame = below(home), fedgm.load_runs(home)
        true = {run.seed: run for place in undamaged for run in below(place, all_rows=True)}
    for run in shown:
        if run.status != "finished" or not run.is_sealed:  # an older run is marked: nothing vouches for it
            continue
        right = true.get(run.seed)
        if right is None or (run.config, run.evaluations) != (right.config, right.evaluations):
            raise FindingError(f"{what}: a run with other values is finished")
        wrong = [key for key, value in right.facts.items() if run.facts.get(key) != value]
        if wrong:
            raise FindingError(f"{what}: a run is finished with other facts: {wrong}")
    if len(frame) and set(frame["status"]) == {"finished"} and all(run.is_sealed for run in shown):
        rows = [row for seed in dict.fromkeys(frame["seed"]) for row in true[seed].rows]
        columns = [key for key in timeless(rows[:1])[0] if key.startswith(("test/", "train/", "round"))]
        if frame[columns].to_dict("records") != [{key: row[key] for key in columns} for row in rows]:
            raise FindingError(f"{what}: load_runs shows other values as finished")


@contextmanager
def limited(what: str) -> Iterator[None]:
    """A reader that waits for a pipe, or fills the memory, is a finding; only a main thread can be ended."""
    before, rights = resource.getrlimit(resource.RLIMIT_AS), drop_rights()
    limit_memory(MEMORY)
    try:
        with warnings.catch_warnings(), alarmed(lambda: FindingError(f"{what}: does not end")):
            warnings.simplefilter("ignore")
            yield
    except (FedGMError, FindingError):
        raise
    except Exception as error:
        raise FindingError(f"{what}: died of {type(error).__name__}: {error}") from error
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)
        restore_rights(rights)


@contextmanager
def alarmed(error: Callable[[], Exception]) -> Iterator[None]:
    """Raise it where the block has not ended after a time that is long on any machine."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def late(signum, frame):
        raise error()

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(int(PATIENCE))
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
