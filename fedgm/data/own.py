"""Measuring x_t on clients' own samples: does it serve all of them, or the average alone?"""

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np

from fedgm.data.clients import ClientData, Evaluation
from fedgm.draws import generator
from fedgm.errors import require, require_fits


@runtime_checkable
class HasOwnSamples(Protocol):
    """Client data that can be measured client by client."""

    def own_samples(self, client: int) -> Evaluation:
        """The client's training samples in a fixed order, never augmented."""
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
        group, own = self._places[number]
        return self._parts[group].batch(own)


def client_evaluation(data: ClientData, clients: int, seed: int) -> ClientEvaluation:
    """``clients`` of the clients, drawn once a run, so that a curve compares the same ones."""
    key, hint = "eval.clients", f"eval.clients={data.count}"
    require(clients <= data.count, key, clients, f"at most the {data.count} clients of the run", hint)
    allowed = "0: this data has no `own_samples(client)`"
    require_fits(isinstance(data, HasOwnSamples), key, str(clients), allowed, "eval.clients=0")
    assert isinstance(data, HasOwnSamples)
    chosen = np.sort(generator(seed, "eval-clients").choice(data.count, clients, replace=False))
    return ClientEvaluation([data.own_samples(int(client)) for client in chosen])
