"""A list of torch datasets as clients: all that ``fedgm.federate`` needs."""

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from torch.utils.data import Dataset, IterableDataset, default_collate

from fedgm.data.clients import ClientData, Evaluation
from fedgm.draws import generator
from fedgm.errors import require


class DatasetClients:
    """One map-style dataset a client, shuffled in every pass by (seed, round, client)."""

    def __init__(self, datasets: Sequence[Dataset[Any]], batch_size: int, seed: int) -> None:
        allowed = "a list of at least one dataset, each with a length above 0"
        sized = all(not isinstance(d, IterableDataset) and hasattr(d, "__len__") for d in datasets)
        sizes: list[int] = [len(d) for d in datasets] if sized else []  # pyright: ignore[reportArgumentType]
        require(
            bool(sizes) and min(sizes) > 0, "clients", sizes or "(no length)", allowed, "map-style datasets"
        )
        require(batch_size >= 1, "batch_size", batch_size, "at least 1", "batch_size=32")
        self.datasets, self.sizes, self.batch_size, self.seed = datasets, sizes, batch_size, seed

    @property
    def count(self) -> int:
        """Number of clients."""
        return len(self.datasets)

    @property
    def facts(self) -> Mapping[str, Any]:
        """The module is the user's own: it is told nothing."""
        return {}

    def size(self, client: int) -> int:
        """Number of samples of one client."""
        return self.sizes[client]

    def epoch(self, client: int) -> int:
        """Local steps of one pass, the last partial batch counted."""
        return math.ceil(self.sizes[client] / self.batch_size)

    def batches(self, client: int, t: int, steps: int) -> Iterator[Any]:
        """Collated as a DataLoader would."""
        for chosen in islice(self._shuffled(client, t), steps):
            yield default_collate([self.datasets[client][i] for i in chosen])

    def evaluations(self) -> dict[str, Evaluation]:
        """None: ``trainer.fit(module, val_dataloaders=...)`` says what x_t is measured on."""
        return {}

    def _shuffled(self, client: int, t: int) -> Iterator[list[int]]:
        rng = generator(self.seed, "shuffle", t, client)
        while True:
            order: list[int] = rng.permutation(self.sizes[client]).tolist()
            for start in range(0, len(order), self.batch_size):
                yield order[start : start + self.batch_size]


def as_clients(clients: "ClientData | Sequence[Dataset[Any]]", batch_size: int, seed: int) -> ClientData:
    """What the loop reads: clients behind the protocol as they are, datasets wrapped."""
    if isinstance(clients, Sequence):
        return DatasetClients(clients, batch_size, seed)
    return clients
