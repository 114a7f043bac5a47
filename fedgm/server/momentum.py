"""Eq. 2: the FedGM server step, and what one choice of (eta, beta, nu) means."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf, isfinite, sqrt
from typing import NamedTuple, Protocol, Self, TypeVar
from warnings import warn

from torch import Tensor, zeros_like

from fedgm.errors import require
from fedgm.server.rule import Hyper, State


class Momentum(NamedTuple):
    """Server hyperparameters of one stage, named as in the paper."""

    eta: float  # server learning rate
    beta: float  # momentum factor, 0 <= beta < 1
    nu: float  # instant discount: 0 is FedAvg, 1 is FedAvgM, beta is FedNAG


class Vector(Protocol):
    """What Eq. 2 needs of x, d and D: a float, a numpy array and a tensor all have it."""

    def __add__(self, other: Self, /) -> Self: ...
    def __sub__(self, other: Self, /) -> Self: ...
    def __rmul__(self, other: float, /) -> Self: ...


V = TypeVar("V", bound=Vector)


def server_step(x: V, d: V, delta: V, m: Momentum) -> tuple[V, V]:
    """Eq. 2. Return ``(x_{t+1}, d_{t+1})``; the arguments are left untouched.

    ``d`` is *damped*: it averages updates, it does not sum them as ``torch.optim.SGD`` or Flower's
    ``FedAvgM`` do. A summing server with rate ``lr`` equals ``eta = lr / (1 - beta)``.

    >>> server_step(x=1.0, d=0.0, delta=0.5, m=Momentum(eta=2.0, beta=0.5, nu=0.5))
    (0.25, 0.25)
    """
    d_next = (1 - m.beta) * delta + m.beta * d
    h_next = (1 - m.nu) * delta + m.nu * d_next
    return x - m.eta * h_next, d_next


def gain(m: Momentum) -> float:
    """What the first update (d_0 = 0) is multiplied by: ``eta (1 - beta nu)``.

    >>> gain(Momentum(eta=2.0, beta=0.5, nu=0.5))
    1.5
    """
    return m.eta * (1 - m.beta * m.nu)


def momentum_constant(m: Momentum) -> float:
    """W1 = eta beta nu / (1 - beta), which Eq. 3 keeps constant over stages.

    >>> momentum_constant(Momentum(eta=2.0, beta=0.75, nu=0.5))
    3.0
    """
    return m.eta * m.beta * m.nu / (1 - m.beta)


def staged_beta(W1: float, eta: float, nu: float) -> float:
    """The beta that keeps W1 at a new eta (Eq. 3): ``W1 / (W1 + eta nu)``.

    >>> beta = staged_beta(W1=3.0, eta=1.0, nu=0.5)
    >>> round(momentum_constant(Momentum(eta=1.0, beta=beta, nu=0.5)), 12)
    3.0
    """
    return W1 / (W1 + eta * nu)


def staged_beta_nesterov(W1: float, eta: float) -> float:
    """The beta that keeps W1 where nu follows beta (FedNAG): the positive root of eta b^2 + W1 b = W1.

    Written without the difference of the textbook formula, which loses digits where eta is small.

    >>> staged_beta_nesterov(W1=1.5, eta=3.0)
    0.5
    """
    return 2 * W1 / (W1 + sqrt(W1 * W1 + 4 * eta * W1))


def averaged(x: V, d: V, m: Momentum) -> V:
    """The averaged point behind the model that is sent: ``x + (1 - nu) eta beta / (1 - beta) d``.

    GPA sends y = mu_y x + (1 - mu_y) z and evaluates x. With e = x - z, e = eta beta / (1 - beta) d and
    y = z + nu e, so x = y + (1 - nu) e. Where beta changes, e belongs to the step that comes: ``m`` is the
    triple of the next round. nu = 1 sends the average itself.

    >>> averaged(x=1.0, d=0.5, m=Momentum(eta=2.0, beta=0.5, nu=0.5))
    1.5
    """
    return x + ((1 - m.nu) * m.eta * m.beta / (1 - m.beta)) * d


@dataclass(frozen=True)
class GeneralMomentum:
    """FedGM as a server rule; ``nu_is_beta`` ties nu to beta when a stage drops (FedNAG).

    >>> from torch import tensor
    >>> rule = GeneralMomentum(eta=2.0, beta=0.5, nu=0.5)
    >>> x = tensor([1.0])
    >>> rule.step(x, rule.init(x), tensor([0.5]), rule.hyper)
    (tensor([0.2500]), {'d': tensor([0.2500])})
    >>> rule.follow(eta=1.0, first=2.0)  # beta rises, so that W1 stays
    {'eta': 1.0, 'beta': 0.6666666666666666, 'nu': 0.5}
    """

    eta: float
    beta: float
    nu: float
    nu_is_beta: bool = False

    def __post_init__(self) -> None:
        require(0 < self.eta < inf, "algorithm.eta", self.eta, "a positive number", "algorithm.eta=1.0")
        require(0 <= self.beta < 1, "algorithm.beta", self.beta, "0 <= beta < 1", "algorithm.beta=0.9")
        require(
            isfinite(self.nu),
            "algorithm.nu",
            self.nu,
            "a finite number, usually in [0, 1]",
            "algorithm.nu=0.9",
        )
        tied = not self.nu_is_beta or self.nu == self.beta
        require(
            tied, "algorithm.nu", self.nu, f"equal to beta={self.beta}: nu_is_beta is true", "algorithm=fedgm"
        )
        if not 0 <= self.nu <= 1:
            warn(f"algorithm.nu={self.nu} lies outside [0, 1]: legal, used as it is", stacklevel=2)

    @property
    def hyper(self) -> Hyper:
        """The triple of the first round."""
        return {"eta": self.eta, "beta": self.beta, "nu": self.nu}

    def follow(self, eta: float, first: float) -> Hyper:
        """The triple at ``eta`` that keeps the W1 which (beta, nu) have at the ``first`` eta."""
        W1 = momentum_constant(Momentum(first, self.beta, self.nu))
        if W1 == 0 or eta == first:  # without momentum, or without a drop, beta has nothing to follow
            return {"eta": eta, "beta": self.beta, "nu": self.nu}
        if self.nu_is_beta:
            beta = staged_beta_nesterov(W1, eta)
            return {"eta": eta, "beta": beta, "nu": beta}
        return {"eta": eta, "beta": staged_beta(W1, eta, self.nu), "nu": self.nu}

    def gain(self, hyper: Mapping[str, float]) -> float:
        """First-round gain of the triple."""
        return gain(Momentum(**hyper))

    def init(self, x: Tensor) -> State:
        """d_0 = 0, no bias correction."""
        return {"d": zeros_like(x)}

    def step(self, x: Tensor, state: State, delta: Tensor, hyper: Hyper) -> tuple[Tensor, State]:
        """Eq. 2 on flat parameters."""
        x_next, d_next = server_step(x, state["d"], delta, Momentum(**hyper))
        return x_next, {"d": d_next}


@dataclass(frozen=True)
class PrimalAveraging(GeneralMomentum):
    """Eq. 2 of a method whose authors evaluate the averaged point behind the model that is sent."""

    def average(self, x: Tensor, state: State, after: Hyper) -> Tensor:
        """The averaged point, at the triple of the next round."""
        return averaged(x, state["d"], Momentum(**after))
