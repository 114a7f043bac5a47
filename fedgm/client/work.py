"""A client at work, as its rule sees it (:class:`fedgm.client.rules.Work`)."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from fedgm.client.local import Client
from fedgm.client.rules import State
from fedgm.client.weights import History


@dataclass
class AtWork:
    """One client in one round."""

    client: Client
    history: History
    one_pass: Callable[[], Iterable[Any]]  # batches that hold every sample of the client once
    notes: State = field(default_factory=dict[str, Tensor])

    def gradient_at(self, x: Tensor) -> Tensor:
        """Of the step's own batch at ``x``, with the same draws."""
        return self.client.gradient_at(x)

    def full_gradient(self) -> Tensor:
        """Over the client's samples, at the weights as they are."""
        return self.client.full_gradient(self.one_pass())

    def start_from(self, x: Tensor) -> None:
        """Train from ``x``."""
        weights = self.client.weights
        weights.write(weights.read()._replace(x=x))

    def model(self, age: int) -> Tensor | None:
        """The global model of ``age`` rounds ago."""
        return self.history[age].x if age < len(self.history) else None
