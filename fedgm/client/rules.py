"""What a client may do besides plain SGD: change its gradients, keep a state, send a second vector.

The protocol, and the rules that we have: FedProx, SCAFFOLD, MIFA. Another one is a class and a yaml.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from torch import Tensor, where, zeros_like

from fedgm.errors import require

LARGEST = 3.4e38  # of float32: torch refuses a larger factor
State = dict[str, Tensor]
Adjust = Callable[[list[Tensor]], None]  # changes .grad of the parameters, between backward and step


class Local(NamedTuple):
    """What a rule knows when a client starts."""

    x: Tensor  # the flat model it starts from
    kept: State  # what this client kept from the last time it took part; empty at first
    shared: State  # what the server kept for the rule when that model was the newest; empty before round 1
    lr: float | Tensor  # eta_l; a flat vector where parameter groups have different ones
    split: Callable[[Tensor], list[Tensor]]  # a flat vector as views shaped like the parameters
    client: int  # who it is, from 0
    round: int  # t, from 1


class Returned(NamedTuple):
    """What a client keeps, and what it sends besides its delta."""

    kept: State
    message: Tensor


class ClientRule(Protocol):
    """One small file and one yaml each; pure but for the gradients that ``begin``'s function changes."""

    sends: bool  # whether there are states and messages at all
    needs_plain_sgd: bool  # whether its formulas hold only for SGD without momentum, weight decay, clipping
    needs_uniform_mean: bool  # whether its formulas assume clients.weights=uniform
    needs_plain_upload: bool  # whether the server steps with its message, which upload rules do not shorten
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
    """LocalOPT as in Alg. 2: plain SGD, nothing kept: the defaults of every rule."""

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


@dataclass(frozen=True)
class FedProx(Plain):
    """loss += mu/2 ||w - x_t||^2, i.e. g += mu (w - x_t); the reported loss is without the extra term.

    >>> from torch import nn, tensor
    >>> w = nn.Parameter(tensor([3.0]))
    >>> w.grad = tensor([0.0])
    >>> local = Local(tensor([1.0]), {}, {}, lr=0.1, split=lambda x: [x], client=0, round=1)
    >>> FedProx(mu=0.5).begin(local)([w])
    >>> w.grad  # 0 + 0.5 * (3 - 1)
    tensor([1.])
    """

    mu: float = 0.01
    changes_gradients = True

    def __post_init__(self) -> None:
        require(0 <= self.mu <= LARGEST, "client.mu", self.mu, f"0 to {LARGEST:g}", "client.mu=0.01")

    def begin(self, local: Local) -> Adjust | None:
        """The pull towards the start."""
        start = local.split(local.x)

        def adjust(parameters: list[Tensor]) -> None:
            for w, x in zip(parameters, start, strict=True):
                if w.grad is not None:
                    w.grad.add_(w.detach() - x, alpha=self.mu)

        return adjust


@dataclass(frozen=True)
class Scaffold(Plain):
    """y -= eta_l (g - c_i + c);  c_i' = c_i - c + (x - y)/(K eta_l);  c += m/n mean(c_i' - c_i).

    c_i is kept for every client that has taken part (it costs a model's size on disk each), c at the
    server. The second option of the paper's two ways to update c_i, the one without extra gradients.
    A stale client has fetched c together with its model, so both are of the same age.
    """

    sends = True
    needs_plain_sgd = True
    changes_gradients = True

    def begin(self, local: Local) -> Adjust | None:
        """g - c_i + c, both zero until a client has taken part."""
        if not local.shared and not local.kept:
            return None
        correction = local.split(_c(local.shared, local.x) - _c(local.kept, local.x))

        def adjust(parameters: list[Tensor]) -> None:
            for w, c in zip(parameters, correction, strict=True):
                if w.grad is not None:
                    w.grad.add_(c)

        return adjust

    def end(self, local: Local, delta: Tensor, steps: int, weight: float) -> Returned:
        """delta is x - y, so the new c_i follows from it."""
        before = _c(local.kept, local.x)
        after = before - _c(local.shared, local.x) + delta / (steps * local.lr)
        if isinstance(local.lr, Tensor):  # what has the rate 0 does not move, and its c_i is not known
            after = where(local.lr > 0, after, before)
        return Returned({"c": after}, after - before)

    def server(self, shared: State, message: Tensor, delta: Tensor, m: int, n: int) -> tuple[State, Tensor]:
        """c moves by the part of all clients that the cohort is; D is left to the server rule."""
        return {"c": _c(shared, delta) + (m / n) * message}, delta


def _c(state: State, like: Tensor) -> Tensor:
    """A control variate, zero as long as there is none."""
    return state.get("c", zeros_like(like))


@dataclass(frozen=True)
class LastUpdates(Plain):
    """D = 1/n sum_i G_i over *all* n clients, where G_i is client i's last (weighted) delta, 0 until it came.

    A client keeps G_i and sends the change of it; the server keeps the mean. So the server never holds
    more than one vector, and every client that has taken part costs a model's size on disk.
    """

    sends = True
    needs_uniform_mean = True
    needs_plain_upload = True

    def begin(self, local: Local) -> Adjust | None:
        """Local training is plain."""
        return None

    def end(self, local: Local, delta: Tensor, steps: int, weight: float) -> Returned:
        """The new G_i and what changed."""
        now = delta if weight == 1 else weight * delta
        return Returned({"g": now}, now - local.kept.get("g", zeros_like(now)))

    def server(self, shared: State, message: Tensor, delta: Tensor, m: int, n: int) -> tuple[State, Tensor]:
        """The mean of all last updates takes the place of the cohort's."""
        g = shared.get("g", zeros_like(delta)) + (m / n) * message
        return {"g": g}, g
