"""What a client may do besides plain SGD: change its gradients, keep a state, send a second vector."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from torch import Tensor

State = dict[str, Tensor]
Adjust = Callable[[list[Tensor]], None]  # changes .grad of the parameters, between backward and step


class Local(NamedTuple):
    """What a rule knows when a client starts."""

    x: Tensor  # the flat model it starts from
    own: State  # what this client kept from the last time it took part; empty at first
    shared: State  # what the server kept for the rule when that model was the newest; empty before round 1
    lr: float  # eta_l
    split: Callable[[Tensor], list[Tensor]]  # a flat vector as views shaped like the parameters
    client: int  # who it is, from 0
    round: int  # t, from 1


class Returned(NamedTuple):
    """What a client keeps, and what it sends besides its delta."""

    own: State
    message: Tensor


class ClientRule(Protocol):
    """One small file and one yaml each; pure but for the gradients that ``begin``'s function changes."""

    sends: bool  # whether there are states and messages at all
    needs_plain_sgd: (
        bool  # whether its formulas hold for SGD without momentum, weight decay and clipping alone
    )
    needs_uniform_mean: bool  # whether they are written for clients.weights=uniform
    needs_plain_upload: bool  # whether the server steps with its message, which no upload rule shortens
    changes_gradients: bool  # whether ``begin`` adds to gradients, which 16-mixed scales

    def begin(self, local: Local) -> Adjust | None:
        """A function to call before every optimiser step, or None."""
        ...

    def end(self, local: Local, delta: Tensor, steps: int, weight: float) -> Returned:
        """State and message after ``steps`` local steps that changed the model by ``delta``."""
        ...

    def server(self, shared: State, message: Tensor, delta: Tensor, m: int, n: int) -> tuple[State, Tensor]:
        """The rule's part at the server: new shared state and the D that the server rule gets."""
        ...


@dataclass(frozen=True)
class Plain:
    """LocalOPT as in Alg. 2: plain SGD, nothing kept; what a rule does not say otherwise."""

    sends = False
    needs_plain_sgd = False
    needs_uniform_mean = False
    needs_plain_upload = False
    changes_gradients = False

    def begin(self, local: Local) -> Adjust | None:
        """Gradients stay as they are."""
        return None

    def end(self, local: Local, delta: Tensor, steps: int, weight: float) -> Returned:
        """Nothing is kept or sent."""
        return Returned({}, delta[:0])

    def server(self, shared: State, message: Tensor, delta: Tensor, m: int, n: int) -> tuple[State, Tensor]:
        """D as it came."""
        return shared, delta
