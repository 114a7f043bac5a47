"""A post in memory: nodes of this process, which train for real when a message is pushed."""

from collections.abc import Callable, Sequence
from pathlib import Path

from fedgm.errors import FedGMError
from fedgm.flower.node import work
from fedgm.flower.post import Answer

WORDS = [
    "profile=tiny", "rounds=3", "clients.count=5", "clients.per_round=3", "local.epochs=1",
    "data.train_samples=100", "data.test_samples=50", "eval.train_samples=50", "track.mode=disabled",
]  # fmt: skip


class Killed(BaseException):
    """The end of a server that nobody catches."""


class MemoryPost:
    """Node 100 + i is client i. What it does is decided by the maps below, each by client."""

    def __init__(self, words: Sequence[str], state: Path, clients: int = 5, named: bool = False) -> None:
        self.words, self.state, self.named = list(words), state, named
        self.online = {100 + client: client for client in range(clients)}
        self.own: dict[int, tuple[str, ...]] = {}  # words of single nodes
        self.faults: dict[int, Callable[[bytes], bytes | Answer]] = {}  # instead of what it trained
        self.slow: dict[int, int] = {}  # looks until its answer is there
        self.mute: set[int] = set()  # never answers
        self.dead: set[int] = set()  # nodes that only look online: work for them gets lost
        self.kill_at: int | None = None  # the look at which the server dies
        self.kill_when: Callable[[], bool] = lambda: False  # or the first look at which this holds
        self.pushed: list[tuple[str, int]] = []  # kind and client
        self.sizes: list[int] = []  # bytes of what was trained
        self.looks = 0
        self._answers: dict[str, tuple[int, Answer]] = {}  # with the look from which on it is there

    def nodes(self):
        return {node: f"client-{client}" if self.named else "" for node, client in self.online.items()}

    def push(self, node, kind, parcel, ttl):
        client, name = self.online[node], f"message {len(self.pushed)}"
        self.pushed.append((kind, client))
        if client in self.mute and kind == "train":
            return name
        gone = Answer("", error="the node is gone", lost=True)
        work_is_lost = kind == "train" and node in self.dead
        answer = (gone if work_is_lost else self._answer(kind, client, parcel))._replace(id=name)
        self._answers[name] = self.looks + self.slow.get(client, 0), answer
        return name

    def pull(self, ids):
        self.looks += 1
        if self.looks == self.kill_at or self.kill_when():
            raise Killed
        there = [name for name in ids if name in self._answers and self._answers[name][0] <= self.looks]
        return [self._answers.pop(name)[1] for name in there]

    def replace(self, client):
        """Its node was killed and is back: another id, as after a restart without a key."""
        old = next(node for node, on_it in self.online.items() if on_it == client)
        del self.online[old]
        self.online[max(*self.online, old) + 100] = client

    def trained(self):
        """Clients that were asked to train, in order."""
        return [client for kind, client in self.pushed if kind == "train"]

    def _answer(self, kind, client, parcel):
        if kind == "query":
            return Answer("", str(client).encode())
        try:
            came = work(parcel, self.words, self.state / str(client), self.own.get(client, ()), client)
        except FedGMError as error:  # as a ClientApp that raises
            return Answer("", error=str(error))
        self.sizes.append(len(came))
        came = self.faults.get(client, bytes)(came)
        return came if isinstance(came, Answer) else Answer("", came)
