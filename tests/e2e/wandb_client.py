"""The real W&B programs beside the test: whose they are, how they start, what must have arrived."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
KEY = "f" * 40


def surroundings(stranger: dict[str, str]) -> dict[str, str]:
    """The environment of a program that somebody without an account starts."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("WANDB_")}
    return {**kept, **{k: v for k, v in stranger.items() if v}}


def logged_in(stranger: dict[str, str], url: str, folder: Path) -> dict[str, str]:
    """The same with a key for the server at ``url``, and the venv's ``python`` first in PATH."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    env = {**surroundings(stranger), "WANDB_BASE_URL": url, "WANDB_API_KEY": KEY}
    return {**env, "PATH": path, "WANDB_DIR": str(folder)}


def start_wandb(env: dict[str, str], log: Path, *words: str) -> subprocess.Popen:
    """``wandb WORDS`` in the checkout, as the sweep files say; what it prints goes to ``log``."""
    program = Path(sys.executable).with_name("wandb")
    with log.open("ab") as out:
        return subprocess.Popen(
            [str(program), *words], env=env, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=out,
            stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip


def of_rounds(history: list[dict]) -> list[dict]:
    """Rows without that of the picture, whose parts have keys of their own in an offline record."""
    return [row for row in history if not any(key.startswith("curves") for key in row)]


def numbers(history: list[dict]) -> list[int]:
    """Rounds in the order of their rows."""
    return [row["round"] for row in of_rounds(history)]


def same_rows(history: list[dict], own: list[dict]) -> bool:
    """Whether W&B has every value of metrics.jsonl, once and in order, behind the untrained model."""
    if numbers(history)[:1] != [0]:
        return False
    history = of_rounds(history)[1:]
    known = [{k: v for k, v in row.items() if v is not None} for row in own]
    return [{k: row.get(k) for k in wanted} for row, wanted in zip(history, known, strict=True)] == known
