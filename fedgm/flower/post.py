"""The post between server and nodes, without Flower's types: who is there, push, pull.

:class:`fedgm.flower.apps.FlowerPost` is the one over Flower's grid; tests have one in memory.
"""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, Protocol

from fedgm.clock import steady
from fedgm.errors import FedGMError

Kind = Literal["train", "query"]


class Answer(NamedTuple):
    """What came back for one message."""

    id: str  # of the message that it answers
    parcel: bytes = b""
    error: str = ""  # why there is no parcel
    lost: bool = False  # whether the same work may be asked for again: a node was killed, a message expired


class Post(Protocol):
    """Carries parcels; nothing in it waits."""

    def nodes(self) -> dict[int, str]:
        """Nodes that are online, and their names (empty: none was given)."""
        ...

    def push(self, node: int, kind: Kind, parcel: bytes, ttl: float) -> str:
        """Send; the message's id."""
        ...

    def pull(self, ids: Iterable[str]) -> list[Answer]:
        """What has come so far for these messages."""
        ...


@dataclass(frozen=True)
class Terms:
    """How long a server waits, and for how many."""

    wait: float = 60.0  # seconds until a node that is not online counts as missing
    timeout: float = 3600.0  # seconds until an answer that has not come counts as missing
    min_replies: int = 0  # answers without which a round ends the run; 0: all
    poll: float = 0.2  # seconds between two looks
    tries: int = 3  # of a piece of work that gets lost
    linger: float = 90.0  # seconds for which a node that was killed may still look online; Flower's are 60


@dataclass
class Directory:
    """Which client is on which node: by the number at the end of the node's name, else the node is asked."""

    post: Post
    terms: Terms
    count: int  # of the run's clients
    clients: dict[int, int] = field(default_factory=dict[int, int])  # node -> client
    refused: dict[int, str] = field(default_factory=dict[int, str])  # node -> why it is nobody
    _asked: dict[str, int] = field(default_factory=dict[str, int])  # message -> node
    _online: dict[int, int] = field(default_factory=dict[int, int])
    _nodes: dict[int, str] = field(default_factory=dict[int, str])
    _looked: float = -1.0
    _doubled: dict[int, float] = field(default_factory=dict[int, float])  # client -> since when on two nodes

    @property
    def asking(self) -> bool:
        """Whether a node that is there has not said yet who it is: on a busy machine that takes a minute."""
        return any(node in self._nodes for node in self._asked.values())

    def online(self) -> dict[int, int]:
        """Client -> node of those that are there; new nodes are asked, and count once they have answered."""
        now = steady()
        if now - self._looked < self.terms.poll:
            return self._online
        self._looked, self._nodes = now, self.post.nodes()
        nodes = self._nodes
        for answer in self.post.pull(list(self._asked)) if self._asked else ():
            self._heard(self._asked.pop(answer.id), answer)
        for node, name in nodes.items():
            if node in self.clients or node in self.refused or node in self._asked.values():
                continue
            if number := re.search(r"(\d+)$", name):
                self._take(node, int(number[1]))
            else:
                self._asked[self.post.push(node, "query", b"", self.terms.timeout)] = node
        there = [node for node in self.clients if node in nodes]
        self._online = {self.clients[node]: node for node in there}  # of two the one that came last
        counts = Counter(self.clients[node] for node in there)
        self._doubled = {client: self._doubled.get(client, now) for client, n in counts.items() if n > 1}
        for client, since in self._doubled.items():
            if now - since > self.terms.linger:
                raise FedGMError(
                    f"two nodes are client {client}. Give each node a partition-id of its own: "
                    "flower-supernode --node-config 'partition-id=0'"
                )
        return self._online

    def _heard(self, node: int, answer: Answer) -> None:
        text = answer.parcel.decode(errors="replace")
        if answer.error:
            if not answer.lost:
                self.refused[node] = answer.error
        elif text.isdecimal() and len(text) < 10:
            self._take(node, int(text))
        else:
            self.refused[node] = "it does not say which client it is"

    def _take(self, node: int, client: int) -> None:
        if client < self.count:
            self.clients[node] = client
        else:
            self.refused[node] = (
                f"it is client {client}, and clients.count={self.count} are 0 to {self.count - 1}"
            )
