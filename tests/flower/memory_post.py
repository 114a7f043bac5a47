"""A post in memory: nodes of this process, which train for real when a message is pushed."""

from collections.abc import Callable
from pathlib import Path

from fedgm.flower.node import work
from fedgm.flower.post import Answer

Node = Callable[[str, bytes], Answer]  # of a kind and a parcel; the id is filled in


class MemoryPost:
    """Nodes 100, 101 ...: client i is on node 100 + i. ``faults`` replaces what a node answers."""

    def __init__(self, words, state: Path, clients: int, named: bool = False) -> None:
        self.words, self.state, self.named = words, state, named
        self.online = {100 + client: client for client in range(clients)}
        self.faults: dict[int, Callable[[bytes], Answer | bytes]] = {}  # by client
        self.answers: dict[str, Answer] = {}
        self.pushed: list[tuple[str, int]] = []  # kind and client
        self.sizes: list[int] = []  # bytes of what came back
        self.count = 0

    def nodes(self):
        return {node: f"client-{client}" if self.named else "" for node, client in self.online.items()}

    def push(self, node, kind, parcel, ttl):
        self.count += 1
        name, client = f"m{self.count}", self.online[node]
        self.pushed.append((kind, client))
        self.answers[name] = self._answer(kind, client, parcel)._replace(id=name)
        return name

    def _answer(self, kind, client, parcel):
        if kind == "query":
            return Answer("", str(client).encode())
        came = work(parcel, self.words, self.state / str(client))
        self.sizes.append(len(came))
        if client in self.faults:
            came = self.faults[client](came)
        return came if isinstance(came, Answer) else Answer("", came)

    def pull(self, ids):
        return [self.answers.pop(name) for name in list(ids) if name in self.answers]
