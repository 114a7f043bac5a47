"""What the loop asks of federated data; images, text and a list of torch datasets all answer it."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import torch

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
        """What the data decides about a model, by parameter name: ``num_classes`` for images."""
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

    def evaluations(self) -> dict[str, Evaluation]:
        """What the global model is measured on, by split: ``test``, ``train``; may be empty."""
        ...


class Source(Protocol):
    """What ``data.source`` builds."""

    def federate(self, config: "RunConfig") -> ClientData:
        """The clients of a run."""
        ...


def bring(data: ClientData, device: "torch.device") -> None:
    """Data that can ``move`` to the device that clients train on, once; else every batch travels by itself.

    Not on a CPU, where everything is in place. Not tried on a GPU: none was at hand.
    """
    if device.type != "cpu" and (move := getattr(data, "move", None)):
        move(device)


def local_steps(data: ClientData, client: int, amount: int, unit: str) -> int:
    """K_i: local steps of a client that trains for ``amount`` epochs or steps."""
    return amount if unit == "steps" else amount * data.epoch(client)
