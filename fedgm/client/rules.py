"""What a client may do besides plain SGD: change its gradients, keep a state, send a second vector.

The protocol, and FedProx, SCAFFOLD and MIFA. Rules that mix a direction of the server's into gradients are in
:mod:`fedgm.client.momenta`, those with a state for each client in :mod:`fedgm.client.controls`. Another one
is a class and a yaml.
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
    steps: int = 1  # K: its local steps in this round
    age: int = 0  # how many rounds old x is
    at_work: "Work | None" = None  # what a rule may ask of the client; always there in a run

    @property
    def work(self) -> "Work":
        """The client at work."""
        assert self.at_work is not None, "this rule asks a client that trains"
        return self.at_work


class Work(Protocol):
    """A client at work, for rules to which gradients at the model as it stands are not enough."""

    notes: State  # what ``begin`` and its function leave for ``end``

    def gradient_at(self, x: Tensor) -> Tensor:
        """Of the step's own batch at another flat ``x``, layers drawing the same again. Where
        ``needs_second_gradient``, and only while ``begin``'s function runs.
        """
        ...

    def full_gradient(self) -> Tensor:
        """Over one pass of the client's samples, at the weights as they are."""
        ...

    def start_from(self, x: Tensor) -> None:
        """Train from ``x``; only in ``begin``."""
        ...

    def model(self, age: int) -> Tensor | None:
        """The global model of ``age`` rounds ago, 0 is x_t; None if there was none."""
        ...


class Returned(NamedTuple):
    """What a client keeps, and what it sends besides its delta."""

    kept: State
    message: Tensor
    delta: Tensor | None = None  # what counts in the mean instead of what it sent


class Came(NamedTuple):
    """What came back in a round, as the rule's part at the server sees it."""

    message: Tensor  # mean of the messages
    delta: Tensor  # D
    m: int  # clients in the mean
    n: int  # all clients
    steps: float  # K, the mean over the cohort
    lr: float | Tensor  # eta_l of this round


class ClientRule(Protocol):
    """One small file and one yaml each; pure but for the gradients that ``begin``'s function changes."""

    keeps: int  # vectors of a model's size that a client keeps from one time to the next
    sends: bool  # whether a client sends a message besides its delta
    fetches: int  # vectors that clients are sent besides the model
    lookback: int  # how many rounds before a client's x ``Work.model`` must reach
    needs_second_gradient: bool  # whether ``begin``'s function calls ``Work.gradient_at``
    needs_plain_server: bool  # whether its formulas hold only where the server does x -= D
    reads_delta: bool  # whether D must be what the cohort's K steps moved: measured from x, not divided
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

    def server(self, shared: State, came: Came) -> tuple[State, Tensor]:
        """The rule's part at the server: new shared state and the D that the server rule gets."""
        ...


@dataclass(frozen=True)
class Plain:
    """LocalOPT as in Alg. 2: plain SGD, nothing kept: the defaults of every rule."""

    keeps = 0
    sends = False
    fetches = 0
    lookback = 0
    needs_second_gradient = False
    needs_plain_server = False
    reads_delta = False
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

    def server(self, shared: State, came: Came) -> tuple[State, Tensor]:
        """D as it came."""
        return shared, came.delta


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

    keeps = 1
    sends = True
    fetches = 1
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

    def server(self, shared: State, came: Came) -> tuple[State, Tensor]:
        """c moves by the part of all clients that the cohort is; D is left to the server rule."""
        return {"c": _c(shared, came.delta) + (came.m / came.n) * came.message}, came.delta


def _c(state: State, like: Tensor) -> Tensor:
    """A control variate, zero as long as there is none."""
    return state.get("c", zeros_like(like))


@dataclass(frozen=True)
class LastUpdates(Plain):
    """D = 1/n sum_i G_i over *all* n clients, where G_i is client i's last (weighted) delta, 0 until it came.

    A client keeps G_i and sends the change of it; the server keeps the mean. So the server never holds
    more than one vector, and every client that has taken part costs a model's size on disk.
    """

    keeps = 1
    sends = True
    fetches = 1  # nobody needs it, but rows have counted it from the start
    needs_uniform_mean = True
    needs_plain_upload = True

    def begin(self, local: Local) -> Adjust | None:
        """Local training is plain."""
        return None

    def end(self, local: Local, delta: Tensor, steps: int, weight: float) -> Returned:
        """The new G_i and what changed."""
        now = delta if weight == 1 else weight * delta
        return Returned({"g": now}, now - local.kept.get("g", zeros_like(now)))

    def server(self, shared: State, came: Came) -> tuple[State, Tensor]:
        """The mean of all last updates takes the place of the cohort's."""
        g = shared.get("g", zeros_like(came.delta)) + (came.m / came.n) * came.message
        return {"g": g}, g
