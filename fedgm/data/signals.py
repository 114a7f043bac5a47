"""Signals of sensors as clients: windows of several channels, each owned by a person or a device."""

import math
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fedgm.data.images import Batch
from fedgm.draws import generator
from fedgm.errors import UnfitDataError, require

if TYPE_CHECKING:
    from fedgm.config import RunConfig


class Owned(NamedTuple):
    """Samples one owner after the other: client i has those from ``offsets[i]`` to ``offsets[i + 1]``."""

    values: NDArray[np.float32]  # (samples, channels, time)
    labels: NDArray[np.int64]
    offsets: NDArray[np.int64]

    def of(self, client: int) -> slice:
        """Where a client's samples are."""
        return slice(int(self.offsets[client]), int(self.offsets[client + 1]))


@dataclass(frozen=True)
class SignalSet:
    """The same owners in ``train`` and ``test``, in the order of ``names``."""

    classes: tuple[str, ...]
    names: tuple[str, ...]
    train: Owned
    test: Owned


def joined(parts: Sequence[Owned]) -> Owned:
    """Several sets of owners as one."""
    sizes = [size for part in parts for size in np.diff(part.offsets)]
    return Owned(
        np.concatenate([part.values for part in parts]),
        np.concatenate([part.labels for part in parts]),
        np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
    )


def chosen_owners(signals: SignalSet, clients: int, seed: int) -> SignalSet:
    """``clients`` of the owners, drawn without replacement, in their old order."""
    count = len(signals.names)
    require(1 <= clients <= count, "clients.count", clients, f"1..{count}", f"clients.count={count}")
    if clients == count:
        return signals
    kept = np.sort(generator(seed, "signal-clients").choice(count, clients, replace=False))
    names = tuple(signals.names[client] for client in kept)
    train, test = (
        joined([_alone(part, int(client)) for client in kept]) for part in (signals.train, signals.test)
    )
    return SignalSet(signals.classes, names, train, test)


def _alone(part: Owned, client: int) -> Owned:
    own = part.of(client)
    return Owned(part.values[own], part.labels[own], np.array([0, own.stop - own.start], np.int64))


class SignalFederation:
    """Clients over shared arrays; batches are reshuffled in every pass by (seed, round, client)."""

    def __init__(
        self,
        signals: SignalSet,
        *,
        batch_size: int,
        eval_batch_size: int = 100,
        seed: int = 0,
        subset_seed: int = 0,
        train_samples: int | None = None,
        test_samples: int | None = None,
    ) -> None:
        require(batch_size >= 1, "local.batch_size", batch_size, "at least 1", "local.batch_size=20")
        sizes = zip(signals.names, np.diff(signals.train.offsets), strict=True)
        if empty := [name for name, size in sizes if size == 0]:
            some = f"{len(empty)} of {len(signals.names)} clients"
            raise UnfitDataError(
                f"{some} have no windows to train on, like {empty[0]}. Try a smaller data.source.test_share"
            )
        self.signals, self.seed = signals, seed
        self.batch_size, self.eval_batch_size = batch_size, eval_batch_size
        self._train, self._test = (_Part(part) for part in (signals.train, signals.test))
        self._measured = {
            "test": self._test.some(test_samples, subset_seed, "subset-test"),
            "train": self._train.some(train_samples, subset_seed, "eval-train"),
        }

    @property
    def count(self) -> int:
        """Number of clients."""
        return len(self.signals.names)

    @property
    def facts(self) -> Mapping[str, Any]:
        """What the data decide about a model."""
        return {"num_classes": len(self.signals.classes), "channels": self.signals.train.values.shape[1]}

    def size(self, client: int) -> int:
        """Number of windows of one client."""
        own = self.signals.train.of(client)
        return own.stop - own.start

    def epoch(self, client: int) -> int:
        """Local steps of one pass, the last partial batch counted."""
        return math.ceil(self.size(client) / self.batch_size)

    def labels(self, client: int) -> NDArray[np.int64]:
        """The classes of a client's windows."""
        return self.signals.train.labels[self.signals.train.of(client)]

    def batches(self, client: int, t: int, steps: int) -> Iterator[Batch]:
        """Exactly ``steps`` batches of a client in round ``t``."""
        first = self.signals.train.of(client).start
        for places in islice(self._shuffled(client, t), steps):
            yield self._train.batch(first + torch.from_numpy(places))

    def rebatched(self, batch_size: int) -> "SignalFederation":
        """The same clients in batches of another size."""
        other = copy(self)
        other.batch_size = batch_size
        return other

    def move(self, device: torch.device) -> None:
        """The windows to where clients train."""
        self._train.move(device)
        self._test.move(device)

    def evaluations(self) -> dict[str, "SignalEvaluation"]:
        """The held-out windows of all clients together, and a fixed part of their training windows."""
        parts = {"test": self._test, "train": self._train}
        return {
            split: SignalEvaluation(part, self._measured[split], self.eval_batch_size)
            for split, part in parts.items()
        }

    def own_samples(self, client: int) -> "SignalEvaluation":
        """A client's training windows, for ``eval.clients``."""
        return self._of(self._train, self.signals.train.of(client))

    def held_out(self, client: int) -> "SignalEvaluation":
        """A client's held-out windows, for ``eval.held_out``."""
        return self._of(self._test, self.signals.test.of(client))

    def _of(self, part: "_Part", own: slice) -> "SignalEvaluation":
        return SignalEvaluation(part, torch.arange(own.start, own.stop), self.eval_batch_size)

    def _shuffled(self, client: int, t: int) -> Iterator[NDArray[np.int64]]:
        rng = generator(self.seed, "shuffle", t, client)
        while True:
            order = rng.permutation(self.size(client))
            for start in range(0, len(order), self.batch_size):
                yield order[start : start + self.batch_size]


def from_run(signals: SignalSet, config: "RunConfig") -> SignalFederation:
    """The federation of a run, with its batch sizes and its fixed samples for evaluation."""
    return SignalFederation(
        signals,
        batch_size=config.local.batch_size,
        eval_batch_size=config.eval.batch_size,
        seed=config.seed,
        subset_seed=config.data.seed,
        train_samples=config.eval.train_samples,
        test_samples=config.data.test_samples,
    )


class _Part:
    """One split as tensors."""

    def __init__(self, owned: Owned) -> None:
        self.values, self.labels = torch.from_numpy(owned.values), torch.from_numpy(owned.labels)

    def move(self, device: torch.device) -> None:
        self.values, self.labels = self.values.to(device), self.labels.to(device)

    def batch(self, places: Tensor) -> Batch:
        places = places.to(self.labels.device)
        return self.values.index_select(0, places), self.labels.index_select(0, places)

    def some(self, keep: int | None, seed: int, purpose: str) -> Tensor:
        """Places of ``keep`` samples, drawn once a run; of all for None or more than there are."""
        count = len(self.labels)
        if keep is None or keep >= count:
            return torch.arange(count)
        return torch.from_numpy(np.sort(generator(seed, purpose).choice(count, keep, replace=False)))


class SignalEvaluation:
    """Batches by number, the same in every evaluation."""

    def __init__(self, part: _Part, places: Tensor, batch_size: int) -> None:
        self._part, self._places, self._batch_size = part, places, batch_size

    def __len__(self) -> int:
        return math.ceil(len(self._places) / self._batch_size)

    def batch(self, number: int) -> Batch:
        """Batch ``number``; the last one may be smaller."""
        return self._part.batch(self._places[number * self._batch_size : (number + 1) * self._batch_size])
