"""What the loop asks of federated data, and a list of torch datasets that answers it."""

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np

from fedgm.draws import generator
from fedgm.errors import require, require_fits

if TYPE_CHECKING:
    import torch
    from torch.utils.data import Dataset

    from fedgm.config import RunConfig


class Evaluation(Protocol):
    """Batches by number, in a fixed order, so that workers can share them out."""

    def __len__(self) -> int: ...

    def batch(self, number: int) -> Any:
        """Batch ``number``; the last one may be smaller."""
        ...


class ClientData(Protocol):
    """All clients: how many, how large, and their batches for a round."""

    @property
    def count(self) -> int:
        """Number of clients."""
        ...

    @property
    def facts(self) -> Mapping[str, Any]:
        """What the data decides about a model, by name: for images ``num_classes`` and ``resolution``."""
        ...

    def size(self, client: int) -> int:
        """Number of samples of one client; its weight where ``clients.weights=samples``."""
        ...

    def epoch(self, client: int) -> int:
        """Local steps of one pass over a client's samples."""
        ...

    def batches(self, client: int, t: int, steps: int) -> Iterator[Any]:
        """Exactly ``steps`` batches of a client in round ``t``, drawn from (seed, t, client) alone."""
        ...

    def evaluations(self) -> Mapping[str, Evaluation]:
        """What the global model is measured on, by split: ``test``, ``train``; may be empty."""
        ...


class Source(Protocol):
    """What ``data.source`` builds."""

    def federate(self, config: "RunConfig") -> ClientData:
        """The clients of a run."""
        ...


def bring(data: ClientData, device: "torch.device") -> None:
    """Data that can ``move`` to the device that clients train on, once; else every batch travels by itself.

    Not on a CPU, where everything is in place. Not tried on a GPU.
    """
    if device.type != "cpu" and (move := getattr(data, "move", None)):
        move(device)


def local_steps(data: ClientData, client: int, amount: int, unit: str) -> int:
    """K_i: local steps of a client that trains for ``amount`` epochs or steps."""
    return amount if unit == "steps" else amount * data.epoch(client)


class DatasetClients:
    """One map-style dataset a client, shuffled in every pass by (seed, round, client)."""

    def __init__(self, datasets: "Sequence[Dataset[Any]]", batch_size: int, seed: int) -> None:
        from torch.utils.data import DataLoader, IterableDataset

        loaders = any(isinstance(client, DataLoader) for client in datasets)
        allowed = "datasets, of which the loop makes the batches of each round by itself"
        require(not loaders, "clients", "DataLoaders", allowed, "[loader.dataset for loader in loaders]")
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
        """Nothing: the module is the user's, and is built already."""
        return {}

    def size(self, client: int) -> int:
        """Number of samples of one client."""
        return self.sizes[client]

    def epoch(self, client: int) -> int:
        """Local steps of one pass, the last partial batch counted."""
        return math.ceil(self.sizes[client] / self.batch_size)

    def batches(self, client: int, t: int, steps: int) -> Iterator[Any]:
        """Collated as a DataLoader would."""
        from torch.utils.data import default_collate

        for chosen in islice(self._shuffled(client, t), steps):
            yield default_collate([self.datasets[client][i] for i in chosen])

    def evaluations(self) -> dict[str, Evaluation]:
        """None: ``trainer.fit(module, val_dataloaders=...)`` says what x_t is measured on."""
        return {}

    def own_samples(self, client: int) -> Evaluation:
        """A client's samples in their order, for samplers that measure them."""
        return _InOrder(self.datasets[client], self.sizes[client], self.batch_size)

    def rebatched(self, batch_size: int) -> "DatasetClients":
        """The same clients in batches of another size."""
        return DatasetClients(self.datasets, batch_size, self.seed)

    def _shuffled(self, client: int, t: int) -> Iterator[list[int]]:
        rng = generator(self.seed, "shuffle", t, client)
        while True:
            order: list[int] = rng.permutation(self.sizes[client]).tolist()
            for start in range(0, len(order), self.batch_size):
                yield order[start : start + self.batch_size]


