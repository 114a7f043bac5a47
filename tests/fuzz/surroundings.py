"""Odd surroundings: the run has the bytes of an undisturbed one, or says what it cannot work with."""

import random
from pathlib import Path

from tests.fuzz.readers import typed
from tests.fuzz.runs import MODES, FindingError, Runs, any_mode, refusal, same_or_refused

# What a shell, a cluster or a container may have set.
VARIABLES = (
    {"SLURM_NTASKS": "2", "SLURM_JOB_NAME": "bash"}, {"SLURM_NTASKS": "2"}, {"MPLBACKEND": "nonsense"},
    {"MPLBACKEND": "TkAgg"}, {"HOME": "/nonexistent"}, {"HOME": ""}, {"COLUMNS": "1"}, {"COLUMNS": "many"},
    {"TERM": "dumb"}, {"TERM": "nonsense"}, {"TMPDIR": "/nonexistent"}, {"OMP_NUM_THREADS": "0"},
    {"OMP_NUM_THREADS": "x"}, {"TZ": "Nowhere/Nothing"}, {"FEDGM_DATA": "/dev/null"}, {"PATH": ""},
    {"PYTHONHASHSEED": "7"}, {"LC_ALL": "C"}, {"LANG": "tr_TR.UTF-8"}, {"HYDRA_FULL_ERROR": "0"},
    {"RANK": "1", "WORLD_SIZE": "4", "LOCAL_RANK": "1"}, {"WANDB_MODE": "sideways"}, {"GIT_DIR": "/none"},
    {"CUDA_VISIBLE_DEVICES": "7"}, {"MASTER_PORT": "80"}, {"PYTHONWARNINGS": "error"}, {"NO_COLOR": "1"},
    {"FORCE_COLOR": "1"}, {"XDG_CACHE_HOME": "/dev/null"}, {"USER": "\u00fc"},
)  # fmt: skip
# What the process begins with; see tests/e2e/warm_process.py.
STATES = (
    {"cwd": "deleted"}, {"cwd": "unwritable"}, {"out": "/dev/full"}, {"out": "closed"}, {"encoding": "ascii"},
    {"encoding": "cp1252"}, {"umask": 0o777}, {"umask": 0o077}, {"limits": {"NOFILE": 64}},
    {"limits": {"FSIZE": 20_000}}, {"limits": {"STACK": 2**20}}, {"ignored": "SIGPIPE"},
    {"ignored": "SIGINT"},
)  # fmt: skip
PLACES = (
    "out (1)", "\u00fcber uns", "a,b", "a=b", "it's", "~", "$HOME", "{x}", "[1]", "a#b", "a b", "-m", "%d",
    "a:b", "\u65e5\u672c", 'say "so"', "a\\b", "$seed", "x" * 200, "a\tb", "!tag", "null", "1", "@", "*",
    "a;b",
)  # fmt: skip
READERS = (["list"], ["compare"], ["dashboard"])


def case(runs: Runs, draw: random.Random, place: Path) -> str:
    """A new or a paused run with one or two oddities, and what reads it."""
    mode, done = any_mode(draw)
    kind = draw.choice(("variables", "states", "place", "place", "both"))
    env = draw.choice(VARIABLES) if kind in ("variables", "both") else {}
    odd = draw.choice(STATES) if kind in ("states", "both") else {}
    home = place / (draw.choice(PLACES) if kind == "place" else "out")
    if draw.random() < 0.5:
        runs.copy(mode, done, home)
    what = f"{mode}: {env or ''} {odd or ''} {home.name}"
    command = runs.run(home, *MODES[mode], odd=odd, **env)
    if odd.get("out"):
        return nowhere_to_print(runs, command, mode, what)
    ended = same_or_refused(runs, command, mode, 0, what)
    if kind == "place" and ended != "good":
        raise FindingError(f"{what}: a folder that can be made is refused\n{command.text}")
    if kind == "place":
        for words in READERS:
            out = [] if words == ["list"] else ["--out", str(place / f"{words[0]}.html")]
            out = [word.replace("compare.html", "compare.png") for word in out]
            code, text = typed([*words, str(home), *out], what)
            if code:
                raise FindingError(f"{what}: fedgm {words[0]} refuses the folder\n{text}")
    return ended


def nowhere_to_print(runs: Runs, command, mode: str, what: str) -> str:
    """Its messages are lost; nothing else is, and the run folder is not blamed."""
    if command.code not in (0, 1, 2):
        raise FindingError(f"{what}: code {command.code}\n{command.text}")
    if command.code and str(command.output_dir) in command.text:
        raise FindingError(f"{what}: the run folder is blamed\n{command.text}")
    again = runs.run(command.output_dir, *MODES[mode])
    if same_or_refused(runs, again, mode, 0, f"{what}, then again") != "good":
        raise FindingError(f"{what}: {refusal(again, what)} afterwards\n{again.text}")
    return f"good after code {command.code}"