class _InOrder:
    """A dataset in batches, collated as a DataLoader would."""

    def __init__(self, dataset: "Dataset[Any]", size: int, batch_size: int) -> None:
        self.dataset, self.size, self.batch_size = dataset, size, batch_size

    def __len__(self) -> int:
        return math.ceil(self.size / self.batch_size)

    def batch(self, number: int) -> Any:
        """Batch ``number``; the last one may be smaller."""
        from torch.utils.data import default_collate

        first = number * self.batch_size
        return default_collate(
            [self.dataset[i] for i in range(first, min(first + self.batch_size, self.size))]
        )


def as_clients(clients: "ClientData | Sequence[Dataset[Any]]", batch_size: int, seed: int) -> ClientData:
    """What the loop reads: clients behind the protocol as they are, datasets wrapped."""
    if isinstance(clients, Sequence):
        return DatasetClients(clients, batch_size, seed)
    known = hasattr(clients, "batches") and hasattr(clients, "count")
    allowed = "a list of datasets, one for each client, or an object like fedgm.data.clients.ClientData"
    require(known, "clients", type(clients).__name__, allowed, "clients=[dataset_of_client_0, ...]")
    return clients


@runtime_checkable
class HasOwnSamples(Protocol):
    """Client data that can be measured client by client."""

    def own_samples(self, client: int) -> Evaluation:
        """The client's training samples in a fixed order, never augmented."""
        ...


@runtime_checkable
class HasHeldOut(Protocol):
    """Client data in which every client has samples of its own that it does not train on."""

    def held_out(self, client: int) -> Evaluation:
        """The client's held-out samples in a fixed order; empty where it has none."""
        ...


@runtime_checkable
class Rebatches(Protocol):
    """Client data whose batches may change their size during a run."""

    def rebatched(self, batch_size: int) -> ClientData:
        """The same clients in batches of another size; the original is left as it is."""
        ...


class ClientEvaluation:
    """The evaluations of several clients as one; ``groups`` says whose each batch is."""

    def __init__(self, parts: Sequence[Evaluation]) -> None:
        self._parts = parts
        self._places = [(group, number) for group, part in enumerate(parts) for number in range(len(part))]
        self.groups = [group for group, _ in self._places]

    def __len__(self) -> int:
        return len(self._places)

    def batch(self, number: int) -> Any:
        """Batch ``number`` of all; no batch holds samples of two clients."""
        group, number_there = self._places[number]
        return self._parts[group].batch(number_there)


def client_evaluation(data: ClientData, clients: int, seed: int) -> ClientEvaluation:
    """``clients`` of the clients on their training samples (``eval.clients``)."""
    allowed = "0: this data has no `own_samples(client)`"
    require_fits(isinstance(data, HasOwnSamples), "eval.clients", str(clients), allowed, "eval.clients=0")
    assert isinstance(data, HasOwnSamples)
    return ClientEvaluation(
        [data.own_samples(client) for client in _drawn(data, clients, seed, "eval.clients")]
    )


def held_out_evaluation(data: ClientData, clients: int, seed: int) -> ClientEvaluation:
    """``clients`` of the clients on their held-out samples (``eval.held_out``), if they have any."""
    key, allowed = "eval.held_out", "0: the clients of this data have no held-out samples of their own"
    hint = "eval.held_out=0, or data=hapt, chitchat, shakespeare or text"
    require_fits(isinstance(data, HasHeldOut), key, str(clients), allowed, hint)
    assert isinstance(data, HasHeldOut)
    return ClientEvaluation([data.held_out(client) for client in held_out_clients(data, clients, seed, key)])


def held_out_clients(data: ClientData, clients: int, seed: int, key: str) -> list[int]:
    """Which clients are measured: those of the drawn ones that have held-out samples."""
    assert isinstance(data, HasHeldOut)
    drawn = [client for client in _drawn(data, clients, seed, key) if len(data.held_out(client))]
    said = "none of these clients has held-out samples"
    require_fits(bool(drawn), key, str(clients), said, f"{key}={data.count}")
    return drawn


def _drawn(data: ClientData, clients: int, seed: int, key: str) -> list[int]:
    """Drawn once a run, so that a curve compares the same ones."""
    allowed, hint = f"at most the {data.count} clients of the run", f"{key}={data.count}"
    require(clients <= data.count, key, clients, allowed, hint)
    return np.sort(generator(seed, "eval-clients").choice(data.count, clients, replace=False)).tolist()
